"""Tests of ``openenv_gym_server.plain``."""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, IntEnum
from itertools import count
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from uuid import UUID

import numpy as np
import pytest
from pydantic import BaseModel

from openenv_gym.errors import ValueMappingError
from openenv_gym_server.plain import drained, plain_flag, plain_json, plain_record, plain_reward


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Model(BaseModel):
    when: datetime | None = None


@dataclass
class Record:
    value: object


class Tensor:
    def tolist(self) -> list[float]:
        return [1.0, float("inf")]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        ("é", "é"),
        (2**70, 2**70),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        ((1, [2.5]), [1, [2.5]]),
        (np.int16(3), 3),
        (np.bool_(True), True),
        (np.float32(0.5), 0.5),
        (np.float64("nan"), "NaN"),
        (np.longdouble(0.5), 0.5),
        (np.zeros((2, 0)), [[], []]),
        (np.array(3), 3),
        (np.array([1.0, np.nan], dtype=np.float16), [1.0, "NaN"]),
        (np.arange(4, dtype=">i4").reshape(2, 2), [[0, 1], [2, 3]]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([b"\x00\x01"]), ["AAE="]),
        (np.array([1, "a", None], dtype=object), [1, "a", None]),
        (np.datetime64("2024-01-01"), "2024-01-01"),
        (b"\xff", "/w=="),
        (bytearray(b"\xff"), "/w=="),
        (Colour.RED, "red"),
        (Level.LOW, 1),
        (
            {Colour.RED: 1, 2: 2, True: 3, None: 4, np.int64(7): 5, 1.5: 6},
            {"red": 1, "2": 2, "true": 3, "null": 4, "7": 5, "1.5": 6},
        ),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (OrderedDict(a=1), {"a": 1}),
        (deque([1]), [1]),
        ({1}, [1]),
        (Record([np.float64(1)]), {"value": [1.0]}),
        (Model(), {"when": None}),
        (datetime(2024, 1, 1, tzinfo=UTC), "2024-01-01T00:00:00Z"),
        (Path("/a"), "/a"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Tensor(), [1.0, "Infinity"]),
    ],
)
def test_a_value_becomes_plain_json(value: object, plain: object) -> None:
    assert plain_json(value) == plain
    json.dumps(plain_json(value), allow_nan=False)


def test_what_has_no_json_form_is_named_with_its_path() -> None:
    for value, path in (
        ({"a": [1, object()]}, "$.a[1]"),
        (Record(object()), "$.value"),
        (np.array([1j]), "$"),
        ({(1, 2): 3}, "$"),
        ({1: 1, "1": 2}, "$"),
    ):
        with pytest.raises(ValueMappingError) as caught:
            plain_json(value)
        assert caught.value.path == path


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(ValueMappingError):
        plain_json(loop)


def test_an_iterator_is_the_list_of_its_values() -> None:
    assert plain_json({"a": iter([1, float("nan")]), "b": map(str, (1,)), "c": (each for each in ({2},))}) == {
        "a": [1, "NaN"],
        "b": ["1"],
        "c": [[2]],
    }
    assert drained(zip("a", (1,), strict=True)) == [("a", 1)]
    assert drained({1: 2}) == {1: 2}


def test_an_iterator_without_an_end_is_refused_and_takes_neither_memory_nor_time() -> None:
    with pytest.raises(ValueMappingError, match=r"at most 1000000 values at \$\.a\[0\]") as caught:
        plain_json({"a": [count()]})
    assert caught.value.path == "$.a[0]"
    with pytest.raises(ValueMappingError, match="give a list"):
        drained(count())


def test_the_fault_within_an_iterator_has_its_path() -> None:
    with pytest.raises(ValueMappingError) as caught:
        plain_json({"a": iter([1, object()])})
    assert caught.value.path == "$.a[1]"


@pytest.mark.parametrize(
    ("reward", "plain", "kind"),
    [
        (None, None, type(None)),
        (True, True, bool),
        (1, 1, int),
        (0.5, 0.5, float),
        (np.float64(0.5), 0.5, float),
        (np.float32(0.5), 0.5, float),
        (np.longdouble(0.5), 0.5, float),
        (np.int8(3), 3, int),
        (np.array([2.0]), 2.0, float),
        (np.array(2), 2, int),
    ],
)
def test_a_reward_keeps_its_kind(reward: object, plain: object, kind: type) -> None:
    value, not_finite = plain_reward(reward)
    assert value == plain
    assert type(value) is kind
    assert not_finite is None


def test_a_reward_that_is_not_finite_is_named() -> None:
    assert plain_reward(float("-inf")) == (None, "-Infinity")
    assert plain_reward(np.float32("nan")) == (None, "NaN")


@pytest.mark.parametrize("reward", ["1", [1.0], np.zeros(2), {}])
def test_a_reward_that_is_no_number_is_refused(reward: object) -> None:
    with pytest.raises(ValueMappingError) as caught:
        plain_reward(reward)
    assert caught.value.path == "$.reward"


def test_a_record_is_its_attributes() -> None:
    point = SimpleNamespace(x=1, parts=[SimpleNamespace(y=(2, b"a"))], more={"z": SimpleNamespace(w=None)})
    assert plain_record(point) == {"x": 1, "parts": [{"y": [2, "YQ=="]}], "more": {"z": {"w": None}}}
    for value in (object(), SimpleNamespace(), SimpleNamespace, [object()]):
        with pytest.raises(ValueMappingError):
            plain_record(value)


@pytest.mark.parametrize(
    ("value", "flag"),
    [(True, True), (False, False), (None, False), (0, False), (1.0, True), (np.False_, False), (np.array([[1]]), True)],
)
def test_a_flag_is_true_or_false(value: object, flag: bool) -> None:
    assert plain_flag(value) is flag


@pytest.mark.parametrize("value", ["false", "", 2, float("nan"), [], [True], np.zeros(2), object(), np.array(["a"])])
def test_what_is_no_flag_is_not_taken_for_one(value: object) -> None:
    with pytest.raises(ValueMappingError) as caught:
        plain_flag(value)
    assert caught.value.path == "$.done"
