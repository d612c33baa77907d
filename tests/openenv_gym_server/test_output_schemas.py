"""The schemas of tools' results."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any, Literal

import jsonschema
import numpy as np
import pytest
from pydantic import BaseModel, Field

from openenv_gym.tools import WRAPPED
from openenv_gym_server.output_schemas import output_schema
from openenv_gym_server.tool_results import success


class Place(BaseModel):
    x: float
    inner: Place | None = None
    named: str = Field(default="a", alias="Name")


@dataclass
class Size:
    width: float


class Colour(Enum):
    RED = "red"


def schema_of(hint: Any) -> Any:
    def give() -> Any: ...

    give.__annotations__ = {"return": hint}
    return output_schema(give)


@pytest.mark.parametrize(
    ("hint", "values"),
    [
        (int, [3, 2**70, np.int64(3)]),
        (float, [0.5, float("nan"), 1, np.float32(0.5)]),
        (bool, [True, np.bool_(False)]),
        (str, ["", "hello"]),
        (bytes, [b"\xff"]),
        (list[int], [[], [1], (1, 2)]),
        (tuple[int, str], [(1, "a")]),
        (int | str, [1, "a"]),
        (date, [date(2026, 1, 2)]),
        (Colour, [Colour.RED]),
        (list[Place], [[Place(x=1)]]),
        (Place, [Place(x=1, inner=Place(x=float("inf")))]),
        (Size, [Size(0.5)]),
        (Place | Size, [Place(x=1), Size(1.0)]),
        (dict, [{}, {"a": [1]}]),
        (dict[str, int], [{"a": 1}]),
    ],
)
def test_every_value_of_the_type_has_its_schema(hint: Any, values: list[Any]) -> None:
    schema = schema_of(hint)
    assert schema["type"] == "object"
    for value in values:
        result = success("give", value).result
        jsonschema.validate(result["structured_content"], schema)
        assert bool(schema.get(WRAPPED)) == (result["meta"] is not None)


@pytest.mark.parametrize(
    "hint",
    [None, Any, object, int | None, int | dict, list, list[Any], np.ndarray, Literal["a", 1], Exception],
)
def test_a_type_that_says_too_little_has_none(hint: Any) -> None:
    assert schema_of(hint) is None


def test_a_function_without_a_return_type_has_none() -> None:
    def give(a: int):  # type: ignore[no-untyped-def]
        return a

    assert output_schema(give) is None


def test_a_default_that_json_does_not_have_is_left_out() -> None:
    @dataclass
    class Wait:
        seconds: float = float("inf")
        times: int = 1

    properties = schema_of(Wait)["properties"]
    assert "default" not in properties["seconds"]
    assert properties["times"]["default"] == 1
