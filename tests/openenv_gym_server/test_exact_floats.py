"""Tests of ``openenv_gym_server.exact_floats``, by tools whose arguments are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, Field

from openenv_gym_server.exact_floats import changed_integers
from openenv_gym_server.tool_functions import ArgumentsError, ToolFunction

HUGE = 10**310
ODD = 2**53 + 1


class Place(BaseModel):
    x: float
    height: Annotated[float, Field(alias="z")] = 0.0


@dataclass
class Route:
    stops: list[Place]
    length: float = 0.0


def read(annotation: Any, value: Any) -> Any:
    def take(a: Any) -> None: ...

    take.__annotations__ = {"a": annotation}
    return ToolFunction(take).read({"a": value})["a"]


@pytest.mark.parametrize("number", [HUGE, -HUGE, ODD, -ODD, 10**23])
@pytest.mark.parametrize(
    ("annotation", "shape", "place"),
    [
        (float, lambda number: number, "a"),
        (float | None, lambda number: number, "a"),
        (list[float], lambda number: [1, number], "a.1"),
        (tuple[int, float], lambda number: [number, number], "a.1"),
        (set[float], lambda number: [1, number], "a.1"),
        (dict[str, float], lambda number: {"b": number}, "a.b"),
        (Place, lambda number: {"x": number}, "a.x"),
        (Place, lambda number: {"x": 1, "z": number}, "a.z"),
        (Route, lambda number: {"stops": [{"x": 1}, {"x": number}]}, "a.stops.1.x"),
        (Route, lambda number: {"stops": [], "length": number}, "a.length"),
    ],
)
def test_an_integer_that_no_float_is_is_refused_where_a_float_is_wanted(
    annotation: Any, shape: Any, place: str, number: int
) -> None:
    with pytest.raises(ArgumentsError, match="a number that a float can be") as caught:
        read(annotation, shape(number))
    assert f"{place}: " in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (float, 2**53, 2.0**53),
        (float, 10**22, 1e22),
        (float, 2**1000, 2.0**1000),
        (float, 0.1234567890123456789, 0.12345678901234568),
        (int, HUGE, HUGE),
        (int | float, ODD, ODD),
        (Any, [HUGE], [HUGE]),
        (list[int], [ODD], [ODD]),
        (str, "9007199254740993", "9007199254740993"),
        (set[str], ["9007199254740993"], {"9007199254740993"}),
        (Annotated[float, AfterValidator(lambda number: number / 2)], 10**16, 5e15),
    ],
)
def test_every_other_number_arrives(annotation: Any, value: Any, expected: Any) -> None:
    got = read(annotation, value)
    assert (got, type(got)) == (expected, type(expected))


def test_what_was_made_of_other_containers_is_left_alone() -> None:
    assert list(changed_integers({"a": [HUGE]}, {"a": 1.0})) == []
    assert list(changed_integers({"a": {"b": HUGE}}, {"a": object()})) == []
