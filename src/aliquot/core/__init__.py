"""The part of Aliquot that decides. Pure: no clock, file, socket or thread; the same input gives the same answer."""
