"""The environments of the interoperability matrix, written once and built from either package's base classes.

A ``Kit`` is what such a source would import; everything else is the same for ``openenv`` 0.10.0 and for this project.
Not for what only one of the two can do. ``clients.py`` has the other side, ``test_matrix.py`` brings them together.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Annotated, Any

import openenv.core.env_server as stock
from fastmcp import FastMCP
from openenv.core.env_server import mcp_environment as stock_mcp
from openenv.core.env_server import mcp_types as stock_tools
from pydantic import BaseModel, Field

import openenv_gym_server as ours
from openenv_gym import tools as our_tools

EPISODE_STEPS = 3


@dataclasses.dataclass(frozen=True)
class Kit:
    """The names that an environment's source imports from the package it is written for."""

    name: str
    action: type[Any]
    observation: type[Any]
    state: type[Any]
    environment: type[Any]
    mcp_environment: type[Any]
    call_tool_action: type[Any]
    call_tool_observation: type[Any]
    create_app: Callable[..., Any]


def stock_kit() -> Kit:
    return Kit(
        "stock",
        stock.Action,
        stock.Observation,
        stock.State,
        stock.Environment,
        stock_mcp.MCPEnvironment,
        stock_tools.CallToolAction,
        stock_tools.CallToolObservation,
        stock.create_app,
    )


def our_kit() -> Kit:
    return Kit(
        "ours",
        ours.Action,
        ours.Observation,
        ours.State,
        ours.Environment,
        ours.MCPEnvironment,
        our_tools.CallToolAction,
        our_tools.CallToolObservation,
        ours.create_app,
    )


KITS = {"stock": stock_kit, "ours": our_kit}


@dataclasses.dataclass(frozen=True)
class Case:
    """One environment of one kit, with an episode whose answers are known.

    Attributes:
        action, observation: the models it is served with.
        actions: an episode, as the JSON of each action with all its fields.
        refused: an action that its model refuses.
        failing: an action that its model takes and the environment fails at, with ``failure`` as its words.
        expected: seed → what ``read`` gives of the reset's observation and of each step's.
        read: an observation's fields → the part of them that the two packages have in common.
        fails_in_answer: whether a failure is an answer with an error in it (a tool's is) and not an error.
        reward: the reward of each step; None where the kit decides.
        ends: whether the last of ``actions`` ends the episode.
    """

    kit: Kit
    environment: type[Any]
    action: type[Any]
    observation: type[Any]
    actions: list[dict[str, Any]]
    refused: dict[str, Any]
    failing: dict[str, Any]
    failure: str
    expected: Callable[[int], list[Any]]
    read: Callable[[dict[str, Any]], Any] = dict
    fails_in_answer: bool = False
    reward: float | None = 1.5
    ends: bool = True

    def app(self, capacity: int) -> Any:
        return self.kit.create_app(self.environment, self.action, self.observation, max_concurrent_envs=capacity)


def text_case(kit: Kit) -> Case:
    action_base: Any = kit.action
    observation_base: Any = kit.observation
    environment_base: Any = episodic(kit)

    class Say(action_base):
        message: str

    class Heard(observation_base):
        text: str = ""

    class Parrot(environment_base):
        def first(self) -> Heard:
            return Heard(text=f"ready {self.rng.randrange(1000)}")

        def answer(self, action: Say) -> Heard:
            if action.message == "fail":
                raise ArithmeticError("parrots cannot count")
            return Heard(text=f"{action.message} {self.rng.randrange(1000)}")

    def expected(seed: int) -> list[Any]:
        rng = random.Random(seed)
        return [{"text": f"{word} {rng.randrange(1000)}"} for word in ("ready", *words)]

    words = ["hello", "", "Grüße 🙂"]
    return Case(
        kit,
        Parrot,
        Say,
        Heard,
        actions=[{"message": word} for word in words],
        refused={"message": 5},
        failing={"message": "fail"},
        failure="parrots cannot count",
        expected=expected,
    )


def numeric_case(kit: Kit) -> Case:
    action_base: Any = kit.action
    observation_base: Any = kit.observation
    environment_base: Any = episodic(kit)

    class Move(action_base):
        direction: Annotated[int, Field(ge=0, lt=4)]
        speed: float = 1.0

    class Place(observation_base):
        position: Annotated[list[float], Field(min_length=2, max_length=2)]
        turns: int = 0
        lost: bool = False

    class Rover(environment_base):
        def first(self) -> Place:
            self.at = [self.rng.random(), 0.0]
            return Place(position=self.at)

        def answer(self, action: Move) -> Place:
            if action.direction == 3:
                raise ArithmeticError("there is no going back")
            self.at = [self.at[0] + action.speed, float(action.direction)]
            return Place(position=self.at, turns=self._state.step_count, lost=action.direction == 2)

    def expected(seed: int) -> list[Any]:
        x = random.Random(seed).random()
        places: list[Any] = [{"position": [x, 0.0], "turns": 0, "lost": False}]
        for turn, move in enumerate(actions, start=1):
            x += move["speed"]
            places.append({"position": [x, float(move["direction"])], "turns": turn, "lost": move["direction"] == 2})
        return places

    actions = [{"direction": 0, "speed": 0.1}, {"direction": 1, "speed": -1e-300}, {"direction": 2, "speed": 2.0}]
    return Case(
        kit,
        Rover,
        Move,
        Place,
        actions=actions,
        refused={"direction": "north", "speed": 1.0},
        failing={"direction": 3, "speed": 1.0},
        failure="there is no going back",
        expected=expected,
    )


