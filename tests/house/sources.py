"""Reads the project's own source for the tests of the house: which files there are and what they import."""

import ast
import dataclasses
import functools
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
PACKAGE = "aliquot"


@dataclasses.dataclass(frozen=True, slots=True)
class Import:
    """One name imported by one line: `from aliquot.core import plan` is target `aliquot.core`, name `plan`."""

    importer: str
    path: pathlib.Path
    line: int
    target: str
    name: str | None

    def __str__(self) -> str:
        """Where it stands, for a failing test."""
        what = f"from {self.target} import {self.name}" if self.name else f"import {self.target}"
        return f"{self.path.relative_to(ROOT)}:{self.line}: {what}"


@functools.cache
def modules() -> dict[str, pathlib.Path]:
    """Every module of the package by its dotted name."""
    found: dict[str, pathlib.Path] = {}
    for path in sorted((SRC / PACKAGE).rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def room(module: str) -> str:
    """The room a module is in: `aliquot.core.plan` is in `core`; the package itself is in none."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


@functools.cache
def imports() -> tuple[Import, ...]:
    """Every import of every module, those inside functions and type-checking blocks too."""
    return tuple(found for module, path in modules().items() for found in imports_of(module, path))


def imports_of(module: str, path: pathlib.Path) -> list[Import]:
    """The imports of one file."""
    found: list[Import] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [Import(module, path, node.lineno, alias.name, None) for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            target = absolute(node, module, is_package=path.name == "__init__.py")
            found += [Import(module, path, node.lineno, target, alias.name) for alias in node.names]
    return found


def absolute(node: ast.ImportFrom, module: str, *, is_package: bool) -> str:
    """The absolute name of what a `from` import names."""
    if not node.level:
        return node.module or ""
    base = module.split(".")[: None if is_package and node.level == 1 else -(node.level - is_package)]
    return ".".join([*base, *([node.module] if node.module else [])])


@functools.cache
def tracked() -> tuple[pathlib.Path, ...]:
    """The files that are committed or about to be: what git knows and does not ignore, as far as they exist."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    paths = (ROOT / name for name in listing.stdout.decode().split("\0") if name)
    return tuple(path for path in paths if path.is_file() and not path.is_symlink())


def impure_lines(path: pathlib.Path, calls: set[str]) -> list[int]:
    """The lines of a file that await, or that call a method with one of these names."""
    found: list[int] = []
    for node in ast.walk(ast.parse(path.read_text())):
        is_async = isinstance(node, ast.Await | ast.AsyncFunctionDef | ast.AsyncFor | ast.AsyncWith)
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in calls
        if is_async or is_call:
            found.append(getattr(node, "lineno", 0))
    return found


def calls_in(path: pathlib.Path) -> list[tuple[str, int]]:
    """Every call of a file as `module.function` or `function`, with its line."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return [(ast.unparse(node.func), node.lineno) for node in calls]
