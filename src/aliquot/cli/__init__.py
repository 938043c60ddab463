"""The command line: thin commands over the client; nothing is decided here.

Nothing may be imported here: `aliquot --help` imports this package, and must stay quick.
"""
