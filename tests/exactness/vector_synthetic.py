"""The synthetic environments with infos that Gymnasium can batch: importing it registers ``vectored/…-v0``.

Gymnasium makes an array of an action in an info, which fails where actions differ in shape; here it is in a list.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from tests.exactness.synthetic import SPACES, EverySpace, RichInfo

HERE = "tests.exactness.vector_synthetic"


class EveryBatchedSpace(EverySpace):
    """One Space as action and as observation; the action that came is told as an object."""

    def step(self, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, {**info, "action": [told(info["action"])]}


class BatchedInfo(RichInfo):
    """Infos of every kind but a number that no array holds; some keys now and then, for some environments alone."""

    def inform(self) -> dict[str, Any]:
        info = {key: value for key, value in super().inform().items() if key != "huge"}
        if self.np_random.uniform() < 0.5:
            info |= {"rare": 1.5, "rare array": info["array"] + 1, "rare dict": {"deep": {"deeper": "text"}}}
        return info

    def flags(self) -> tuple[Any, Any]:
        return bool(self.np_random.uniform() < 0.1), bool(self.np_random.uniform() < 0.1)


def told(value: Any) -> Any:
    """An action without what Gymnasium's batches lose: the order of a Dict's keys, an array that has one number."""
    if isinstance(value, dict):
        return {key: told(value[key]) for key in sorted(value)}
    if isinstance(value, np.floating):
        return np.asarray(value)
    return tuple(map(told, value)) if type(value) is tuple else value


# An empty Tuple has no part that could tell how many there are: Gymnasium itself cannot batch it.
BATCHED = [name for name in SPACES if name != "TupleEmpty"]

if "vectored/Info-v0" not in gymnasium.registry:
    for name in BATCHED:
        gymnasium.register(
            f"vectored/{name}-v0", f"{HERE}:EveryBatchedSpace", kwargs={"space": name}, max_episode_steps=40
        )
    gymnasium.register("vectored/Info-v0", f"{HERE}:BatchedInfo")
