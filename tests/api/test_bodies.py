"""How a JSON body is read: strictly, and with the field that is at fault."""

import json

import hypothesis
import pytest
from hypothesis import strategies as st

from aliquot.api import bodies
from aliquot.core import errors

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)

BAD = [
    (b"{", "malformed-json", None),
    (b"", "malformed-json", None),
    (b"{'a': 1}", "malformed-json", None),
    (b'{"a": NaN}', "malformed-json", None),
    (b'{"a": -Infinity}', "malformed-json", None),
    (b"[" * 100_000, "malformed-json", None),
    (b"1" * 5_000, "malformed-json", None),
    (b'{"a": "\xff"}', "not-utf-8", None),
    (b"\xff\xfe{\x00}\x00", "not-utf-8", None),
    (b'{"a": "\\ud800"}', "not-utf-8", None),
    (b'{"\\uDFFF": 1}', "not-utf-8", None),
    (b'{"a": 1, "a": 1}', "duplicate-key", "a"),
    (b'{"a": [{"b": 1, "c": 2, "b": 3}]}', "duplicate-key", "a[0].b"),
    (b'{"gpu": 1, "\\u0067pu": 2}', "duplicate-key", "gpu"),
]


@pytest.mark.parametrize(("raw", "code", "field"), BAD, ids=[repr(raw[:20]) for raw, _, _ in BAD])
def test_what_is_not_strict_json_is_refused_with_a_code_of_its_own(raw: bytes, code: str, field: str | None) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        bodies.parse(raw)

    assert (caught.value.stable_code, caught.value.field) == (code, field)


@hypothesis.given(document=JSON)
def test_every_document_that_json_can_say_is_read_as_it_was(document: object) -> None:
    assert bodies.parse(json.dumps(document).encode()) == document


def test_a_pair_of_surrogates_is_one_character() -> None:
    assert bodies.parse(b'{"a": "\\ud83d\\ude00"}') == {"a": "\N{GRINNING FACE}"}
