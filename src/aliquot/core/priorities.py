"""Names for priorities, and how a priority is read. Promises: every name stands for a number in MIN to MAX."""

from aliquot.core import errors

MIN, MAX = 0, 1000
NAMES = {"very-low": 10, "low": 25, "medium": 50, "high": 75, "very-high": 100}
VALID = (*NAMES, f"{MIN} to {MAX}")


def parse(value: int | str, field: str = "priority") -> int:
    """A priority by name or number. Raises InvalidInput."""
    number = NAMES.get(value.strip().lower()) if isinstance(value, str) else value
    if number is None and isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        number = int(value.strip()[:10])
    if isinstance(number, bool) or number is None or not MIN <= number <= MAX:
        shown = str(value)[:40]
        raise errors.InvalidInput(f"{field}: {shown!r} is not a priority", field=field, valid=VALID)
    return number


def describe(number: int) -> str:
    """The name of a priority, or the number where it has none."""
    return next((name for name, known in NAMES.items() if known == number), str(number))
