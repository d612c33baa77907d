"""Environments with tools beside OpenEnv's own: one text of an environment, two base classes, one client."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from openenv.core.env_server.http_server import create_app as create_stock_app
from openenv.core.env_server.mcp_types import CallToolAction as StockCall
from openenv.core.env_server.mcp_types import CallToolObservation as StockCalled
from openenv.core.generic_client import GenericEnvClient

from openenv_gym.tools import CallToolAction, CallToolObservation
from openenv_gym.types import Observation, State
from openenv_gym_server.app import create_app
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.tool_functions import tool
from tests.serving import serve

WRITTEN_FOR_OPENENV = '''
from typing import Any, Optional
from uuid import uuid4

from fastmcp import FastMCP
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.types import Action, Observation, State


class NoteEnvironment(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        mcp = FastMCP("notes")
        self.notes = []

        @mcp.tool
        def write(text: str, times: int = 1) -> int:
            """Write a note.

            Args:
                text: what to write
            """
            self.notes.extend([text] * times)
            return len(self.notes)

        @mcp.tool
        def read() -> list[str]:
            """Read all notes."""
            return self.notes

        @mcp.tool
        def find(text: str, exact: bool = False) -> dict:
            return {"found": text in self.notes, "exact": exact}

        @mcp.tool
        async def wait(seconds: float = 0.0) -> Optional[str]:
            return None

        @mcp.tool
        def fail(text: str) -> str:
            raise ValueError(text)

        super().__init__(mcp)

        @self.tool(mode="production")
        def who(a: int) -> str:
            """In production."""
            return "production"

        @self.tool(mode="simulation")
        def who(a: int) -> str:
            """In simulation."""
            return "simulation"

        @self.tool()
        def clear() -> str:
            """Forget."""
            self.notes.clear()
            return "cleared"

        self._mode = "simulation"
        self._state = State(episode_id=str(uuid4()), step_count=0)

    def reset(self, seed: Optional[int] = None, episode_id: Optional[str] = None, **kwargs: Any) -> Observation:
        self._state = State(episode_id=episode_id or str(uuid4()), step_count=0)
        return Observation(done=False, reward=0.0, metadata={"message": "ready"})

    def _step_impl(self, action: Action, timeout_s: Optional[float] = None, **kwargs: Any) -> Observation:
        return Observation(done=False, reward=0.0, metadata={"error": f"Unknown action type: {type(action).__name__}"})

    def step(self, action: Action, timeout_s: Optional[float] = None, **kwargs: Any) -> Observation:
        self._state.step_count += 1
        observation = super().step(action, timeout_s=timeout_s, **kwargs)
        observation.reward = 0.5
        return observation

    async def step_async(self, action: Action, timeout_s: Optional[float] = None, **kwargs: Any) -> Observation:
        self._state.step_count += 1
        observation = await super().step_async(action, timeout_s=timeout_s, **kwargs)
        observation.reward = 0.5
        return observation

    @property
    def state(self) -> State:
        return self._state
'''

CHANGED = {
    "openenv.core.env_server.mcp_environment": "openenv_gym_server",
    "openenv.core.env_server.types": "openenv_gym",
}


def environment_written_for_openenv(changed: dict[str, str] | None = None) -> type[Any]:
    text = WRITTEN_FOR_OPENENV
    for theirs, ours in (changed or {}).items():
        text = text.replace(f"from {theirs} import", f"from {ours} import")
    names: dict[str, Any] = {"__name__": "written_for_openenv"}
    exec(text, names)
    return names["NoteEnvironment"]


class NativeNotes(MCPEnvironment):
    """The same tools as methods."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []
        self._state = State()

    @tool
    def write(self, text: str, times: int = 1) -> int:
        """Write a note.

        Args:
            text: what to write
        """
        self.notes.extend([text] * times)
        return len(self.notes)

    @tool
    def read(self) -> list[str]:
        """Read all notes."""
        return self.notes

    @tool
    def find(self, text: str, exact: bool = False) -> dict:  # type: ignore[type-arg]
        return {"found": text in self.notes, "exact": exact}

    @tool
    async def wait(self, seconds: float = 0.0) -> None:
        return None

    @tool
    def fail(self, text: str) -> str:
        raise ValueError(text)

    @tool
    def clear(self) -> str:
        """Forget."""
        self.notes.clear()
        return "cleared"

    @tool(mode="production", name="who")
    def who_in_production(self, a: int) -> str:
        """In production."""
        return "production"

    @tool(mode="simulation", name="who")
    def who_in_simulation(self, a: int) -> str:
        """In simulation."""
        return "simulation"

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Observation:
        self._state = State(episode_id=episode_id, step_count=0)
        return Observation(reward=0.0, metadata={"message": "ready"})

    def step(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
        self._state.step_count += 1
        observation = super().step(action, timeout_s, **kwargs)
        observation.reward = 0.5
        return observation

    @property
    def state(self) -> State:
        return self._state


STEPS: list[dict[str, Any]] = [
    {"type": "list_tools"},
    {"type": "call_tool", "tool_name": "write", "arguments": {"text": "a"}},
    {"type": "call_tool", "tool_name": "write", "arguments": {"text": "b", "times": 2}},
    {"type": "call_tool", "tool_name": "read", "arguments": {}},
    {"type": "call_tool", "tool_name": "read"},
    {"type": "call_tool", "tool_name": "find", "arguments": {"text": "a"}},
    {"type": "call_tool", "tool_name": "fail", "arguments": {"text": "on purpose"}},
    {"type": "call_tool", "tool_name": "write", "arguments": {}},
    {"type": "call_tool", "tool_name": "write", "arguments": {"text": "a", "unknown": 1}},
    {"type": "call_tool", "tool_name": "unknown", "arguments": {}},
    {"type": "call_tool", "tool_name": "clear", "arguments": {}},
    {"type": "call_tool", "tool_name": "who", "arguments": {"a": 1}},
]


def played(url: str) -> list[Any]:
    """What OpenEnv's own client sees."""
    with GenericEnvClient(base_url=url).sync() as client:
        greeting = client.reset(episode_id="mine")
        results = [greeting, *(client.step(step) for step in STEPS)]
        state = client.state()
    return [*((each.observation, each.reward, each.done) for each in results), state]


@pytest.fixture(scope="module")
def stock() -> Iterator[list[Any]]:
    with serve(create_stock_app(environment_written_for_openenv(), StockCall, StockCalled)) as url:
        yield played(url)


@pytest.fixture(scope="module", params=["written for OpenEnv", "written for this project"])
def ours(request: Any) -> Iterator[list[Any]]:
    env = NativeNotes if request.param == "written for this project" else environment_written_for_openenv(CHANGED)
    with serve(create_app(env, CallToolAction, CallToolObservation)) as url:
        yield played(url)


def test_every_answer_has_the_same_fields_as_openenvs(ours: list[Any], stock: list[Any]) -> None:
    for step, mine, theirs in zip(["reset", *STEPS, "state"], ours, stock, strict=True):
        if isinstance(step, dict) and step.get("tool_name") in {"who", "clear"}:
            continue  # which OpenEnv does not hand to FastMCP, and so does not say of the result that it is wrapped
        assert shape(mine) == shape(theirs), step


def test_results_are_those_of_openenv_field_by_field(ours: list[Any], stock: list[Any]) -> None:
    for step, mine, theirs in zip(["reset", *STEPS, "state"], ours, stock, strict=True):
        comparable = comparable_form(step)
        assert comparable(mine) == comparable(theirs), step


def test_steps_are_counted_once_and_the_episode_keeps_its_name(ours: list[Any]) -> None:
    assert ours[-1] == {"episode_id": "mine", "step_count": len(STEPS)}


def comparable_form(step: Any) -> Callable[[Any], Any]:
    if not isinstance(step, dict):
        return lambda result: result
    return without_words if step["type"] == "call_tool" else without_order


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(shape(item) for item in value)
    return type(value)


def without_words(result: Any) -> Any:
    """The words of an error are each project's own; and only tools of a FastMCP server say that a result is wrapped."""
    observation, *rest = result
    observation = dict(observation)
    if observation["error"] is not None:
        observation["error"] = observation["error"]["error_type"]
    if observation["tool_name"] in {"who", "clear"}:
        observation["result"] = {**observation["result"], "meta": None}
    return observation, *rest


def without_order(result: Any) -> Any:
    """The tools by name. OpenEnv's own schema of a tool of one mode does not forbid further arguments."""
    observation, *rest = result
    tools = {each["name"]: each for each in observation["tools"]}
    tools["who"] = {**tools["who"], "input_schema": {**tools["who"]["input_schema"], "additionalProperties": False}}
    wait = tools.pop("wait")
    return tools, set(wait), rest


@pytest.mark.parametrize("make", [NativeNotes, functools.partial(environment_written_for_openenv, CHANGED)])
def test_an_action_without_a_tool_reaches_the_authors_own_hook_or_is_refused(make: Callable[[], Any]) -> None:
    from openenv_gym.errors import InvalidActionError
    from openenv_gym.types import Action

    env = make() if make is NativeNotes else make()()
    if make is NativeNotes:
        with pytest.raises(InvalidActionError):
            env.step(Action())
    else:
        assert env.step(Action()).metadata == {"error": "Unknown action type: Action"}
