"""Tests of ``openenv_gym_server.plain``."""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, IntEnum
from pathlib import Path
from types import MappingProxyType
from uuid import UUID

import numpy as np
import pytest
from pydantic import BaseModel

from openenv_gym.errors import ValueMappingError
from openenv_gym_server.plain import plain_json, plain_reward


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
