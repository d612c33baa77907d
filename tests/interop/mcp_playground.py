"""An environment with one tool for everything that standard MCP clients may meet, and its server in either mode."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from fastapi import FastAPI

from openenv_gym.tools import CallToolAction, CallToolObservation
from openenv_gym.types import Observation
from openenv_gym_server import tool
from openenv_gym_server.app import HTTPEnvServer
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.settings import ServerSettings
from tests.serving import serve

__all__ = ["MODES", "Playground", "playground"]

MODES = ("simulation", "production")


class Playground(MCPEnvironment):
    """Its ``made`` and ``closed`` count environments, ``held`` and ``release`` hold a call where a test wants it."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    made: ClassVar[list[Playground]] = []
    held: ClassVar[threading.Semaphore] = threading.Semaphore(0)
    release: ClassVar[threading.Semaphore] = threading.Semaphore(0)

    def __init__(self) -> None:
        super().__init__()
        self.resets = self.count = 0
        self.closed = False
        self.made.append(self)

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Observation:
        self.resets += 1
        self.count = 0
        return Observation()

    def after_tool(self, action: CallToolAction, observation: CallToolObservation) -> CallToolObservation:
        observation.reward = 0.5
        observation.done = action.tool_name == "finish"
        return observation

    @tool
    def add(self, a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    @tool
    def next_number(self) -> int:
        """Count the calls of this episode."""
        self.count += 1
        return self.count

    @tool
    def describe(self) -> dict[str, Any]:
        """An object."""
        return {"colour": "blue", "reward": "none of yours"}

    @tool
    def nothing(self) -> None:
        """Give nothing."""

    @tool
    def fail(self) -> str:
        """Raise."""
        raise ValueError("the door is stuck")

    @tool(timeout_s=0.05)
    async def dawdle(self) -> str:
        """Take longer than allowed."""
        import asyncio

        await asyncio.sleep(60)
        return "late"

    @tool
    def hold(self) -> str:
        """Wait until the test lets go."""
        self.held.release()
        assert self.release.acquire(timeout=20)
        return "let go"

    @tool
    def finish(self) -> str:
        """End the episode."""
        return "the end"

    def close(self) -> None:
        super().close()
        self.closed = True


@contextmanager
def playground(mode: str, **settings: Any) -> Iterator[tuple[str, HTTPEnvServer]]:
    """The URL of a server, and what it serves by."""
    Playground.made.clear()
    server = HTTPEnvServer(
        Playground,
        CallToolAction,
        CallToolObservation,
        env_name="playground",
        settings=ServerSettings(mode=mode, **settings),
    )
    app = FastAPI()
    server.register_routes(app)
    with serve(app) as url:
        yield url, server
