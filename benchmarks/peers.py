"""What this project is compared with, each a server in a process of its own: ``python -m benchmarks.peers KIND``.

It reports its port. The stock servers run as the stock package runs them, under uvicorn, with the same event loop as
this project's, so that a ratio compares what stands on it.
"""

from __future__ import annotations

import base64
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any

import gymnasium
import uvicorn
from fastmcp import FastMCP
from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation

from benchmarks.envs import Frames, Texts

CAPACITY = 256
SIZES = struct.Struct("<QQ")
"""What a client of the raw socket says first: the bytes of a request, and those of an answer."""


async def echo(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """The floor of one session: an ASGI application that sends every text frame back."""
    if scope["type"] != "websocket":
        return
    await receive()
    await send({"type": "websocket.accept", "subprotocol": next(iter(scope["subprotocols"]), None)})
    while (event := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": event["text"]})


def move_bytes(listener: socket.socket) -> None:
    """The floor of large messages: a socket that answers so many bytes with so many, one client at a time."""
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _answer(connection)


def _answer(connection: socket.socket) -> None:
    sizes = bytearray(SIZES.size)
    if not receive_into(connection, memoryview(sizes)):
        return
    request_size, answer_size = SIZES.unpack(sizes)
    request, answer = memoryview(bytearray(request_size)), bytes(answer_size)
    while receive_into(connection, request):
        connection.sendall(answer)


def receive_into(connection: socket.socket, buffer: memoryview) -> bool:
    """Fill the buffer; False where the peer has closed instead."""
    while buffer:
        count = connection.recv_into(buffer)
        if not count:
            return False
        buffer = buffer[count:]
    return True


# ------------------------------------------------------------------------------------- the stock package's servers


class PlainAction(Action):
    """Any of the environments' actions."""

    action: int


class VectorObservation(Observation):
    """CartPole's observation."""

    obs: list[float] = []


class FrameObservation(Observation):
    """A frame, as one writes it without thinking of speed."""

    obs: list[list[list[int]]] = []


class TextObservation(Observation):
    """A text; or a frame in base64."""

    obs: str = ""


def stock_app(make: Callable[[], gymnasium.Env], observation: type[Any], encode: Callable[[Any], Any]) -> Any:
    """A Gymnasium environment as one would write it for the stock package."""

    class Wrapped(Environment[PlainAction, Any, State]):
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self) -> None:
            super().__init__()
            self._env = make()
            self._state = State()

        def reset(self, seed: int | None = None, episode_id: str | None = None, **_: Any) -> Any:
            obs, info = self._env.reset(seed=seed)
            self._state = State(episode_id=episode_id, step_count=0)
            return observation(obs=encode(obs), metadata=info)

        def step(self, action: PlainAction, timeout_s: float | None = None, **_: Any) -> Any:
            obs, reward, terminated, truncated, info = self._env.step(action.action)
            self._state.step_count += 1
            done = bool(terminated or truncated)
            metadata = {"terminated": bool(terminated), "truncated": bool(truncated), **info}
            return observation(obs=encode(obs), reward=float(reward), done=done, metadata=metadata)

        @property
        def state(self) -> State:
            return self._state

    return create_fastapi_app(Wrapped, PlainAction, observation, max_concurrent_envs=CAPACITY)


def stock_tools() -> Any:
    """An environment with one tool, as one would write it for the stock package."""
    server = FastMCP("tools")

    @server.tool
    def echo(text: str) -> str:
        """Say it again."""
        return text

    class Tools(MCPEnvironment):
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self) -> None:
            super().__init__(server)

        def reset(self, seed: int | None = None, episode_id: str | None = None, **_: Any) -> Any:
            return Observation()

        def _step_impl(self, action: Any, timeout_s: float | None = None, **_: Any) -> Any:
            return Observation()

        @property
        def state(self) -> State:
            return State()

    return create_fastapi_app(Tools, CallToolAction, CallToolObservation, max_concurrent_envs=CAPACITY)


def _cartpole() -> gymnasium.Env:
    return gymnasium.make("CartPole-v1", disable_env_checker=True)


APPS: dict[str, Callable[[], Any]] = {
    "echo": lambda: echo,
    "stock": lambda: stock_app(_cartpole, VectorObservation, lambda obs: obs.tolist()),
    "stock-frames": lambda: stock_app(Frames, FrameObservation, lambda obs: obs.tolist()),
    "stock-base64": lambda: stock_app(Frames, TextObservation, lambda obs: base64.b64encode(obs.tobytes()).decode()),
    "stock-tools": stock_tools,
    "stock-texts": lambda: stock_app(Texts, TextObservation, lambda obs: obs),
}


def main(kind: str) -> None:
    """Serve until terminated."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(listener.getsockname()[1], flush=True)
    if kind == "raw":
        move_bytes(listener)
    config = uvicorn.Config(APPS[kind](), log_level="warning", lifespan="off" if kind == "echo" else "auto")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1])
