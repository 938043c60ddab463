"""The part of Aliquot that decides. Pure: no clock, no file, no socket, no thread; the same input gives the same answer."""
