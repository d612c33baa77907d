"""Info dictionaries for stock peers and for ours: plain JSON, and the exact form where that loses something."""

from __future__ import annotations

import datetime
import json
import math
import uuid
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openenv_gym.errors import ValueMappingError
from openenv_gym.info import Opaque, decode_exact, decode_info, encode_exact, encode_info
from openenv_gym.json_text import decode_json, encode_json
from tests.openenv_gym.spaces.strategies import typed_error
from tests.openenv_gym.test_exact import HASHABLE, VALUES, assert_exact


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(HASHABLE, VALUES, max_size=4))
def test_any_info_comes_back_with_its_exact_types_and_has_a_plain_form(info: dict[Any, Any]) -> None:
    plain, exact = (decode_json(encode_json(form)) for form in encode_info(info))
    json.loads(json.dumps(plain))
    assert_exact(decode_info(plain, exact), info)  # type: ignore[arg-type]


@pytest.mark.parametrize("info", [{}, {"a": 1, "b": [1.5, None, {"c": "x"}], "d": True}])
def test_an_info_that_json_keeps_has_no_exact_form(info: Any) -> None:
    assert encode_info(info) == (info, None)
    assert decode_info(info, None) == info


def test_a_peer_that_sent_nothing_gives_an_empty_info() -> None:
    assert decode_info(None, None) == {}


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float64(1.5), 1.5),
        (np.float32(0.5), 0.5),
        (np.longdouble(0.5), 0.5),
        (np.float16(math.nan), "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (np.int8(3), 3),
        (np.bool_(True), True),
        (np.complex64(1 + 2j), [1.0, 2.0]),
        (complex(math.nan, 1), ["NaN", 1.0]),
        (np.array([[1, 2]], ">i2"), [[1, 2]]),
        (np.array([1.0, math.nan], np.longdouble), [1.0, "NaN"]),
        (np.array([1j]), [[0.0, 1.0]]),
        (np.array(["a", "é"]), ["a", "é"]),
        (np.array([1, (2, b"x"), print], object), [1, [2, "eA=="], None]),
        (np.datetime64("2020-01-02"), "2020-01-02"),
        ((1, (2,)), [1, [2]]),
        ({3}, [3]),
        (frozenset([3]), [3]),
        (b"\xff", "/w=="),
        (bytearray(b"\xff"), "/w=="),
        ({1: 2, (1, 2): 3, np.int64(4): 5, "\ud800": 6}, {"1": 2, "(1, 2)": 3, "4": 5, "?": 6}),
        (2**70, 2**70),
        (2**5000, hex(2**5000)),
        ("\ud800x", "?x"),
        (datetime.datetime(2020, 1, 2, 3, tzinfo=datetime.UTC), "2020-01-02T03:00:00+00:00"),
        (datetime.time(3), "03:00:00"),
        (datetime.timedelta(seconds=1.5), 1.5),
        (Decimal("1.50"), "1.50"),
        (Fraction(1, 3), "1/3"),
        (uuid.UUID(int=0), "00000000-0000-0000-0000-000000000000"),
    ],
)
def test_the_plain_form_of_a_value_is_this(value: Any, plain: Any) -> None:
    form, exact = encode_info({"v": value})
    assert repr(form) == repr({"v": plain})
    encode_json(form)
    assert exact is not None


def test_an_object_that_cannot_travel_is_left_out_of_the_plain_form_and_becomes_opaque() -> None:
    info = {"live": print, "list": [print, 1], "dict": {"live": print, "n": 1}}
    plain, exact = encode_info(info)
    assert plain == {"list": [None, 1], "dict": {"n": 1}}
    back = decode_info(plain, decode_json(encode_json(exact)))
    opaque = Opaque("builtins.builtin_function_or_method", "<built-in function print>")
    assert back == {"live": opaque, "list": [opaque, 1], "dict": {"live": opaque, "n": 1}}
    assert list(back) == list(info)


def test_an_opaque_that_is_passed_on_stays_the_same() -> None:
    info = {"live": Opaque("module.Type", "text")}
    assert decode_info(*encode_info(info)) == info
    assert encode_info(info)[0] == {}


def test_an_info_inside_itself_does_not_kill_the_step() -> None:
    info: dict[str, Any] = {"n": np.int64(1)}
    info["self"] = [info, info]
    plain, exact = encode_info(info)
    encode_json(plain)
    assert plain["n"] == 1
    assert isinstance(decode_info(plain, exact)["self"], list)


def test_an_info_nested_too_deeply_does_not_kill_the_step() -> None:
    value: Any = 1
    for _ in range(500):
        value = [value]
    plain, exact = encode_info({"deep": value})
    encode_json(plain)
    assert isinstance(decode_info(plain, exact)["deep"], list)


def test_an_exact_form_that_is_no_dictionary_is_a_typed_error() -> None:
    with pytest.raises(ValueMappingError) as caught:
        decode_info({}, [1])
    assert caught.value.path == "$"


def test_the_exact_functions_are_part_of_this_module() -> None:
    assert decode_exact(encode_exact((1, 2))) == (1, 2)


@pytest.mark.parametrize("plain", ["text", ["ab"], [["a", 1]], 3, True, 0, ""])
def test_a_plain_form_that_is_no_dictionary_is_refused(plain: Any) -> None:
    with pytest.raises(ValueMappingError) as caught:
        decode_info(plain, None)
    assert caught.value.path == "$"


@pytest.mark.parametrize("exact", ["text", [["a", 1]], 3, {"$": "tuple", "items": []}, {"$": 3}, {"$": "dict"}, False])
@pytest.mark.parametrize("plain", [{}, "text", None])
def test_an_exact_form_that_is_no_dictionary_is_refused_whatever_the_plain_one(plain: Any, exact: Any) -> None:
    with pytest.raises(ValueMappingError) as caught:
        decode_info(plain, exact)
    assert caught.value.path == "$"


ANY_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(ANY_JSON, ANY_JSON)
def test_any_two_forms_are_a_dictionary_or_a_typed_error(plain: Any, exact: Any) -> None:
    with typed_error(ValueMappingError):
        assert isinstance(decode_info(plain, exact), dict)
