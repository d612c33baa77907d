"""Gymnasium's environments on the stock package's server, as somebody would put them there by hand.

The stock wire has one ``done``: these say ``truncated`` in their metadata, where this project's client reads it. What
else they put there is their info.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app


class Act(Action):
    action: int


class Seen(Observation):
    obs: list[float] = []


class Walk(gymnasium.Env[Any, Any]):
    """A random walk whose episodes end at random, either way, and whose info has another key now and then."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = self.np_random.normal(size=2)
        return self.place.copy(), {"start": float(self.place[0])} | dict(options or {})

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.place = self.place + self.np_random.normal(size=2) + int(action)
        chance = self.np_random.uniform()
        info: dict[str, Any] = {"chance": float(chance)}
        if chance < 0.3:
            info |= {"rare": {"depth": 2, "word": "rarely"}, "list": [1, 2]}
        return self.place.copy(), float(self.place.sum()), bool(chance < 0.1), bool(chance > 0.95), info


class StockWalk(Environment[Act, Seen, State]):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self.env = Walk()

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Seen:
        obs, info = self.env.reset(seed=seed, options=kwargs)
        return Seen(obs=obs.tolist(), metadata=info)

    def step(self, action: Act, timeout_s: float | None = None, **kwargs: Any) -> Seen:
        obs, reward, terminated, truncated, info = self.env.step(action.action)
        flags = {"truncated": True} if truncated and not terminated else {}
        return Seen(obs=obs.tolist(), reward=reward, done=terminated or truncated, metadata=info | flags)

    @property
    def state(self) -> State:
        return State()


SPACES: dict[str, Any] = {"action_space": Walk.action_space, "observation_space": Walk.observation_space}
"""The stock server's schema cannot say these; they are given to the client."""


def stock_walks(capacity: int) -> Any:
    """The app of such a server."""
    return create_fastapi_app(StockWalk, Act, Seen, max_concurrent_envs=capacity)
