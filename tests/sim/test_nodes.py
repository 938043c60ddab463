"""Nodes are made from a short text or read from a published list, and refused where they make no sense."""

import io
import pathlib

import pytest

from aliquot.core.errors import InvalidInput
from aliquot.sim import nodes

LIST = "sn,cpu_milli,memory_mib,gpu,model\n"


def test_a_text_says_how_many_nodes_with_how_many_devices_of_which_model() -> None:
    found = nodes.read("2x8xH100, 1x4xT4")

    assert [(node.id, len(node.devices), node.devices[0].model) for node in found] == [
        ("node-0", 8, "H100"),
        ("node-1", 8, "H100"),
        ("node-2", 4, "T4"),
    ]


def test_the_names_of_nodes_sort_as_they_are_counted() -> None:
    found = nodes.read("101x1")

    assert [node.id for node in found] == sorted(node.id for node in found)


def test_a_list_says_cpu_memory_and_devices_of_each_node(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(LIST + "n1,64000,1024,2,P100\nn2,1000,2048,0,\n", encoding="utf-8")

    first, second = nodes.read(str(path))

    assert (first.id, first.milli_cpus, first.memory_bytes, len(first.devices)) == ("n1", 64000, 2**30, 2)
    assert first.devices[0].model == "P100"
    assert (second.id, second.devices) == ("n2", ())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "neither nodes nor a file"),
        ("8", "neither nodes nor a file"),
        ("8x", "neither nodes nor a file"),
        ("8xH100", "neither nodes nor a file"),
        ("-1x8", "neither nodes nor a file"),
        ("0x8", "no node"),
        ("1x65", "more than 64 devices"),
        ("20001x1", "at most 20000"),
        ("20000x1,1x1", "20001 nodes"),
        ("no/such/file.csv", "neither nodes nor a file"),
    ],
)
def test_a_text_that_means_no_nodes_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        nodes.read(text)

    assert caught.value.field == "--nodes"
    assert caught.value.valid


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "nodes.csv:1: the file is empty"),
        (LIST, "nodes.csv:2: there is no node"),
        ("sn,gpu\na,1\n", "nodes.csv:1: these columns are missing: cpu_milli, memory_mib, model"),
        (LIST + ",1,1,1,a\n", "nodes.csv:2: sn: is empty"),
        (LIST + "a,1,1,1,a\na,1,1,1,a\n", "nodes.csv:3: sn: 'a' is there twice"),
        (LIST + "a,1,1,65,a\n", "nodes.csv:2: gpu: '65' is too large"),
        (LIST + "a,x,1,1,a\n", "nodes.csv:2: cpu_milli: 'x' is not a number"),
    ],
)
def test_a_bad_list_is_refused_with_file_line_and_field(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        nodes.parse_list("nodes.csv", io.StringIO(text))

    assert caught.value.message.startswith(words)
