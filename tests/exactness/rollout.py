"""The same random episodes on a local and on a served environment, compared step by step."""

from __future__ import annotations

from typing import Any

import gymnasium

from tests.exactness.compare import assert_same_reset, assert_same_transition


def assert_same_rollouts(local: Any, served: gymnasium.Env, *, seeds: range, steps: int) -> None:
    """For each seed: reset both, then take the same random steps, resetting without a seed at each end."""
    space = served.observation_space
    for seed in seeds:
        served.action_space.seed(seed)
        assert_same_reset(local.reset(seed=seed), served.reset(seed=seed), space, f"seed {seed}")
        for step in range(steps):
            action = served.action_space.sample()
            expected, came = local.step(action), served.step(action)
            assert_same_transition(expected, came, space, f"seed {seed} step {step}")
            if came[2] or came[3]:
                assert_same_reset(local.reset(), served.reset(), space, f"seed {seed} after step {step}")
