"""Aliquot shares GPUs fairly, shows what runs, and says why something waits."""

__version__ = "0.1.0"
