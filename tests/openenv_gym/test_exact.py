"""Any value as tagged JSON and back: the same type, the same bits, or a typed error."""

from __future__ import annotations

import datetime
import enum
import math
import uuid
from collections import OrderedDict, namedtuple
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openenv_gym.errors import ValueMappingError
from openenv_gym.exact import MAX_DIGITS, MAX_TEXT, Opaque, Writer, brief, encode_exact, exact_call
from openenv_gym.exact_reader import decode_exact
from openenv_gym.json_text import decode_json, encode_json
from openenv_gym.spaces.limits import MAX_DEPTH

UTC = datetime.timezone(datetime.timedelta(hours=2))
CODES = "?bhilqBHILQefdgFDG"


def through_text(value: Any) -> Any:
    return decode_exact(decode_json(encode_json(encode_exact(value))))


def assert_exact(first: Any, second: Any) -> None:
    """Equal in type, dtype, shape, order and every bit."""
    # One dtype may have two types of scalars: int64 and longlong.
    assert type(first) is type(second) or (isinstance(first, np.generic) and isinstance(second, np.generic))
    if isinstance(first, np.ndarray) and first.dtype == object:
        assert first.shape == second.shape
        for one, two in zip(first.ravel(), second.ravel(), strict=True):
            assert_exact(one, two)
    elif isinstance(first, np.ndarray | np.generic):
        assert (first.dtype, first.shape, first.tobytes()) == (second.dtype, second.shape, second.tobytes())
    elif isinstance(first, dict):
        assert len(first) == len(second)
        for (key, one), (other, two) in zip(first.items(), second.items(), strict=True):
            assert_exact(key, other)
            assert_exact(one, two)
    elif isinstance(first, list | tuple):
        assert len(first) == len(second)
        for one, two in zip(first, second, strict=True):
            assert_exact(one, two)
    elif isinstance(first, float):
        assert first.hex() == second.hex()
    else:
        assert first == second


@st.composite
def arrays(draw: st.DrawFn) -> Any:
    dtype = np.dtype(draw(st.sampled_from([*CODES, ">f4", ">i8", ">c16", "U3", ">U2", "S2", "M8[ns]", "m8[D]"])))
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    size = math.prod(shape) * dtype.itemsize
    if dtype.kind == "U":
        array = np.array(
            draw(st.lists(st.text(max_size=3), min_size=math.prod(shape), max_size=math.prod(shape))), dtype
        )
    elif dtype.kind == "b":
        array = np.frombuffer(bytes(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))), dtype)
    else:
        array = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), dtype) if size else np.empty(0, dtype)
    array = array.reshape(shape)
    if draw(st.booleans()):
        return array.T if draw(st.booleans()) else array[::-1] if shape else array
    return array[()] if not shape and dtype.isnative else array