class Item(BaseModel):
    name: str
    size: int


def nested_case(kit: Kit) -> Case:
    action_base: Any = kit.action
    observation_base: Any = kit.observation
    environment_base: Any = episodic(kit)

    class Order(action_base):
        item: Item
        tags: list[str]
        note: str | None

    class Basket(observation_base):
        items: list[Item]
        best: Item | None
        counts: dict[str, int]

    class Shop(environment_base):
        def first(self) -> Basket:
            self.items: list[Item] = []
            return Basket(items=[], best=None, counts={"gift": self.rng.randrange(1000)})

        def answer(self, action: Order) -> Basket:
            if action.item.name == "fail":
                raise ArithmeticError("the shop is broken")
            self.items.append(action.item)
            counts = {tag: len(tag) for tag in action.tags}
            return Basket(items=self.items, best=max(self.items, key=lambda item: item.size), counts=counts)

    def expected(seed: int) -> list[Any]:
        baskets: list[Any] = [{"items": [], "best": None, "counts": {"gift": random.Random(seed).randrange(1000)}}]
        for count, order in enumerate(actions, start=1):
            bought = [action["item"] for action in actions[:count]]
            counts = {tag: len(tag) for tag in order["tags"]}
            baskets.append({"items": bought, "best": max(bought, key=lambda item: item["size"]), "counts": counts})
        return baskets

    actions: list[dict[str, Any]] = [
        {"item": {"name": "tea", "size": 1}, "tags": [], "note": None},
        {"item": {"name": "jam", "size": 3}, "tags": ["red", "sweet"], "note": "two"},
        {"item": {"name": "ink", "size": 2}, "tags": ["blue"], "note": ""},
    ]
    return Case(
        kit,
        Shop,
        Order,
        Basket,
        actions=actions,
        refused={"item": {"name": "tea"}, "tags": [], "note": None},
        failing={"item": {"name": "fail", "size": 0}, "tags": [], "note": None},
        failure="the shop is broken",
        expected=expected,
    )


def tools_case(kit: Kit) -> Case:
    def call(tool_name: str, **arguments: Any) -> dict[str, Any]:
        return {"type": "call_tool", "tool_name": tool_name, "arguments": arguments}

    def read(fields: dict[str, Any]) -> Any:
        error = fields["error"]
        return fields["tool_name"], fields["result"]["data"] if error is None else error["error_type"]

    def expected(seed: int) -> list[Any]:
        rng = random.Random(seed)
        first, rolled = rng.randrange(1000), rng.randrange(1000)
        spelt = {"letters": ["a", "ü"], "length": 2}
        return [("", first), ("roll", rolled), ("spell", spelt), ("none", "tool_not_found")]

    return Case(
        kit,
        toolbox(kit),
        kit.call_tool_action,
        kit.call_tool_observation,
        actions=[call("roll", sides=1000), call("spell", word="aü"), call("none")],
        refused={"type": "call_tool", "arguments": {}},
        failing=call("fail"),
        failure="the tool broke",
        expected=expected,
        read=read,
        fails_in_answer=True,
        reward=None,
        ends=False,
    )


def toolbox(kit: Kit) -> type[Any]:
    """Tools of a FastMCP server, counted as environments written for ``openenv`` do: in ``step`` and ``step_async``."""
    base: Any = kit.mcp_environment

    class Toolbox(base):
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self) -> None:
            self.rng = random.Random(0)
            super().__init__(_toolbox_server(self))
            self._state = kit.state()

        def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Any:
            self.rng = random.Random(seed)
            self._state = kit.state(episode_id=episode_id, step_count=0)
            return kit.call_tool_observation(tool_name="", result={"data": self.rng.randrange(1000)})

        def step(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
            self._state.step_count += 1
            return super().step(action, timeout_s=timeout_s, **kwargs)

        async def step_async(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
            self._state.step_count += 1
            return await super().step_async(action, timeout_s=timeout_s, **kwargs)

        def _step_impl(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
            raise NotImplementedError("there are only tools here")

        @property
        def state(self) -> Any:
            return self._state

    return Toolbox


def _toolbox_server(env: Any) -> FastMCP:
    mcp = FastMCP("toolbox")

    @mcp.tool
    def roll(sides: int) -> int:
        """Roll a die."""
        return env.rng.randrange(sides)

    @mcp.tool
    def spell(word: str) -> dict:
        """Take a word apart."""
        return {"letters": list(word), "length": len(word)}

    @mcp.tool
    def fail() -> str:
        """Fail."""
        raise ArithmeticError("the tool broke")

    return mcp


CASES = {"text": text_case, "numeric": numeric_case, "nested": nested_case, "tools": tools_case}


def episodic(kit: Kit) -> type[Any]:
    """A base class that keeps what the text, numeric and nested environments have in common."""
    base: Any = kit.environment

    class Episodic(base):
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self) -> None:
            super().__init__()
            self.rng = random.Random(0)
            self._state = kit.state()

        def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Any:
            self.rng = random.Random(seed)
            self._state = kit.state(episode_id=episode_id, step_count=0)
            return self.first()

        def step(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
            observation = self.answer_counted(action)
            observation.reward = 1.5
            observation.done = self._state.step_count == EPISODE_STEPS
            return observation

        def answer_counted(self, action: Any) -> Any:
            self._state.step_count += 1
            try:
                return self.answer(action)
            except ArithmeticError:
                self._state.step_count -= 1
                raise

        @property
        def state(self) -> Any:
            return self._state

    return Episodic
