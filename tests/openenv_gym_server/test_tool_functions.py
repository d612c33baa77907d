"""One tool: its name, its schema and its arguments."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from fastmcp import FastMCP
from pydantic import AfterValidator, BaseModel, Field, Strict

from openenv_gym.types import ServerMode
from openenv_gym_server.tool_functions import ArgumentsError, ToolFunction, ToolOptions, options_of, tool


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    x: int
    y: int = 0


@dataclass
class Size:
    width: float


def simple(a: int, b: float = 2.0, c: str = "", d: bool = False, e: int | None = None) -> str:
    """Do something simple.

    Args:
        a: the first
        e: the last
    """
    return ""


def containers(
    a: list[int], b: dict[str, float], c: Literal["x", "y"] = "x", d: list[str] | None = None, e: int | str = 1
) -> str:
    return ""


def pairs(a: tuple[int, str], b: Annotated[int, Field(description="of its own", ge=1)] = 2) -> str:
    """Take a pair.

    Args:
        b: of the docstring
    """
    return ""


def nothing() -> None:
    return None


@pytest.mark.parametrize("function", [simple, containers, pairs, nothing])
def test_the_description_is_what_fastmcp_would_give(function: Any) -> None:
    server = FastMCP("test")
    server.tool(function)
    (theirs,) = asyncio.run(server.list_tools())
    ours = ToolFunction(function).description
    assert (ours.name, ours.description) == (theirs.name, theirs.description or "")
    assert ours.input_schema == theirs.parameters


def rich(
    colour: Colour, place: Place, size: Size, day: date, pair: tuple[int, str], name: str = "n"
) -> tuple[Any, ...]:
    return colour, place, size, day, pair, name


def test_arguments_become_what_the_signature_says() -> None:
    rich_tool = ToolFunction(rich)
    sent = {"colour": "blue", "place": {"x": 1}, "size": {"width": 2}, "day": "2026-01-02", "pair": [1, "a"]}
    given = rich_tool.function(**rich_tool.read(sent))
    assert given == (Colour.BLUE, Place(x=1), Size(2.0), date(2026, 1, 2), (1, "a"), "n")
    assert set(rich_tool.description.input_schema["$defs"]) == {"Colour", "Place", "Size"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, "a: Missing required argument"),
        ({"a": "1"}, "a: Input should be a valid integer"),
        ({"a": True}, "a: Input should be a valid integer"),
        ({"a": 1.5}, "a: Input should be a valid integer"),
        ({"a": None}, "a: Input should be a valid integer"),
        ({"a": 1, "b": "x"}, "b: Input should be a valid number"),
        ({"a": 1, "c": 3}, "c: Input should be a valid string"),
        ({"a": 1, "d": "true"}, "d: Input should be a valid boolean"),
        ({"a": 1, "z": 1}, "z: Unexpected keyword argument"),
        ({"z": 1}, "a: Missing required argument; z: Unexpected keyword argument"),
        ({"a": object()}, "cannot be read"),
    ],
)
def test_arguments_that_are_not_as_the_signature_wants_them_are_told_one_by_one(
    arguments: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ArgumentsError) as caught:
        ToolFunction(simple).read(arguments)
    assert complaint in str(caught.value)
    assert "'simple'" in str(caught.value)


def test_a_tool_without_parameters_takes_no_arguments() -> None:
    assert ToolFunction(nothing).read({}) == {}
    with pytest.raises(ArgumentsError, match="Unexpected"):
        ToolFunction(nothing).read({"a": 1})


def test_a_parameter_may_be_lenient_and_an_integer_of_any_size() -> None:
    def lenient(a: Annotated[int, Strict(strict=False)], b: int = 1) -> None:
        return None

    assert ToolFunction(lenient).read({"a": "3"})["a"] == 3
    assert ToolFunction(simple).read({"a": 2**80})["a"] == 2**80


def exits(value: int) -> int:
    raise SystemExit(value)


def test_a_types_own_validator_may_raise_anything() -> None:
    def strange(a: Annotated[int, AfterValidator(exits)]) -> None:
        return None

    with pytest.raises(ArgumentsError, match="3"):
        ToolFunction(strange).read({"a": 3})


def test_what_has_no_annotation_takes_anything() -> None:
    def free(a, b=3):  # type: ignore[no-untyped-def]
        return a, b

    free_tool = ToolFunction(free)
    assert free_tool.read({"a": [1, {"x": None}]}) == {"a": [1, {"x": None}], "b": 3}
    assert free_tool.description.input_schema["properties"] == {"a": {}, "b": {"default": 3}}


def test_parameters_may_have_any_name() -> None:
    def odd(
        json: int, schema: int, model_config: int, _hidden: int = 0, self_: int = 0, validate: int = 0
    ) -> list[int]:
        return [json, schema, model_config, _hidden, self_, validate]

    odd_tool = ToolFunction(odd)
    assert odd_tool.function(**odd_tool.read({"json": 1, "schema": 2, "model_config": 3})) == [1, 2, 3, 0, 0, 0]


def test_a_default_that_json_does_not_have_is_left_out_of_the_schema() -> None:
    marker = object()

    def hidden(a: Any = marker) -> bool:
        return a is marker

    hidden_tool = ToolFunction(hidden)
    assert hidden_tool.description.input_schema["properties"] == {"a": {}}
    assert hidden_tool.function(**hidden_tool.read({}))


def positional(a: int, /) -> None:
    return None


def variable(*a: int) -> None:
    return None


def keywords(**a: int) -> None:
    return None


def array(a: np.ndarray) -> None:  # type: ignore[type-arg]
    return None


def function_of(a: functools.partial[int]) -> None:
    return None


def callback(a: Callable[[int], int]) -> None:
    return None


def unresolved(a: Unheard) -> None:  # type: ignore[name-defined]  # noqa: F821
    return None


def generator(a: int):  # type: ignore[no-untyped-def]
    yield a


async def async_generator(a: int):  # type: ignore[no-untyped-def]
    yield a


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (positional, "positional-only"),
        (variable, r"\*a"),
        (keywords, r"\*\*a"),
        (array, "cannot come from JSON"),
        (function_of, "JSON"),
        (callback, "no JSON Schema"),
        (unresolved, "Unheard"),
        (generator, "yields"),
        (async_generator, "yields"),
        (3, "cannot be read"),
    ],
)
def test_a_signature_that_cannot_be_a_tools_is_refused_with_its_reason(function: Any, complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        ToolFunction(function, ToolOptions(name="odd"))


@pytest.mark.parametrize("name", ["reset", "step", "state", "close"])
def test_reserved_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name!r}.*trainer"):
        tool(name=name)
    with pytest.raises(ValueError, match="another with name"):
        ToolFunction(nothing, ToolOptions(name=name))


@pytest.mark.parametrize("name", ["", "two words", "x" * 129, "line\nbreak", 3])
def test_a_name_is_a_short_text_without_spaces(name: Any) -> None:
    with pytest.raises(ValueError, match="without spaces"):
        tool(name=name)


def test_a_lambda_needs_a_name() -> None:
    assert ToolFunction(lambda: 1, ToolOptions(name="one")).function() == 1
    assert ToolFunction(lambda: 1).name == "<lambda>"


@pytest.mark.parametrize("mode", ["training", "Simulation", 3, []])
def test_there_are_two_modes(mode: Any) -> None:
    with pytest.raises(ValueError, match="'simulation', 'production' or None"):
        tool(mode=mode)
    assert [ToolOptions(each).mode for each in (None, *ServerMode)] == [None, "simulation", "production"]


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan")])
def test_a_limit_is_above_zero(timeout_s: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        tool(timeout_s=timeout_s)


def test_marking_leaves_the_function_as_it_is() -> None:
    @tool
    def one() -> int:
        return 1

    @tool(mode="production", name="zwei", timeout_s=2.0)
    def two() -> int:
        return 2

    assert (one(), two()) == (1, 2)
    assert options_of(one) == ToolOptions()
    assert options_of(two) == ToolOptions("production", "zwei", 2.0)
    assert options_of(nothing) is None
    assert options_of(3) is None


class Callable_:
    """Says hello."""

    __name__ = "hello"

    async def __call__(self, name: str) -> str:
        return f"hello {name}"


def test_anything_callable_with_a_signature_can_be_a_tool() -> None:
    hello = ToolFunction(Callable_())
    assert hello.is_async
    assert list(hello.description.input_schema["properties"]) == ["name"]
    part = ToolFunction(functools.partial(simple, b=1.0), ToolOptions(name="part"))
    assert part.read({"a": 1})["b"] == 1.0
    with pytest.raises(ArgumentsError, match="valid integer"):
        part.read({"a": "1"})
    place = ToolFunction(Size, ToolOptions(name="size"))
    assert place.function(**place.read({"width": 2})) == Size(2.0)
    assert not part.is_async


def test_a_description_is_made_once_for_all_instances_of_a_class() -> None:
    class Doors:
        def look(self, where: str) -> str:
            return where

    assert ToolFunction(Doors().look)._face is ToolFunction(Doors().look)._face


def test_a_docstring_may_describe_what_is_no_parameter() -> None:
    def look(a: int) -> None:
        """Look.

        Args:
            a: the first
            b: long gone
        """

    assert ToolFunction(look).description.input_schema["properties"] == {
        "a": {"description": "the first", "type": "integer"}
    }


def test_a_long_list_of_faults_is_cut() -> None:
    with pytest.raises(ArgumentsError) as caught:
        ToolFunction(nothing).read({f"unknown_{index}": 1 for index in range(1000)})
    assert len(str(caught.value)) < 2000


def test_what_cannot_be_called_is_no_tool() -> None:
    with pytest.raises(TypeError, match=r"got 'production'; options go by name"):
        tool("production")  # type: ignore[type-var]


def test_an_argument_that_json_does_not_have_is_told_and_never_taken_for_null() -> None:
    def measure(size: float | None = None) -> None:
        raise AssertionError

    with pytest.raises(ArgumentsError, match=r"finite number at \$\.size"):
        ToolFunction(measure).read({"size": float("nan")})


def test_a_complaint_does_not_repeat_a_long_name() -> None:
    with pytest.raises(ArgumentsError) as caught:
        ToolFunction(lambda: None, ToolOptions(name="look")).read({"k" * 100_000: 1})
    assert len(str(caught.value)) < 300


def test_a_default_that_json_does_not_have_is_no_part_of_the_schema_and_holds_all_the_same() -> None:
    def wait(seconds: float = float("inf"), at: Place | None = None) -> float:
        return seconds

    made = ToolFunction(wait)
    properties = made.description.input_schema["properties"]
    assert "default" not in properties["seconds"]
    assert properties["at"]["default"] is None
    assert made.function(**made.read({})) == float("inf")
