"""`aliquot doctor`: the checks of this machine, for a command line that needs no server."""

from aliquot.app import settings
from aliquot.local import doctor, limits


def examine(data: str | None = None) -> tuple[doctor.Check, ...]:
    """All checks, for the data folder that a server here would use."""
    chosen = settings.read(data=data)
    return doctor.examine(chosen.data, means=limits.probe("aliquot-doctor"))
