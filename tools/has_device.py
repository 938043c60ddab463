"""Exits with 0 where a real GPU answers through NVIDIA's library, with 1 where none does."""

import sys

import pynvml


def count() -> int:
    """How many real devices there are; none where the library or the driver is missing."""
    try:
        pynvml.nvmlInit()
        return int(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError:
        return 0


if __name__ == "__main__":
    sys.exit(0 if count() else 1)
