"""An environment whose tools fail in every way, for the tests of ``MCPTools``."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from openenv_gym.tools import CallToolAction, CallToolObservation, ToolError
from openenv_gym.types import State
from openenv_gym_server import MCPEnvironment, create_app, tool
from openenv_gym_server.settings import ServerSettings

LAST_ROOM = 3


class Doors(MCPEnvironment):
    """Three rooms in a row: going on is rewarded, and the last one ends the episode."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._state, self.room = State(), 0

    def reset(self, seed=None, episode_id=None, **kwargs: Any):
        self._state, self.room = State(episode_id=episode_id), kwargs.get("room", 0)
        return {"room": self.room, "said": f"seed {seed}"}

    @tool
    def go(self, direction: Literal["on", "back"], steps: int = 1) -> str:
        """Go."""
        self.room += steps if direction == "on" else -steps
        return f"room {self.room}"

    @tool
    def count(self) -> dict[str, int]:
        """Count the steps."""
        return {"steps": self._state.step_count, "room": self.room}

    @tool
    def fall(self) -> str:
        """Fall."""
        raise ArithmeticError("it hurts")

    @tool(timeout_s=0.05)
    async def sleep(self) -> str:
        """Sleep too long."""
        await asyncio.sleep(20)
        return "awake"

    @tool
    def phone(self) -> str:
        """Phone somebody who cannot be reached."""
        return "…"

    @tool(mode="simulation")
    def cheat(self) -> str:
        """Only a trainer may."""
        return "cheated"

    def after_tool(self, action: CallToolAction, observation: CallToolObservation) -> CallToolObservation:
        self._state.step_count += 1
        if action.tool_name == "phone":
            error = ToolError(error_type="transport_error", message="the line is dead")
            observation = CallToolObservation(tool_name="phone", error=error)
        observation.reward = 1.0 if action.tool_name == "go" and observation.error is None else -0.5
        observation.done = self.room >= LAST_ROOM
        return observation

    @property
    def state(self) -> State:
        return self._state


def doors_app(mode: str = "simulation", max_concurrent_envs: int = 4):
    return served_doors(ServerSettings(mode=mode, max_concurrent_envs=max_concurrent_envs))


def served_doors(settings: ServerSettings | None = None):
    return create_app(Doors, CallToolAction, CallToolObservation, env_name="doors", settings=settings)
