"""Every kind of environment, and what one can do wrong on request; a session over WebSocket, and one over HTTP.

For the tests of bad input and bad output.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
from fastapi import FastAPI
from pydantic import BaseModel
from starlette.testclient import TestClient

from openenv_gym.types import Action, Observation
from openenv_gym_server import Environment, create_app, create_gym_app

JSON = Any
NEW = {"X-OpenEnv-Session": "new"}

# --------------------------------------------------------------------------------------------- what goes wrong


class SilentError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("even this fails")


class NumberError(Exception):
    def __str__(self) -> str:
        return 7  # type: ignore[return-value]  # noqa: PLE0307 - that is its fault


class DemandingError(Exception):
    """Cannot be made again from its message alone."""

    def __init__(self, first: object, second: object) -> None:
        super().__init__(first, second)


RAISED: dict[str, BaseException] = {
    "words": RuntimeError("the board broke"),
    "nothing": ValueError(),
    "objects": RuntimeError({"a": object()}, 3, None),
    "key": KeyError(None),
    "bytes": OSError(b"\xff", 5),
    "silent": SilentError(),
    "number": NumberError(),
    "demanding": DemandingError(1, [2]),
    "surrogate": ValueError("half \ud800 a character"),
    "long": ValueError("x" * 1_000_000),
    "exit": SystemExit(3),
    "interrupt": KeyboardInterrupt(),
    "stop": StopIteration(object()),
    "recursion": RecursionError(),
    "group": ExceptionGroup("several", [ValueError(1)]),
}


class Stranger:
    """Nothing that could be an observation."""


RETURNED: dict[str, Any] = {
    "none": None,
    "integer": 3,
    "text": "a board",
    "list": [1, 2],
    "tuple": (1, 2.0),
    "class": Observation,
    "stranger": Stranger(),
    "set": {1},
}

UNSENDABLE: dict[str, Any] = {"object": object(), "twins": {1: "a", "1": "b"}, "lone": "\ud800"}

WRONG_REWARDS: dict[str, Any] = {"word": "much", "pair": [1.0, 2.0], "arrays": np.zeros(2)}


def perform(trick: str, good: Callable[..., Any]) -> Any:
    """What an environment gives that was asked for this trick; an observation if it is none."""
    if trick in RAISED:
        raise RAISED[trick]
    if trick in RETURNED:
        return RETURNED[trick]
    return good(UNSENDABLE.get(trick, 0.0))


# ------------------------------------------------------------------------------------------ kinds of environment


class TextAction(Action):
    trick: str = ""
    message: str = ""


class TextObservation(Observation):
    value: Any = None


class Text(Environment):  # type: ignore[type-arg]
    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed: int | None = None, trick: str = "") -> Any:  # type: ignore[override]
        return perform(trick, lambda value: TextObservation(value=value))

    def step(self, action: TextAction) -> Any:  # type: ignore[override]
        return perform(action.trick, lambda value: TextObservation(value=value, reward=1.0))


class AsyncText(Text):
    async def reset(self, seed: int | None = None, trick: str = "") -> Any:
        return super().reset(seed, trick)

    async def step(self, action: TextAction) -> Any:
        return super().step(action)


@dataclasses.dataclass
class DataAction:
    trick: str = ""
    amount: int = 0


@dataclasses.dataclass
class DataObservation:
    value: Any = None
    reward: Any = None
    done: Any = False


class Data(Environment):  # type: ignore[type-arg]
    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed: int | None = None, trick: str = "") -> Any:  # type: ignore[override]
        return perform(trick, DataObservation)

    def step(self, action: DataAction) -> Any:  # type: ignore[override]
        if action.trick in WRONG_REWARDS:
            return DataObservation(reward=WRONG_REWARDS[action.trick])
        return perform(action.trick, lambda value: DataObservation(value, reward=1.0))


class NumericAction(Action):
    trick: str = ""
    force: list[float] = [0.0]


class NumericObservation(Observation):
    value: Any = None
    position: list[float] = [0.0]


class Numeric(Environment):  # type: ignore[type-arg]
    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed: int | None = None, trick: str = "") -> Any:  # type: ignore[override]
        return perform(trick, lambda value: NumericObservation(value=value))

    def step(self, action: NumericAction) -> Any:  # type: ignore[override]
        return perform(action.trick, lambda value: NumericObservation(value=value, position=action.force, reward=1.0))


class Piece(BaseModel):
    square: tuple[int, int] = (0, 0)
    value: Any = None


class Board(BaseModel):
    pieces: dict[str, list[Piece]] = {}


class NestedAction(Action):
    trick: str = ""
    board: Board = Board()


class NestedObservation(Observation):
    board: Board


class Nested(Environment):  # type: ignore[type-arg]
    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed: int | None = None, trick: str = "") -> Any:  # type: ignore[override]
        return perform(trick, self._observed)

    def step(self, action: NestedAction) -> Any:  # type: ignore[override]
        return perform(action.trick, self._observed)

    def _observed(self, value: object) -> NestedObservation:
        return NestedObservation(board=Board(pieces={"white": [Piece(value=value)]}), reward=1.0)


NUMBERS = dict(enumerate(["", *RAISED, *RETURNED, *UNSENDABLE]))


class Machine(gymnasium.Env):  # type: ignore[type-arg]
    """Its actions are the numbers of the tricks."""

    action_space = gymnasium.spaces.Discrete(len(NUMBERS))
    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        return perform((options or {}).get("trick", ""), lambda value: (np.array([value]), {}))

    def step(self, action: int) -> Any:
        return perform(NUMBERS[int(action)], lambda value: (np.array([value]), 1.0, False, False, {}))


@dataclasses.dataclass(frozen=True)
class Kind:
    """One kind of environment under test."""

    name: str
    make_app: Callable[[], FastAPI]
    several: bool = True

    def action(self, trick: str = "") -> JSON:
        """An action, by the trick it asks for."""
        if self.name == "gymnasium":
            return {"action": next(number for number, name in NUMBERS.items() if name == trick)}
        return {"trick": trick}

    def keywords(self, trick: str) -> JSON:
        """Reset's keywords that ask for the trick."""
        return {"options": {"trick": trick}} if self.name == "gymnasium" else {"trick": trick}

    def __str__(self) -> str:
        return self.name


