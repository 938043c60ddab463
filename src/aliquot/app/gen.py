"""`python -m aliquot.app.gen [--check]`: writes the files that are made from the code, or says which would change."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from aliquot.api import openapi

ROOT = Path(__file__).resolve().parents[3]
GENERATED: Mapping[str, Callable[[], str]] = {"docs/reference/openapi.json": openapi.render}


def outdated() -> list[str]:
    """The generated files that are not what the code says."""
    return [name for name, render in GENERATED.items() if _read(ROOT / name) != render()]


def main(arguments: list[str]) -> int:
    """Write, or with `--check` only look; 1 if something would change."""
    changed = outdated()
    if arguments == ["--check"]:
        for name in changed:
            print(f"{name} is not what the code says: run `make gen`", file=sys.stderr)
        return 1 if changed else 0
    for name in changed:
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(GENERATED[name](), encoding="utf-8")
        print(f"wrote {name}")
    return 0


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
