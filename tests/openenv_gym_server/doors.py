"""An environment with a few tools, one of each kind, for the tests of tools."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from openenv_gym.tools import CallToolAction, CallToolObservation
from openenv_gym.types import Observation
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.tool_functions import tool
from tests.text_envs import MISBEHAVIOUR


class Doors(MCPEnvironment):
    """A few tools, one of each kind."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.tasks: list[Any] = []

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Observation:
        return Observation(reward=0.0)

    @tool
    def look(self, direction: str = "north") -> str:
        """Look around."""
        return f"a door to the {direction}"

    @tool
    async def listen(self, direction: str = "north") -> str:
        await asyncio.sleep(0)
        return f"a noise from the {direction}"

    @tool
    def misbehave(self, how: str) -> str:
        raise MISBEHAVIOUR[how]

    @tool
    async def misbehave_later(self, how: str) -> str:
        raise MISBEHAVIOUR[how]

    @tool(timeout_s=0.05)
    async def wait(self) -> str:
        self.tasks.append(asyncio.current_task())
        await asyncio.Event().wait()
        return "never"

    @tool
    async def wait_in_spite(self) -> str:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.tasks.append("cancelled")

    @tool
    async def cancel_itself(self) -> None:
        raise asyncio.CancelledError

    @tool
    async def raise_timeout(self) -> None:
        raise TimeoutError("of its own")

    @tool
    def spend(self, seconds: float) -> str:
        time.sleep(seconds)
        return "done"

    @tool
    def where(self) -> int:
        return threading.get_ident()

    @tool(mode="production", name="who")
    def who_in_production(self) -> str:
        return "production"

    @tool(mode="simulation", name="who")
    def who_in_simulation(self) -> str:
        return "simulation"

    @tool(mode="production")
    def serious(self) -> str:
        return "yes"


def call(env: MCPEnvironment, name: str, timeout_s: float | None = None, **arguments: Any) -> CallToolObservation:
    observation = env.step(CallToolAction(tool_name=name, arguments=arguments), timeout_s=timeout_s)
    assert isinstance(observation, CallToolObservation)
    return observation


def error_of(observation: CallToolObservation) -> tuple[str, str]:
    assert observation.error is not None
    assert observation.result is None
    return observation.error.error_type.value, observation.error.message
