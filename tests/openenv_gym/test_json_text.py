"""Values as JSON text and back, and what has no such text."""

from __future__ import annotations

import dataclasses
import enum
import math
import uuid
from typing import Any

import pytest

from openenv_gym import json_text, messages
from openenv_gym.errors import ProtocolError, ValueMappingError
from openenv_gym.json_text import decode_json, encode_json, require_distinct_keys, shown

NAN = math.nan


def cyclic(kind: str) -> Any:
    if kind == "list":
        items: list[Any] = [1]
        items.append(items)
        return items
    mapping: dict[str, Any] = {"a": None}
    mapping["self"] = [mapping]
    return mapping


@pytest.mark.parametrize("text", [b"", b"[1", b"NaN", b"[Infinity]", b'"\\ud800"', b"\xff", b"[" * 100_000, "[\ud800]"])
def test_text_that_is_not_json_is_refused_with_its_start(text: bytes | str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_json(text)
    assert caught.value.received is not None
    assert len(caught.value.received) <= 200
    caught.value.received.encode()


@pytest.mark.parametrize(
    "value", [0.0, -0.0, 5e-324, 1.7976931348623157e308, 0.1, 2**64 - 1, -(2**63), 2**200, "é🚀", [], {}, None]
)
def test_a_json_value_survives_its_text(value: Any) -> None:
    back: Any = decode_json(encode_json({"v": [value]}))
    assert repr(back["v"][0]) == repr(value)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (NAN, "$"),
        ([1.0, -math.inf], "$[1]"),
        ({"a": {"b": (0, {"c": NAN})}}, "$.a.b[1].c"),
        ([[1, 2], ["x", None], [True, math.inf]], "$[2][1]"),
        ({NAN}, "$[0]"),
        (messages.Step(data={"action": [NAN]}), "$.data.action[0]"),
        ({"a": [1e308, 1e308], "b": NAN, "c": None}, "$.b"),
        ([object()], "$[0]"),
        ({"a": ["x", "\ud800"]}, "$.a[1]"),
        ({(1, 2): 3}, "$"),
        ({"a": {1j}}, "$.a"),
        (messages.Reset(data={"options": {"f": len}}), "$.data.options.f"),
    ],
)
def test_a_value_without_json_is_refused_with_its_path(value: Any, path: str) -> None:
    with pytest.raises(ValueMappingError) as caught:
        encode_json(value)
    assert caught.value.path == path


def test_nulls_and_finite_numbers_whose_sum_overflows_are_written() -> None:
    assert encode_json({"a": None, "b": [1e308, 1e308]}) == b'{"a":null,"b":[1e308,1e308]}'
    assert (
        encode_json({"a": "null", "b": [[1, 2], [0.5]], "c": (1.5, None)})
        == b'{"a":"null","b":[[1,2],[0.5]],"c":[1.5,null]}'
    )


@pytest.mark.parametrize("kind", ["list", "dict"])
def test_a_value_that_holds_itself_is_refused_and_the_search_ends(kind: str) -> None:
    with pytest.raises(ValueMappingError) as caught:
        encode_json(cyclic(kind))
    assert caught.value.path == "$"


def test_the_search_for_a_fault_ends_on_cycles() -> None:
    value = cyclic("list")
    value.append(object())
    assert json_text._find(value, json_text._has_no_json_form) == "$[2]"
    assert json_text._find(cyclic("dict"), json_text._is_not_finite) is None


def test_the_search_for_what_is_not_finite_is_left_out_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "_find", None)
    assert encode_json({"a": None, "b": [[0.5]]}, finite=True) == b'{"a":null,"b":[[0.5]]}'
    assert encode_json({"b": [[0.5]]}) == b'{"b":[[0.5]]}'


@pytest.mark.parametrize("leaf", [3, 0.5, "NaN", True, None])
def test_the_search_takes_nested_lists_a_level_at_a_time(leaf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python loop over the rows of a frame would take longer than everything else."""
    frame = [[[leaf, 1] for _ in range(20)] for _ in range(20)]
    places = json_text._parts
    visits: list[Any] = []
    monkeypatch.setattr(json_text, "_parts", lambda item: visits.append(item) or places(item))
    assert encode_json({"obs": frame, "reward": None}).endswith(b'"reward":null}')
    assert len(visits) <= 3


@pytest.mark.parametrize("depth", [1, 5, 40])
def test_an_infinity_deep_in_nested_lists_is_found(depth: int) -> None:
    value: Any = [1.5, math.inf]
    for _ in range(depth):
        value = [value]
    with pytest.raises(ValueMappingError) as caught:
        encode_json([None, value])
    assert caught.value.path == "$[1]" + "[0]" * depth + "[1]"


class Kind(enum.Enum):
    ONE = "1"


@dataclasses.dataclass
class Holder:
    table: dict[Any, Any]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({1: "a", "1": "b"}, "$.arguments"),
        ({"x": [0, ({1.5: "a", "1.5": "b"},)]}, "$.arguments.x[1][0]"),
        ({"x": {Kind.ONE: "a", "1": "b"}}, "$.arguments.x"),
        ({"x": {uuid.UUID(int=5): 1, str(uuid.UUID(int=5)): 2}}, "$.arguments.x"),
        ({"x": Holder({1: "a", "1": "b"})}, "$.arguments.x.table"),
        (messages.Step(data={"x": {1: "a", "1": "b"}}), "$.arguments.data.x"),
    ],
)
def test_keys_that_are_one_in_json_are_refused_with_their_place(value: Any, path: str) -> None:
    with pytest.raises(ValueMappingError) as caught:
        require_distinct_keys(value, "$.arguments")
    assert caught.value.path == path


@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        {},
        [1, [2, "x"]],
        {1: 2, 2: 3},
        {1: 2, "2": [1.5, {"a": (1, {2})}]},
        {(1,): 1, "a": 2},
        [Holder({1: 2})],
        object(),
    ],
)
def test_keys_that_differ_are_not(value: Any) -> None:
    require_distinct_keys(value)


def test_keys_are_looked_at_in_what_holds_itself_and_at_any_depth() -> None:
    for kind in ("list", "dict"):
        require_distinct_keys(cyclic(kind))
    deep: Any = {1: "a", "1": "b"}
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(ValueMappingError):
        require_distinct_keys(deep)


def test_any_value_can_be_shown() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    # How deep is too deep the interpreter's release decides.
    assert shown(deep) in {"a list that is nested too deeply to show", "[" * 200}
    assert shown({"a": 1}) == "{'a': 1}"
    assert len(shown("x" * 1000)) == 200
