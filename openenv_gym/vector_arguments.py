"""What callers of a vector environment pass to reset, send and recv, checked.

Not for actions (``vector_rows.Actions``) nor for the settings of a vector environment.

Source of the rules for seeds and masks: ``gymnasium.vector.SyncVectorEnv``, gymnasium 1.4.0.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import gymnasium
import numpy as np
from gymnasium.utils import seeding

__all__ = ["Generators", "check_env_ids", "check_min_envs", "seeds_for", "split_mask"]

_MASK = "reset_mask"
_Seed = TypeVar("_Seed", int, int | None)


def seeds_for(seed: int | Sequence[int | None] | None, num_envs: int) -> list[int | None] | None:
    """One seed an environment; None where none is to be sent at all.

    Args:
        seed: s stands for s, s + 1, s + 2 …; a list has one for each.
        num_envs: how many environments there are.

    Raises:
        ValueError: a list of another length.
        TypeError: something else than an integer.
        gymnasium.error.Error: a negative one.

    Example:
        >>> seeds_for(7, 3)
        [7, 8, 9]
    """
    if seed is None:
        return None
    if isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str | bytes):
        seeds = [None if one is None else _index(one) for one in seed]
        if len(seeds) != num_envs:
            raise ValueError(f"expected one seed for each of the {num_envs} environments, got {len(seeds)}")
        return None if all(one is None for one in seeds) else _not_negative(seeds)
    first = _index(seed)
    return _not_negative([first + index for index in range(num_envs)])


def _index(seed: Any) -> int:
    try:
        return operator.index(seed)
    except TypeError as error:
        raise TypeError(
            f"expected seed to be an integer of 0 or more, a list with one for each environment, or None, got {seed!r}"
        ) from error


def _not_negative(seeds: list[_Seed]) -> list[_Seed]:
    negative = [seed for seed in seeds if seed is not None and seed < 0]
    if negative:
        raise gymnasium.error.Error(f"expected seeds of 0 or more, got {negative}")
    return seeds


def split_mask(options: Mapping[str, Any] | None, num_envs: int) -> tuple[np.ndarray | None, dict[str, Any] | None]:
    """The mask of the environments to reset (None: all), and the options for these.

    Raises:
        TypeError: the options are no dictionary, or the mask no array of bool.
        ValueError: it has another shape, or is False for all.
    """
    if options is None:
        return None, None
    if not isinstance(options, Mapping):
        raise TypeError(f"expected options to be a dictionary or None, got {options!r}")
    left = dict(options)
    if _MASK not in left:
        return None, left
    mask = left.pop(_MASK)
    if not isinstance(mask, np.ndarray):
        raise TypeError(f"expected options[{_MASK!r}] to be a NumPy array of bool, got {type(mask).__name__}")
    if mask.shape != (num_envs,):
        raise ValueError(f"expected options[{_MASK!r}] to have the shape ({num_envs},), got {mask.shape}")
    if mask.dtype != np.bool_:
        raise TypeError(f"expected options[{_MASK!r}] to have the dtype bool, got {mask.dtype}")
    if not mask.any():
        raise ValueError(f"expected options[{_MASK!r}] to be True for an environment at least, got False for all")
    return mask, left


def check_env_ids(env_ids: Any, num_envs: int) -> np.ndarray:
    """The ids as a new array of int64.

    Raises:
        TypeError: they are no integers.
        ValueError: there is none, one is none of the environments, or one comes twice.
    """
    ids = np.asarray(env_ids)
    if ids.dtype.kind not in "iu" and ids.size:
        raise TypeError(f"expected env_ids to be integers, got the dtype {ids.dtype}")
    ids = ids.astype(np.int64)
    if ids.ndim != 1 or not ids.size:
        raise ValueError(f"expected env_ids to be one-dimensional and not empty, got the shape {ids.shape}")
    if ids.min() < 0 or ids.max() >= num_envs or len(np.unique(ids)) != len(ids):
        raise ValueError(f"expected env_ids to be different, from 0 to {num_envs - 1}, got {ids.tolist()}")
    return ids


def check_min_envs(min_envs: int | None, num_envs: int) -> int:
    """How many environments to wait for at least; None: one.

    Raises:
        ValueError: below 1, or more than there are.
    """
    if min_envs is None:
        return 1
    wanted = operator.index(min_envs)
    if not 1 <= wanted <= num_envs:
        raise ValueError(f"expected min_envs to be from 1 to {num_envs}, got {min_envs}")
    return wanted


class Generators:
    """The random number generators on this side, one an environment, seeded as the environments were.

    Args:
        num_envs: how many environments there are.

    Attributes:
        seeds: the last seed of each; -1, as in Gymnasium, where it is not known.
    """

    def __init__(self, num_envs: int) -> None:
        self.seeds = [-1] * num_envs
        self._made: dict[int, np.random.Generator] = {}

    def note(self, seeds: Sequence[int | None], env_ids: np.ndarray | None) -> None:
        """A reset was made with one seed for each of these environments (None: for all)."""
        for env_id, seed in zip(range(len(seeds)) if env_ids is None else env_ids.tolist(), seeds, strict=True):
            if seed is not None:
                self.seeds[env_id] = seed
                self._made.pop(env_id, None)

    def all(self) -> tuple[np.random.Generator, ...]:
        """The generators, made when they are first asked for."""
        for env_id, seed in enumerate(self.seeds):
            if env_id not in self._made:
                self._made[env_id] = seeding.np_random(None if seed < 0 else seed)[0]
        return tuple(self._made[env_id] for env_id in range(len(self.seeds)))
