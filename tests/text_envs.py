"""Small environments of models, for the tests of the server."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from pydantic import field_validator

from openenv_gym.types import Action, Observation, State
from openenv_gym_server.environment import Environment


class Say(Action):
    message: str
    volume: float = 1.0

    @field_validator("message")
    @classmethod
    def _is_clean(cls, message: str) -> str:
        if message == "rude":
            raise ValueError("rude words are refused")
        return message


class Heard(Observation):
    echo: str = ""
    extra: Any = None


class Echo(Environment[Say, Heard, State]):
    """Answers what it hears; a few messages have it misbehave."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self.closed = 0
        self.calls: list[str] = []
        self.threads: set[int] = {threading.get_ident()}

    def reset(self, seed: int | None = None) -> Heard:
        self.threads.add(threading.get_ident())
        self.calls.append(f"reset {seed}")
        return Heard(echo="ready")

    def step(self, action: Say) -> Heard:
        self.threads.add(threading.get_ident())
        self.calls.append(action.message)
        if action.message in MISBEHAVIOUR:
            raise MISBEHAVIOUR[action.message]
        if action.message in EXTRAS:
            return Heard(echo=action.message, extra=EXTRAS[action.message], reward=1.0)
        return Heard(echo=action.message, reward=1.0, done=action.message == "bye")

    def close(self) -> None:
        self.threads.add(threading.get_ident())
        self.closed += 1


class SilentError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("even this fails")


def _pydantic_error() -> Exception:
    try:
        Say.model_validate({"nothing": 1})
    except ValueError as error:
        return error
    raise AssertionError


MISBEHAVIOUR: dict[str, BaseException] = {
    "raise": RuntimeError("the environment broke"),
    "exit": SystemExit(3),
    "interrupt": KeyboardInterrupt(),
    "silent": SilentError(),
    "pydantic": _pydantic_error(),
    "surrogate": ValueError("half \ud800 a character"),
    "stop": StopIteration(),
}

EXTRAS: dict[str, Any] = {
    "array": np.arange(4, dtype=np.float32).reshape(2, 2),
    "nan": float("nan"),
    "bytes": b"\xff\x00",
    "object": object(),
    "lone": "\ud800",
}


class Bare:
    """No base class, no parameters, no state."""

    def reset(self) -> Heard:
        return Heard(echo="bare")

    def step(self, action: Say) -> Heard:
        return Heard(echo=action.message, reward=0.5)


class Broken(Echo):
    def __init__(self) -> None:
        raise OSError("no such device")


def make_echo() -> Echo:
    """A function, which says nothing of what it makes."""
    return Echo()


def make_bare() -> Bare:
    return Bare()


def make_broken() -> Broken:
    return Broken()
