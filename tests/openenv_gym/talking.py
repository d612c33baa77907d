"""A text environment for the clients' tests, served by this project's server and by the stock package's."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import openenv.core.env_server as stock

import openenv_gym_server as ours
from openenv_gym import types
from openenv_gym.client import EnvClient
from openenv_gym.types import StepResult
from tests.serving import serve

WAIT_S = 20.0

gates: dict[str, threading.Event] = {}
"""``"wait NAME"`` waits at the gate of that name, which a test opens."""

arrivals: dict[str, threading.Event] = {}
"""Set when somebody waits at the gate."""


@contextlib.contextmanager
def gate(name: str) -> Iterator[threading.Event]:
    """A gate for a test, open at its end in any case; gives the event of an arrival."""
    gates[name], arrivals[name] = threading.Event(), threading.Event()
    try:
        yield arrivals[name]
    finally:
        gates[name].set()


class Talk:
    """What both environments do; mixed into an ``Environment`` of either make."""

    steps = 0
    episode_id: str | None = None

    def begin(self, episode_id: str | None, keywords: dict[str, Any]) -> str:
        self.steps, self.episode_id = 0, episode_id
        if keywords.get("fail"):
            raise ArithmeticError("no reset today")
        return f"ready {keywords}"

    def answer(self, message: str) -> str:
        self.steps += 1
        if message == "raise":
            raise ArithmeticError("it cannot count")
        word, _, name = message.partition(" ")
        if word == "wait":
            arrivals[name].set()
            assert gates[name].wait(WAIT_S)
        return message


class StockSay(stock.Action):
    message: str


class StockHeard(stock.Observation):
    text: str = ""


class StockTalk(Talk, stock.Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed=None, episode_id=None, **kwargs):
        return StockHeard(text=self.begin(episode_id, {"seed": seed, **kwargs}), metadata={"hint": "speak"})

    def step(self, action, timeout_s=None, **kwargs):
        return StockHeard(text=self.answer(action.message), reward=0.5, done=self.steps == 3)

    @property
    def state(self):
        return stock.State(episode_id=self.episode_id, step_count=self.steps)


class Say(types.Action):
    message: str


class Heard(types.Observation):
    text: str = ""


class OurTalk(Talk, ours.Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed=None, episode_id=None, **kwargs):
        return Heard(text=self.begin(episode_id, {"seed": seed, **kwargs}), metadata={"hint": "speak"})

    def step(self, action, timeout_s=None, **kwargs):
        return Heard(text=self.answer(action.message), reward=0.5, done=self.steps == 3)

    @property
    def state(self):
        return types.State(episode_id=self.episode_id, step_count=self.steps)


class TalkClient(EnvClient[str, str, dict[str, Any]]):
    """A client of one's own, as one is written for either server."""

    def _step_payload(self, action: str) -> dict[str, Any]:
        return {"message": action}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[str]:
        return StepResult(payload["observation"]["text"], payload["reward"], payload["done"], payload.get("metadata"))

    def _parse_state(self, payload: dict[str, Any]) -> dict[str, Any]:
        return payload


@contextlib.contextmanager
def serve_talk(make: str, *, capacity: int = 16) -> Iterator[str]:
    """Serve the environment with the server of that make: "ours" or "stock"."""
    if make == "ours":
        app = ours.create_app(OurTalk, Say, Heard, max_concurrent_envs=capacity)
    else:
        app = stock.create_fastapi_app(StockTalk, StockSay, StockHeard, max_concurrent_envs=capacity)
    with serve(app) as url:
        yield url
