"""Tagged JSON of an untrusted peer: a value or a typed error, after work that its length bounds."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openenv_gym.errors import ValueMappingError
from openenv_gym.exact import encode_exact
from openenv_gym.exact_reader import _READERS, MAX_EQUAL_HASHES, decode_exact
from openenv_gym.spaces.limits import MAX_DEPTH
from tests.openenv_gym.spaces.strategies import typed_error


def test_decoded_arrays_can_be_written_to() -> None:
    decoded: Any = decode_exact(encode_exact(np.zeros((2, 2))))
    decoded.fill(1)


@pytest.mark.parametrize(
    "value",
    [
        {"$": "nonsense"},
        {"$": 3},
        {"$": ["tuple"]},
        {"$": "tuple"},
        {"$": "tuple", "items": 3},
        {"$": "tuple", "items": [{"$": "?"}]},
        {"$": "set", "items": [[]]},
        {"$": "dict", "items": [[1]]},
        {"$": "dict", "items": [3]},
        {"$": "dict", "items": [[[], 1]]},
        {"$": "bytes", "data": "AA="},
        {"$": "bytes", "data": "A A="},
        {"$": "bytes", "data": "é"},
        {"$": "bytes", "data": 3},
        {"$": "int", "value": "x"},
        {"$": "float", "value": "1"},
        {"$": "float", "value": None},
        {"$": "complex", "value": [1.0]},
        {"$": "complex", "value": 3},
        {"$": "complex", "value": ["x", 1.0]},
        {"$": "str", "data": "/w=="},
        {"$": "timedelta", "value": ["a", 0, 0]},
        {"$": "timedelta", "value": [10**10, 0, 0]},
        {"$": "datetime", "value": "now"},
        {"$": "decimal", "value": "x"},
        {"$": "fraction", "value": "1/0"},
        {"$": "uuid", "value": "x"},
        {"$": "str_", "value": 3},
        {"$": "opaque", "type": "x"},
        {"$": "scalar", "dtype": "|O8", "data": "AAAAAAAAAAA="},
        {"$": "scalar", "dtype": "<f4", "data": "AAA="},
        {"$": "scalar", "dtype": "<U0", "data": ""},
        {"$": "scalar", "dtype": "<f5", "data": ""},
        {"$": "scalar", "dtype": "<M8[x]", "data": "AAAAAAAAAAA="},
        {"$": "scalar", "dtype": "|b1", "data": "Ag=="},
        {"$": "scalar", "dtype": "<U1", "data": "/////w=="},
        {"$": "scalar", "dtype": "i4,f4", "data": ""},
        {"$": "array", "dtype": "<f4", "shape": [2**62], "data": ""},
        {"$": "array", "dtype": "<f4", "shape": [0, 10**30], "data": ""},
        {"$": "array", "dtype": "<f4", "shape": [-1], "data": ""},
        {"$": "array", "dtype": "<f4", "shape": [True], "data": "AAAAAA=="},
        {"$": "array", "dtype": "<f4", "shape": 3, "data": ""},
        {"$": "array", "shape": [2], "items": [1]},
        {"$": "array", "dtype": "<f4", "shape": [1] * 65, "data": "AAAAAA=="},
        {"$": "array", "dtype": "<U99999999", "shape": [0], "data": ""},
        {"$": "dict", "items": ["ab"]},
        {"$": "dict", "items": [{"a": 1, "b": 2}]},
        {"$": "dict", "items": [[1, 2, 3]]},
        {"$": "int", "value": "1_0"},
        {"$": "int", "value": "12"},
        {"$": "fraction", "value": "1e3"},
        {"$": "fraction", "value": "1.5"},
        {"$": "fraction", "value": "9" * 4301},
        {"$": "timedelta", "value": [1.5, 0, 0]},
        {"$": "timedelta", "value": [True, 0, 0]},
        {"$": "timedelta", "value": [0, 0]},
        {"$": 10**5000},
    ],
)
def test_malformed_tags_are_a_typed_error_with_their_path(value: Any) -> None:
    with pytest.raises(ValueMappingError) as caught:
        decode_exact({"info": [value]})
    assert caught.value.path is not None
    assert caught.value.path.startswith("$.info[0]")


JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 300),
        st.floats(),
        st.sampled_from(["", "AA==", "<f4", "|b1", "<U1", "NaN", "1", "0x1", "1/0", "$", "<U9999999"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["$", "items", "data", "dtype", "shape", "value"]), inner, max_size=4),
    ),
    max_leaves=6,
)
TAGS = [
    "array",
    "scalar",
    "tuple",
    "dict",
    "set",
    "int",
    "float",
    "complex",
    "bytes",
    "str",
    "timedelta",
    "datetime",
    "decimal",
    "opaque",
    "fraction",
    "uuid",
    "date",
    "time",
    "str_",
    "bytes_",
    "bytearray",
    "frozenset",
]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(TAGS),
    st.dictionaries(st.sampled_from(["items", "data", "dtype", "shape", "value", "type", "text"]), JUNK),
)
def test_any_fields_of_a_tag_are_a_value_or_a_typed_error(tag: str, fields: dict[str, Any]) -> None:
    with typed_error(ValueMappingError):
        decode_exact({"$": tag, **fields})


def test_every_tag_is_among_those_tried() -> None:
    assert set(TAGS) == set(_READERS)


ANY_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.just("$"), st.text(max_size=3)), inner, max_size=3),
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(ANY_JSON)
def test_any_json_is_a_value_or_a_typed_error(value: Any) -> None:
    with typed_error(ValueMappingError):
        decode_exact(value)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda value: [value],
        lambda value: {"a": value},
        lambda value: {"$": "str_", "value": value},
        lambda value: {"$": "tuple", "items": [value]},
        lambda value: {"$": "dict", "items": [[1, value]]},
        lambda value: {"$": "array", "shape": [1], "items": [value]},
    ],
)
def test_values_nested_too_deeply_are_refused_however_they_nest(wrap: Any) -> None:
    value: Any = "x"
    for _ in range(MAX_DEPTH + 1):
        value = wrap(value)
    with pytest.raises(ValueMappingError, match="deep"):
        decode_exact(value)


@pytest.mark.parametrize("tag", ["set", "frozenset", "dict"])
def test_numbers_chosen_for_their_common_hash_are_refused(tag: str) -> None:
    numbers: list[Any] = [
        {"$": "int", "value": hex(number * sys.hash_info.modulus)} for number in range(MAX_EQUAL_HASHES + 1)
    ]
    items: Any = [[number, 1] for number in numbers] if tag == "dict" else numbers
    with pytest.raises(ValueMappingError, match="hash"):
        decode_exact({"$": tag, "items": items})
    allowed: Any = decode_exact({"$": tag, "items": items[1:]})
    assert len(allowed) == MAX_EQUAL_HASHES


def test_the_message_of_a_long_malformed_text_is_short() -> None:
    with pytest.raises(ValueMappingError) as caught:
        decode_exact({"$": "datetime", "value": "x" * 100_000})
    assert len(str(caught.value)) < 500


# Where a number is computed from its text, Python's own lock is held: no thread and no signal could end it.
BOUNDED = """
import sys
from openenv_gym.errors import ValueMappingError
from openenv_gym.exact_reader import _READERS, decode_exact

