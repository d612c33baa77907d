"""The same random episodes of two vector environments, compared call by call."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from tests.exactness.compare import assert_same_value

MODES = list(AutoresetMode)


def assert_same_vector_rollouts(expected: VectorEnv, found: VectorEnv, *, seed: Any, steps: int) -> int:
    """Reset both, then take the same random steps; gives how many episodes have ended.

    Where episodes are not reset by themselves, both reset those that have ended, by a mask.
    """
    found.action_space.seed(3)
    assert_same_value(expected.reset(seed=seed), found.reset(seed=seed), f"reset({seed})")
    ended = 0
    for step in range(steps):
        actions = found.action_space.sample()
        wanted, came = expected.step(actions), found.step(actions)
        assert_same_value(wanted, came, f"step {step}")
        over = came[2] | came[3]
        ended += int(over.sum())
        if over.any() and found.metadata["autoreset_mode"] is AutoresetMode.DISABLED:
            wanted, came = (envs.reset(options={"reset_mask": over.copy()}) for envs in (expected, found))
            assert_same_value(wanted, came, f"reset after step {step}")
    return ended


def all_masks(count: int) -> list[np.ndarray]:
    """Every mask of so many environments but the empty one."""
    return [np.array([bool(bits >> place & 1) for place in range(count)]) for bits in range(1, 2**count)]
