"""HTTP in: routes parse, call one service, and return wire shapes. Nothing is decided here."""