KINDS = [
    Kind("text", lambda: create_app(Text, TextAction, TextObservation)),
    Kind("async", lambda: create_app(AsyncText, TextAction, TextObservation)),
    Kind("dataclass", lambda: create_app(Data, DataAction, DataObservation)),
    Kind("numeric", lambda: create_app(Numeric, NumericAction, NumericObservation)),
    Kind("nested", lambda: create_app(Nested, NestedAction, NestedObservation)),
    Kind("instance", lambda: create_app(Text(), TextAction, TextObservation), several=False),
    Kind("gymnasium", lambda: create_gym_app(Machine, max_concurrent_envs=4)),
]


# ----------------------------------------------------------------------------------------------- two transports


class Wire:
    """A session over one transport: the answer to a request as its code and its text."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def reset(self, data: JSON) -> tuple[str, str]:
        raise NotImplementedError

    def step(self, data: JSON) -> tuple[str, str]:
        raise NotImplementedError

    def raw(self, of: str, content: str) -> tuple[str, str]:
        """A reset or step with this JSON text as its ``data``, or action."""
        raise NotImplementedError

    def steps(self) -> int:
        raise NotImplementedError


class Socket(Wire):
    def __init__(self, kind: Kind, socket: Any) -> None:
        super().__init__(kind)
        self._socket = socket

    def _asked(self, text: str) -> tuple[str, str]:
        self._socket.send_text(text)
        answer = self._socket.receive_json()
        data = answer["data"]
        if answer["type"] != "error":
            return "OK", json.dumps(data)
        assert isinstance(data["message"], str)
        assert data["message"]
        return data["code"], json.dumps(data)

    def reset(self, data: JSON) -> tuple[str, str]:
        return self._asked(json.dumps({"type": "reset", "data": data}))

    def step(self, data: JSON) -> tuple[str, str]:
        return self._asked(json.dumps({"type": "step", "data": data}))

    def raw(self, of: str, content: str) -> tuple[str, str]:
        return self._asked(f'{{"type": "{of}", "data": {content}}}')

    def steps(self) -> int:
        return int(json.loads(self._asked('{"type": "state"}')[1])["step_count"])


class Http(Wire):
    CODES = {200: "OK", 422: "VALIDATION_ERROR", 500: "EXECUTION_ERROR"}

    def __init__(self, kind: Kind, client: TestClient) -> None:
        super().__init__(kind)
        self._client = client
        self._headers = {"X-OpenEnv-Session": client.post("/reset", headers=NEW).headers["X-OpenEnv-Session"]}

    def _asked(self, path: str, text: str) -> tuple[str, str]:
        answer = self._client.post(path, headers=self._headers, content=text)
        if answer.headers["content-type"] == "application/json":
            answer.json()
        else:
            assert answer.text == "Internal Server Error"
        return self.CODES[answer.status_code], answer.text

    def reset(self, data: JSON) -> tuple[str, str]:
        return self._asked("/reset", json.dumps(data))

    def step(self, data: JSON) -> tuple[str, str]:
        return self._asked("/step", json.dumps({"action": data}))

    def raw(self, of: str, content: str) -> tuple[str, str]:
        return self._asked(f"/{of}", content if of == "reset" else f'{{"action": {content}}}')

    def steps(self) -> int:
        return int(self._client.get("/state", headers=self._headers).json()["step_count"])


@contextmanager
def wire_of(kind: Kind, transport: str, client: TestClient) -> Iterator[Wire]:
    if transport == "http":
        yield Http(kind, client)
        return
    with client.websocket_connect("/ws") as socket:
        yield Socket(kind, socket)


def assert_plays(wire: Wire) -> None:
    before = wire.steps()
    assert wire.step(wire.kind.action())[0] == "OK"
    assert wire.steps() == before + 1
    assert wire.reset({"seed": 1})[0] == "OK"
    assert wire.steps() == 0