HASHABLE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(max_size=5),
    st.sampled_from(
        [
            "$",
            "\ud800",
            Decimal("1.50"),
            Fraction(1, 3),
            uuid.UUID(int=5),
            1 + 2j,
            np.str_("é"),
            np.bytes_(b"x"),
            np.float32(1.5),
        ]
    ),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.times(),
    st.timedeltas(),
)
VALUES = st.recursive(
    st.one_of(
        HASHABLE,
        arrays(),
        st.just(math.nan),
        st.binary(max_size=3).map(bytearray),
        st.builds(Opaque, st.text(), st.text()),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(HASHABLE, inner, max_size=3),
        st.dictionaries(st.text(), inner, max_size=3),
        st.sets(HASHABLE, max_size=3),
        st.frozensets(HASHABLE, max_size=3),
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_any_value_comes_back_with_its_exact_type(value: Any) -> None:
    assert_exact(through_text(value), value)


def test_object_arrays_come_back_with_their_items() -> None:
    array = np.array([[1, "x", None], [[1, 2], (3,), np.float32(1)]], dtype=object)
    assert_exact(through_text(array), array)
    assert_exact(through_text(np.empty((0, 2), object)), np.empty((0, 2), object))


@pytest.mark.parametrize("value", [None, True, 1, -(2**63), 2**64 - 1, 1.5, -0.0, "é", [], {}, {"a": [1, {"b": None}]}])
def test_what_json_keeps_needs_no_tag(value: Any) -> None:
    writer = Writer(opaque=False)
    assert writer.write(value) == value
    assert writer.plain


Pair = namedtuple("Pair", "a b")  # noqa: PYI024


class Level(enum.IntEnum):
    LOW = 1


class Name(str):
    """A string with a meaning."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "plain"),
    [(Pair(1, 2), (1, 2)), (Level.LOW, 1), (Name("x"), "x"), (OrderedDict(a=1), {"a": 1}), ({Name("x"): 1}, {"x": 1})],
)
def test_a_subclass_travels_as_its_base(value: Any, plain: Any) -> None:
    assert_exact(through_text(value), plain)


class Colour(enum.Enum):
    RED = 1


STRUCTURED = np.zeros(1, [("a", "i4")])


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [object()]}, "$.a[0]"),
        ((1, print), "$[1]"),
        (Colour.RED, "$"),
        (np.ma.masked_array([1]), "$"),
        (STRUCTURED, "$"),
        (STRUCTURED[0], "$"),
        ({1: Colour.RED}, "$.1"),
        ({Colour.RED: 1}, "$"),
        (np.array([1, print], object), "$[1]"),
    ],
)
def test_an_object_that_is_no_value_is_refused_with_its_path(value: Any, path: str) -> None:
    with pytest.raises(ValueMappingError) as caught:
        encode_exact(value)
    assert caught.value.path == path


def test_a_value_inside_itself_is_refused() -> None:
    value: list[Any] = []
    value.append([value, value])
    with pytest.raises(ValueMappingError, match="inside itself"):
        encode_exact(value)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = (value,)
    return value


def test_values_nest_down_to_the_limit_and_no_deeper() -> None:
    assert through_text(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    with pytest.raises(ValueMappingError, match="deep"):
        encode_exact(nested(MAX_DEPTH + 1))
    value: Any = 1
    for _ in range(MAX_DEPTH + 1):
        value = [value]
    with pytest.raises(ValueMappingError, match="deep"):
        decode_exact(value)


class Broken:
    """An object whose repr fails."""

    def __repr__(self) -> str:
        raise OSError("no repr")


def test_a_repr_is_cut_and_may_fail() -> None:
    assert brief("x" * 5000) == "'" + "x" * (MAX_TEXT - 1)
    assert brief(Broken()) == "<Broken whose repr failed>"


def test_dictionaries_of_any_keys_nest_as_deeply_as_lists() -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH):
        value = {1: value}
    assert through_text(value) == value


def test_an_array_without_dimensions_stays_one_inside_an_object_array() -> None:
    array = np.empty(1, object)
    array[0] = np.array(5)
    assert type(array[0]) is np.ndarray
    assert_exact(through_text(array), array)


@pytest.mark.parametrize("digits", [1, MAX_DIGITS])
def test_fractions_travel_up_to_a_number_of_digits(digits: int) -> None:
    value = Fraction(10**digits - 1, 7)
    assert through_text(value) == value


def test_a_fraction_of_more_digits_is_refused_before_it_is_printed() -> None:
    for numerator in (1 << 4 * MAX_DIGITS, 10 ** (MAX_DIGITS + 9)):
        with pytest.raises(ValueMappingError, match="digits"):
            encode_exact([Fraction(numerator, 7)])


def test_the_path_of_a_fault_under_a_key_that_is_no_string_names_the_key() -> None:
    with pytest.raises(ValueMappingError) as caught:
        encode_exact({1: 2, (3, 4): [print]})
    assert caught.value.path == "$.(3, 4)[0]"


def test_one_dtype_of_two_names_comes_back_as_numpy_prefers_it() -> None:
    back = through_text(np.longlong(3))
    assert (type(back), back.dtype) == (np.int64, np.dtype(np.longlong))


def test_a_call_has_each_of_its_arguments_in_the_exact_form():
    call = exact_call("move", ((1, 2),), {"by": np.float32(0.5)})
    assert (call.name, decode_exact(call.args[0])) == ("move", (1, 2))
    assert type(decode_exact(call.kwargs["by"])) is np.float32
