"""What a tool gave, as it travels."""

from __future__ import annotations

from collections import UserList
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from openenv_gym.tools import ToolErrorType
from openenv_gym_server.tool_results import failure, success, timed_out


class Place(BaseModel):
    x: int


@dataclass
class Size:
    width: float


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "data", "text"),
    [
        ("hello", "hello", "hello"),
        ("", "", ""),
        (3, 3, "3"),
        (True, True, "true"),
        (1.5, 1.5, "1.5"),
        ([1, "a"], [1, "a"], '[1,"a"]'),
        ((1, 2), [1, 2], "[1,2]"),
        (float("nan"), "NaN", "NaN"),
        (float("-inf"), "-Infinity", "-Infinity"),
        (b"\xff\x00", "/wA=", "/wA="),
        (np.float32(0.5), 0.5, "0.5"),
        (np.arange(3), [0, 1, 2], "[0,1,2]"),
        (date(2026, 1, 2), "2026-01-02", "2026-01-02"),
        (Colour.RED, "red", "red"),
        (2**70, 2**70, str(2**70)),
    ],
)
def test_a_value_is_given_plain_and_as_text_and_wrapped_into_an_object(value: Any, data: Any, text: str) -> None:
    observation = success("look", value)
    assert observation.error is None
    assert observation.result == {
        "content": [{"type": "text", "text": text, "annotations": None, "meta": None}],
        "structured_content": {"result": data},
        "meta": {"fastmcp": {"wrap_result": True}},
        "data": data,
        "is_error": False,
    }


@pytest.mark.parametrize(
    ("value", "data"),
    [({"a": 1}, {"a": 1}), ({1: 2}, {"1": 2}), (Place(x=1), {"x": 1}), (Size(2.0), {"width": 2.0}), ({}, {})],
)
def test_an_object_is_its_own_structured_content(value: Any, data: Any) -> None:
    result = success("look", value).result
    assert result["structured_content"] == result["data"] == data
    assert result["meta"] is None


def test_none_has_no_content() -> None:
    assert success("look", None).result == {
        "content": [],
        "structured_content": None,
        "meta": None,
        "data": None,
        "is_error": False,
    }


class Exits:
    def tolist(self) -> Any:
        raise SystemExit(1)


def _loop() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


@pytest.mark.parametrize(
    "value", [object(), {"deep": [object()]}, "half \ud800", Exits(), _loop(), lambda: 1, {(1, 2): 3}, UserList]
)
def test_a_value_without_json_form_is_an_error_that_says_the_result_is_lost(value: Any) -> None:
    observation = success("look", value)
    assert observation.result is None
    assert observation.error is not None
    assert observation.error.error_type is ToolErrorType.EXECUTION_ERROR
    assert "has run" in observation.error.message
    assert "is lost" in observation.error.message


def test_a_failure_has_its_kind_and_no_result() -> None:
    observation = failure("look", ToolErrorType.TIMEOUT, "too slow")
    assert (observation.tool_name, observation.result) == ("look", None)
    assert observation.error is not None
    assert observation.error.model_dump() == {"error_type": "timeout", "message": "too slow"}


def test_a_call_that_took_too_long_says_whether_it_had_begun() -> None:
    begun, waiting = timed_out("look", 0.5), timed_out("look", 0.5, begun=False)
    for observation in (begun, waiting):
        assert observation.error is not None
        assert observation.error.error_type is ToolErrorType.TIMEOUT
        assert "after 0.5 seconds" in observation.error.message
    assert "not undone" in begun.error.message
    assert "was not called" in waiting.error.message
