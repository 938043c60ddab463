"""What each guarantee means to the person whose work stands on it, in one sentence.

Promises: a sentence for every guarantee, which claims no more than the guarantee holds.
"""

from collections.abc import Mapping

from aliquot.core.model import Guarantee

SENTENCES: Mapping[Guarantee, str] = {
    Guarantee.NONE: "Nothing enforces the share: it exists only in the books.",
    Guarantee.ADVISORY: (
        "Programs are told which devices are theirs (CUDA_VISIBLE_DEVICES) and how much of them; nothing stops one "
        "that does not listen."
    ),
    Guarantee.DETECTED: (
        "Programs are told their share; one that uses more memory than its share is noticed within seconds, and ended "
        "where it shares the device with others."
    ),
    Guarantee.COOPERATIVE: "A library inside the program refuses memory above the share; a program can get round it.",
    Guarantee.PROCESS: "The driver limits each process by itself; several together may use more than the share.",
    Guarantee.KERNEL: "The driver in the kernel refuses memory above the share; the program cannot get round it.",
    Guarantee.HARDWARE: "The hardware keeps the share apart from others.",
}


def describe(guarantee: Guarantee) -> str:
    """The sentence of a guarantee."""
    return SENTENCES[guarantee]
