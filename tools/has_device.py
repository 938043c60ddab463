"""Exits with 0 where a real GPU answers through NVIDIA's library, with 1 where none does."""

import sys

from aliquot.local import devices

if __name__ == "__main__":
    sys.exit(0 if devices.has_real_devices() else 1)
