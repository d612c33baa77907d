"""An environment whose episode ends by calls of its tools, for the tests of MCP; it remembers what became of it."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

from fastapi import FastAPI

from openenv_gym.tools import CallToolAction, CallToolObservation
from openenv_gym.types import Observation, State
from openenv_gym_server.app import HTTPEnvServer
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.tool_functions import tool

TOP = 3
SECRET = "/srv/answers.json"


class Climb(MCPEnvironment):
    """Climb to the top, which ends the episode; a subclass of a test's own keeps the records of that test."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    made: ClassVar[list[Climb]] = []
    held: ClassVar[threading.Event] = threading.Event()

    def __init__(self) -> None:
        super().__init__()
        self.height = 0
        self.seeds: list[int | None] = []
        self.closed = False
        type(self).made.append(self)

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Observation:
        self.height = 0
        self.seeds.append(seed)
        return Observation(reward=0.0)

    @tool
    def climb(self, steps: int = 1) -> int:
        """Climb a few steps."""
        if not self.seeds:
            raise RuntimeError("no episode has begun")
        self.height += steps
        return self.height

    @tool
    def slip(self) -> str:
        raise FileNotFoundError(SECRET)

    @tool
    def crash(self) -> str:
        return "and after it the environment fails"

    @tool(timeout_s=0.05)
    def rest(self) -> str:
        type(self).held.wait(10.0)
        return "rested"

    @tool(mode="production")
    def ask(self) -> str:
        return "an agent asks"

    def after_tool(self, action: CallToolAction, observation: CallToolObservation) -> Any:
        if action.tool_name == "crash":
            raise FileNotFoundError(SECRET)
        observation.reward = float(self.height)
        observation.done = self.height >= TOP
        return observation

    @property
    def state(self) -> State:
        return State(step_count=self.height)

    def close(self) -> None:
        self.closed = True


def climber() -> type[Climb]:
    """A class with records of its own."""
    return type("Climber", (Climb,), {"made": [], "held": threading.Event()})


def server_of(env: Any, settings: ServerSettings | None = None) -> HTTPEnvServer:
    return HTTPEnvServer(env, CallToolAction, CallToolObservation, settings=settings)


def app_of(env: Any, mode: str = "simulation", settings: ServerSettings | None = None) -> FastAPI:
    app = FastAPI()
    server_of(env, settings).register_routes(app, mode)
    return app


def rpc(method: str, request_id: str | int | None = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def calling(name: str, session_id: str | None = None, **arguments: Any) -> dict[str, Any]:
    named = {} if session_id is None else {"session_id": session_id}
    return rpc("tools/call", name=name, arguments=arguments, **named)
