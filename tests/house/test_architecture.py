"""Holds the import rule of docs/explanation/architecture.md that import-linter cannot say: who may know whom by name.

The layers and the homes of heavy libraries are contracts of import-linter, in pyproject.toml.
"""

import sys

import grimp
import pytest

from tests.house import sources

# The table of the architecture page. A new room needs a row here and a layer in pyproject.toml.
ROOMS: dict[str, set[str]] = {
    "core": set(),
    "wire": {"core"},
    "service": {"wire", "core"},
    "api": {"service", "wire", "core"},
    "client": {"wire", "core"},
    "db": {"service", "wire", "core"},
    "local": {"service", "wire", "core"},
    "sim": {"service", "wire", "core"},
    "app": {"api", "client", "db", "local", "sim", "service", "wire", "core"},
    "cli": {"client", "wire", "core"},
}

# The one door from the command line to the server, which commands that need no server go through.
DOORS = {("aliquot.cli.serve", "app")}

# What core may use: nothing that reads a clock, a file, the network, the environment or a random number.
CORE_MAY_IMPORT = {
    "__future__",
    "abc",
    "bisect",
    "collections",
    "collections.abc",
    "dataclasses",
    "datetime",
    "decimal",
    "difflib",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "json",
    "math",
    "numpy",
    "numpy.typing",
    "operator",
    "re",
    "string",
    "types",
    "typing",
}

# Calls by which an allowed module would still let the world in.
IMPURE = {"now", "today", "utcnow"}


def inner_imports() -> list[sources.Import]:
    """The imports of our own package."""
    return [found for found in sources.imports() if found.target.split(".")[0] == sources.PACKAGE]


def room_of(found: sources.Import) -> str:
    """The room that is imported, also when it is named as `from aliquot import core`."""
    if found.target == sources.PACKAGE:
        return found.name if found.name in ROOMS else ""
    return sources.room(found.target)


def test_every_room_has_a_row_in_the_table() -> None:
    rooms = {sources.room(name) for name in sources.modules()} - {""}

    assert rooms - set(ROOMS) == set()


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_imports_only_the_rooms_in_its_row(room: str) -> None:
    allowed = ROOMS[room] | {room, ""}

    strangers = [
        str(found)
        for found in inner_imports()
        if sources.room(found.importer) == room
        and room_of(found) not in allowed
        and (found.importer, room_of(found)) not in DOORS
    ]

    assert strangers == []


def test_core_imports_only_what_is_on_its_list() -> None:
    from_core = [found for found in sources.imports() if sources.room(found.importer) == "core"]
    assert from_core, "there is no core to look at"

    others = [
        str(found)
        for found in from_core
        if found.target not in CORE_MAY_IMPORT and not found.target.startswith(f"{sources.PACKAGE}.core")
    ]

    assert others == []


def test_the_list_of_core_names_only_the_standard_library_and_numpy() -> None:
    assert {name.split(".")[0] for name in CORE_MAY_IMPORT} - sys.stdlib_module_names == {"numpy"}


def test_core_neither_awaits_nor_asks_what_time_it_is() -> None:
    modules = {name: path for name, path in sources.modules().items() if sources.room(name) == "core"}

    impure = [f"{name}:{line}" for name, path in modules.items() for line in sources.impure_lines(path, IMPURE)]

    assert impure == []


def test_no_package_has_an_import_cycle() -> None:
    graph = grimp.build_graph(sources.PACKAGE, exclude_type_checking_imports=True, cache_dir=None)
    packages = [name for name in graph.modules if graph.find_children(name)]

    cycles = {package: sorted(graph.nominate_cycle_breakers(package)) for package in sorted(packages)}

    assert {package: broken for package, broken in cycles.items() if broken} == {}


def test_our_own_functions_are_called_by_their_module_and_only_types_are_imported_by_name() -> None:
    modules = sources.modules()

    names = [
        str(found)
        for found in inner_imports()
        if found.name and f"{found.target}.{found.name}" not in modules and not found.name.lstrip("_")[:1].isupper()
    ]

    assert names == []
