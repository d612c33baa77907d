"""The environments that are played, as Gymnasium's; ``peers.py`` has the same for the stock package.

``openenv-gym serve benchmarks.envs:Frames`` serves one.
"""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
from fastapi import FastAPI
from gymnasium.spaces import Box, Discrete

from openenv_gym.spaces.text import UnicodeText
from openenv_gym.tools import CallToolAction, CallToolObservation
from openenv_gym.types import Observation
from openenv_gym_server import ServerSettings, create_app, create_gym_app
from openenv_gym_server.gym_environment import InlineGymEnvironment
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.tool_functions import tool

SHAPE = (84, 84, 4)
TEXT_LENGTH = 4096

_random = np.random.default_rng(0)
FRAMES = _random.integers(0, 256, (8, *SHAPE), dtype=np.uint8)
TEXTS = ["".join(map(chr, _random.integers(32, 127, TEXT_LENGTH))) for _ in range(8)]


class Frames(gymnasium.Env):
    """Observations are stacked frames, as of Atari; making them costs nothing. Endless."""

    observation_space: gymnasium.Space[Any] = Box(0, 255, SHAPE, np.uint8)
    action_space = Discrete(2)
    _values: Any = FRAMES

    def __init__(self) -> None:
        self._count = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin with the first frame."""
        super().reset(seed=seed)
        self._count = 0
        return self._values[0], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Show the next frame."""
        self._count += 1
        return self._values[self._count % 8], 1.0, False, False, {}


class Texts(Frames):
    """Observations are texts of 4,096 characters; making them costs nothing. Endless."""

    observation_space = UnicodeText(TEXT_LENGTH)
    _values = TEXTS


class Sleepy(gymnasium.Env):
    """A step takes 1 ms, one in twenty 50 ms. Endless."""

    observation_space = Box(0, 1, (4,), np.float32)
    action_space = Discrete(2)
    _observation = np.zeros(4, np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin at once."""
        super().reset(seed=seed)
        return self._observation, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Sleep."""
        time.sleep(0.05 if self.np_random.random() < 0.05 else 0.001)
        return self._observation, 0.0, False, False, {}


def thread_cartpole(settings: ServerSettings) -> FastAPI:
    """CartPole with one thread a session, as environments are served that do not declare ``INLINE``."""
    InlineGymEnvironment.INLINE = False
    return create_gym_app("CartPole-v1", settings=settings)


class Tools(MCPEnvironment):
    """One tool, which costs nothing."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed: int | None = None, episode_id: str | None = None, **_: Any) -> Observation:
        """Nothing to do."""
        return Observation()

    @tool
    def echo(self, text: str) -> str:
        """Say it again.

        Args:
            text: what to say
        """
        return text


def tools(settings: ServerSettings) -> FastAPI:
    """An environment with a tool, in the mode that the settings say."""
    return create_app(Tools, CallToolAction, CallToolObservation, env_name="tools", settings=settings)
