"""Aliquot shares GPUs fairly, shows what runs, and says why something waits."""