BIG, P = 10**5, sys.hash_info.modulus
nines = "9" * BIG
texts = [nines, "0x" + "f" * BIG, "1/" + nines, nines + "/" + "7" * BIG, "1e10000000", "1e-999999999"]
texts += ["-" * BIG, " " * BIG, "1_" * BIG, "1e999999999999999999", "0." + nines, "urn:uuid:" * BIG, "T" * BIG]
texts += ["A" * BIG, "NaN" + nines, "<U" + nines, "<U536870911", "<M8[" + nines + "s]", "<M8[s]", "|b1", "<f4"]
numbers = [10**BIG, -(10**BIG), 2**63, 2**64 - 1, 10**30, -1, 0]
shapes = [[number] for number in numbers] + [[0, number] for number in numbers]
shapes += [[10**3000] * 20_000, [1] * BIG, [2**62] * 64]
lists = [[number] * 3 for number in numbers] + [[[]] * BIG, [0] * BIG, [[]]] + [[text] * 2 for text in texts]
odd = [*texts, *numbers, *shapes, *lists, {"$": "tuple"}, None, 1.5]
documents = [{"$": tag, "value": value} for tag in _READERS for value in odd]
documents += [{"$": tag, "items": value} for tag in _READERS for value in odd]
documents += [{"$": tag, "type": "t", "text": value, "data": value} for tag in _READERS for value in texts]
for dtype in ["<f4", "<U1", "<U536870911", "|S1", "<M8[s]", *texts]:
    documents += [{"$": tag, "dtype": dtype, "shape": shape, "data": data} for tag in ("array", "scalar")
                  for shape in shapes for data in ("", "AAAAAA==")]
documents += [{"$": "array", "shape": shape, "items": []} for shape in shapes]
key, zeros = "k" * 10**6, [0] * 10**6
documents += [{key: zeros}, {key: {"$": "tuple", "items": zeros}}, {"$": "dict", "items": [[key, zeros]]}]
documents += [{"$": "set", "items": [{"$": "int", "value": hex(P * n)} for n in range(100_000)]}]
for document in documents:
    try:
        decode_exact(document)
    except ValueMappingError:
        pass
"""


def test_the_work_of_every_reader_is_bounded_by_the_length_of_its_text() -> None:
    subprocess.run([sys.executable, "-c", BOUNDED], check=True, timeout=90)
