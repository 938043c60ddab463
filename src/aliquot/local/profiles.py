"""The cards that `--devices` can stand in for, and how its text is read.

Promises: a profile offers what the real card offers (its memory as NVML reports it, less what the driver keeps), so
that a request which fits the simulated card fits the real one. Text that is not understood is refused with the names
that are.
"""

import difflib
import re
from dataclasses import dataclass

from aliquot.core import errors

FIELD = "devices"
MOST_DEVICES = 256
"""More than any one machine holds; a slip of the finger should not make a million devices."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A card. `memory_mib` is NVML's total; `reserved_mib` is what the driver keeps of it."""

    name: str
    product: str
    memory_mib: int
    reserved_mib: int

    @property
    def offered_mib(self) -> int:
        """What is left for pods."""
        return self.memory_mib - self.reserved_mib


# Both numbers are what `nvidia-smi -q -d MEMORY` prints ("Total", "Reserved") in published logs of real machines; what
# the driver keeps differs by driver version, so the largest that was found stands here. Two have no such log: of the
# V100-32 the 16 GB card's reserve is taken, of the B200 the total less what CUDA then calls the device's memory
# (182014 MiB).
PROFILES: tuple[Profile, ...] = (
    Profile("T4", "Tesla T4", 15_360, 393),
    Profile("V100-16", "Tesla V100-SXM2-16GB", 16_384, 240),
    Profile("V100-32", "Tesla V100-SXM2-32GB", 32_768, 240),
    Profile("A10", "NVIDIA A10", 23_028, 526),
    Profile("L4", "NVIDIA L4", 23_034, 556),
    Profile("RTX3090", "NVIDIA GeForce RTX 3090", 24_576, 355),
    Profile("RTX4090", "NVIDIA GeForce RTX 4090", 24_564, 354),
    Profile("L40S", "NVIDIA L40S", 46_068, 685),
    Profile("A100-40", "NVIDIA A100-SXM4-40GB", 40_960, 620),
    Profile("A100-80", "NVIDIA A100-SXM4-80GB", 81_920, 834),
    Profile("H100", "NVIDIA H100 80GB HBM3", 81_559, 516),
    Profile("H100-NVL", "NVIDIA H100 NVL", 95_830, 594),
    Profile("H200", "NVIDIA H200", 143_771, 700),
    Profile("B200", "NVIDIA B200", 183_359, 1_345),
)
NAMES = tuple(profile.name for profile in PROFILES)
_BY_NAME = {profile.name.lower(): profile for profile in PROFILES}
_PART = re.compile(r"(?:(?P<count>[0-9]{1,9})\s*[x×*]\s*)?(?P<name>[A-Za-z][A-Za-z0-9-]*)", re.ASCII)


def parse(text: str) -> tuple[Profile, ...]:
    """The devices that `8xH100` or `2xA100-80,4xL4` names, one by one. Raises InvalidInput."""
    found: list[Profile] = []
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise _refused(text, f"{_shown(part)} is not a number of cards and a name, as in 8xH100")
        count = int(match["count"] or 1)
        if count == 0:
            raise _refused(text, "the number of cards is at least 1; leave the option out for no devices")
        if len(found) + count > MOST_DEVICES:
            raise _refused(text, f"at most {MOST_DEVICES} devices")
        found += [_named(match["name"], text)] * count
    return tuple(found)


def _named(name: str, text: str) -> Profile:
    profile = _BY_NAME.get(name.lower())
    if profile is not None:
        return profile
    near = [known for known in NAMES if known.lower().startswith(name.lower())]
    near = near or difflib.get_close_matches(name.upper(), NAMES, n=2)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise _refused(text, f"no card is called {_shown(name)}{hint}")


def _refused(text: str, why: str) -> errors.InvalidInput:
    return errors.InvalidInput(f"{FIELD}: {_shown(text)}: {why}", field=FIELD, valid=NAMES)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
