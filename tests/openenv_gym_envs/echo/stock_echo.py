"""An echo environment on OpenEnv's own server, as OpenEnv's own is: the greeting is in the metadata."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from fastmcp import FastMCP
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from openenv.core.env_server.types import Observation, State


class EchoEnvironment(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        server = FastMCP("echo")
        server.tool(lambda message: message, name="unannotated")

        @server.tool
        def echo_message(message: str) -> str:
            return message

        @server.tool
        def echo_with_length(message: str) -> dict:
            return {"message": message, "length": len(message)}

        super().__init__(server)
        self._state = State(episode_id=str(uuid4()))

    def reset(self, seed=None, episode_id=None, **kwargs: Any):
        self._state = State(episode_id=episode_id or str(uuid4()))
        return Observation(reward=0.0, metadata={"status": "ready", "message": "Echo environment ready!"})

    def _step_impl(self, action, timeout_s=None, **kwargs: Any):
        return Observation(reward=0.0, metadata={"error": "no tool action"})

    async def step_async(self, action, timeout_s=None, **kwargs: Any):
        self._state.step_count += 1
        return await super().step_async(action, timeout_s=timeout_s, **kwargs)

    @property
    def state(self):
        return self._state


def stock_app():
    return create_app(EchoEnvironment, CallToolAction, CallToolObservation, env_name="echo", max_concurrent_envs=8)
