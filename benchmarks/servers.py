"""The servers that are measured, each in a process of its own: ``python -m benchmarks.servers KIND`` reports its port.

All run under the same uvicorn with the same event loop, so that a ratio compares what stands on it.
"""

from __future__ import annotations

import contextlib
import importlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import uvicorn


@contextlib.contextmanager
def serving(kind: str) -> Iterator[str]:
    """Run a server for as long as the block lasts; gives its base URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.servers", kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        if not port:
            raise RuntimeError(f"the {kind} server did not start; its error stands above")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def event_loop() -> str:
    """The event loop that uvicorn's ``auto`` means here."""
    try:
        importlib.import_module("uvloop")
    except ImportError:
        return "asyncio"
    return "uvloop"


async def echo(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """The floor: an ASGI application that sends every text frame back."""
    if scope["type"] != "websocket":
        return
    await receive()
    await send({"type": "websocket.accept", "subprotocol": next(iter(scope["subprotocols"]), None)})
    while (event := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": event["text"]})


def stock_cartpole() -> Any:
    """CartPole as one would write it for the stock package."""
    import gymnasium  # noqa: PLC0415
    from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app  # noqa: PLC0415

    class CartPoleAction(Action):
        action: int

    class CartPoleObservation(Observation):
        obs: list[float] = []

    class CartPole(Environment[CartPoleAction, CartPoleObservation, State]):
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self) -> None:
            super().__init__()
            self._env = gymnasium.make("CartPole-v1", disable_env_checker=True)
            self._state = State()

        def reset(self, seed: int | None = None, episode_id: str | None = None, **_: Any) -> CartPoleObservation:
            obs, info = self._env.reset(seed=seed)
            self._state = State(episode_id=episode_id, step_count=0)
            return CartPoleObservation(obs=obs.tolist(), metadata=info)

        def step(self, action: CartPoleAction, timeout_s: float | None = None, **_: Any) -> CartPoleObservation:
            obs, reward, terminated, truncated, info = self._env.step(action.action)
            self._state.step_count += 1
            metadata = {"terminated": bool(terminated), "truncated": bool(truncated), **info}
            return CartPoleObservation(
                obs=obs.tolist(), reward=float(reward), done=bool(terminated or truncated), metadata=metadata
            )

        @property
        def state(self) -> State:
            return self._state

    return create_fastapi_app(CartPole, CartPoleAction, CartPoleObservation, max_concurrent_envs=8)


def our_cartpole(*, inline: bool) -> Any:
    """CartPole served by this project: as it is by default, on the event loop, or one thread a session."""
    from openenv_gym_server import create_gym_app  # noqa: PLC0415
    from openenv_gym_server.gym_environment import InlineGymEnvironment  # noqa: PLC0415

    InlineGymEnvironment.INLINE = inline
    return create_gym_app("CartPole-v1")


def main(kind: str) -> None:
    """Serve until terminated."""
    app = {
        "echo": lambda: echo,
        "stock": stock_cartpole,
        "thread": lambda: our_cartpole(inline=False),
        "inline": lambda: our_cartpole(inline=True),
    }[kind]()
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(app, log_level="warning", lifespan="off" if kind == "echo" else "auto")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1])
