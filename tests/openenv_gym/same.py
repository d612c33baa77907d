"""Whether values, and the rollouts of two ``VecEnv``s, are equal to the bit."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def assert_same(left, right):
    """Fail unless the values are equal in type, dtype, shape and bytes, all the way down; the order of keys is free."""
    if isinstance(right, Mapping):
        assert left.keys() == right.keys()
        for key in right:
            assert_same(left[key], right[key])
    elif isinstance(right, list | tuple):
        assert len(left) == len(right)
        for mine, yours in zip(left, right, strict=True):
            assert_same(mine, yours)
    elif isinstance(right, np.ndarray | np.generic):
        mine = np.asarray(left)
        assert (mine.dtype, mine.shape, mine.tobytes()) == (right.dtype, right.shape, right.tobytes())
    else:
        assert (type(left), left) == (type(right), right)


def assert_same_rollouts(ours, theirs, *, steps, seed=11):
    """Step both with the same seeds and actions, and compare all they give."""
    ours.seed(seed)
    theirs.seed(seed)
    ours.action_space.seed(seed)
    assert_same(ours.reset(), theirs.reset())
    assert_same(ours.reset_infos, theirs.reset_infos)
    endings = 0
    for _ in range(steps):
        actions = np.stack([ours.action_space.sample() for _ in range(ours.num_envs)])
        mine, yours = ours.step(actions), theirs.step(actions)
        assert_same(mine, yours)
        assert_same(ours.reset_infos, theirs.reset_infos)
        endings += int(yours[2].sum())
    assert endings > ours.num_envs
