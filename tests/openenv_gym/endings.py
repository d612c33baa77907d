"""An environment whose episodes end in every way there is, for the tests of adapters to other libraries."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

ENDINGS = ((True, False), (False, True), (True, True))
"""terminated and truncated of the last step, one episode after another."""


class Endings(gymnasium.Env):
    """Episodes of three steps; observations, rewards and infos are random, so that every draw of the generator counts.

    Args:
        kind: what an observation is: "box", "discrete", "dict" or "tuple".
        talkative: whether there are infos.
        render_mode: "rgb_array" or None.
    """

    metadata = {"render_modes": ["rgb_array"]}
    spaces_of = {
        "box": spaces.Box(-9, 9, (2, 3), np.float32),
        "discrete": spaces.Discrete(5),
        "dict": spaces.Dict({"place": spaces.Box(-9, 9, (2,), np.float64), "room": spaces.Discrete(4)}),
        "tuple": spaces.Tuple((spaces.Box(-9, 9, (2,), np.float64), spaces.MultiBinary(3))),
        "text": spaces.Text(5),
    }

    def __init__(self, kind: str = "box", talkative: bool = True, render_mode: str | None = None) -> None:
        self.observation_space = self.spaces_of[kind]
        self.action_space = spaces.Discrete(3)
        self.talkative = talkative
        self.render_mode = render_mode
        self.colour = "grey"
        self._episode = -1
        self._steps = 0

    def _observe(self) -> Any:
        self.observation_space.seed(int(self.np_random.integers(2**31)))
        return self.observation_space.sample()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        self._episode += 1
        if not self.talkative:
            return self._observe(), {}
        return self._observe(), {"begun": float(self.np_random.random()), "asked": str(options)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        terminated, truncated = ENDINGS[self._episode % 3] if self._steps == 3 else (False, False)
        info: dict[str, Any] = {}
        if self.talkative:
            info = {
                "step": self._steps,
                "luck": float(self.np_random.random()),
                "won": terminated,
                "vector": self.np_random.random(2, np.float32),
                "words": f"action {int(action)}",
                "inner": {"depth": 1, "_private": 2.5},
            }
            if self._steps == 2:
                info["rare"] = [1, "two"]
        return self._observe(), self.np_random.random() + int(action), terminated, truncated, info

    def render(self) -> Any:
        return np.full((4, 6, 3), self._steps, np.uint8)

    def sum(self, left: int, right: int = 0) -> int:
        """Something to call."""
        return left + right + self._steps
