"""Scenarios: small clusters in a file, what is asked of them, and what must come out (`aliquot-scenario/1`, `/2`)."""
