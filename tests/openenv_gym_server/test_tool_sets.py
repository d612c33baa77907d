"""The tools of one object."""

from __future__ import annotations

from typing import Any

import pytest

from openenv_gym_server.tool_functions import ToolFunction, ToolOptions, tool
from openenv_gym_server.tool_sets import ToolSet


class Base:
    @tool
    def look(self) -> str:
        """Look around."""
        return "base"

    @tool(name="pick-up", timeout_s=3.0)
    def pick(self, what: str = "key") -> str:
        return f"base {what}"

    def hidden(self) -> str:
        return "hidden"


def call(tools: ToolSet, name: str, mode: str = "simulation") -> Any:
    found = tools.find(name, mode)
    return None if found is None else found.function()


def test_marked_methods_are_tools_and_others_are_not() -> None:
    tools = ToolSet(Base())
    assert tools.names == {"look", "pick-up"}
    assert [each.name for each in tools.in_mode("simulation")] == ["look", "pick-up"]
    assert call(tools, "look") == "base"
    assert call(tools, "hidden") is None
    assert not tools.any_async


def test_an_overridden_tool_stays_one_without_being_marked_again() -> None:
    class Derived(Base):
        def look(self, closely: bool = False) -> str:
            return "derived"

        async def pick(self, what: str = "key") -> str:
            """Pick up."""
            return "derived"

    tools = ToolSet(Derived())
    look = tools.find("look", "simulation")
    assert look is not None
    assert look.function() == "derived"
    assert look.description.description == "Look around."
    assert list(look.description.input_schema["properties"]) == ["closely"]
    pick = tools.find("pick-up", "simulation")
    assert pick is not None
    assert (pick.timeout_s, pick.description.description) == (3.0, "Pick up.")
    assert tools.any_async
    assert [each.name for each in tools.in_mode("simulation")] == ["look", "pick-up"]


def test_a_subclass_can_mark_a_tool_anew_or_have_it_no_more() -> None:
    class Derived(Base):
        look = None

        @tool(name="take")
        def pick(self, what: str = "key") -> str:
            return "taken"

    assert ToolSet(Derived()).names == {"take"}


def test_static_and_class_methods_can_be_tools() -> None:
    class Kinds:
        @tool
        @staticmethod
        def still(a: int = 1) -> int:
            return a

        @tool
        @classmethod
        def whose(cls, a: int = 1) -> str:
            return cls.__name__

        @staticmethod
        @tool
        def inner() -> int:
            return 3

    tools = ToolSet(Kinds())
    assert [call(tools, name) for name in ("still", "whose", "inner")] == [1, "Kinds", 3]


def test_one_name_can_be_another_tool_in_each_mode() -> None:
    class Modes:
        @tool(mode="simulation", name="who")
        def who_simulation(self) -> str:
            return "simulation"

        @tool(mode="production", name="who")
        def who_production(self) -> str:
            return "production"

        @tool(mode="production")
        def serious(self) -> str:
            return "yes"

    tools = ToolSet(Modes())
    assert [call(tools, "who", mode) for mode in ("simulation", "production")] == ["simulation", "production"]
    assert call(tools, "serious") is None
    assert tools.modes_of("serious") == ["production"]
    assert tools.modes_of("unknown") == []
    assert [each.name for each in tools.in_mode("simulation")] == ["who"]
    assert tools.names == {"who", "serious"}


@pytest.mark.parametrize(
    ("first", "second", "where"),
    [
        (None, None, "every mode"),
        ("simulation", "simulation", "simulation mode"),
        (None, "production", "every mode"),
        ("production", None, "every mode"),
    ],
)
def test_two_tools_of_one_name_in_one_mode_are_refused(first: str | None, second: str | None, where: str) -> None:
    tools = ToolSet(object())
    tools.add(ToolFunction(lambda: 1, ToolOptions(first, "one")))
    with pytest.raises(ValueError, match=f"'one' in {where}"):
        tools.add(ToolFunction(lambda: 2, ToolOptions(second, "one")))
    assert call(tools, "one", first or "simulation") == 1


def test_methods_that_share_a_name_are_refused() -> None:
    class Twice(Base):
        @tool(name="look")
        def look_again(self) -> str:
            return ""

    with pytest.raises(ValueError, match="'look' in every mode"):
        ToolSet(Twice())


def test_a_method_of_a_reserved_name_is_refused() -> None:
    class Wrong:
        @tool
        def reset(self) -> None:
            return None

    with pytest.raises(ValueError, match="'reset'"):
        ToolSet(Wrong())
