"""Parts of batches: some rows of one, several put together, in the layout of ``gymnasium.vector.utils.batch_space``.

Arrays are handled whole, never row by row. Not for samples (``spaces/batches.py``) nor for bytes
(``spaces/batch_buffers.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from gymnasium.spaces import Dict, Discrete, Space, Tuple

from openenv_gym.spaces.batches import ArraySpace, rows_of

__all__ = ["Index", "join_batches", "samples_of", "store_batch", "take_rows"]

Index: TypeAlias = "slice | np.ndarray"
"""Rows of a batch: a slice, or an array of int64."""


def take_rows(space: Space[Any], batch: Any, index: Index) -> Any:
    """Some rows of a batch; a view where that can be.

    Args:
        space: the Space of a single sample.
        batch: samples in the layout of ``batch_space``; lists may stand for arrays.
        index: which rows, in which order.

    Raises:
        TypeError, ValueError, KeyError, IndexError: it is no batch of this Space, or has not so many rows.

    Example:
        >>> take_rows(Discrete(5), np.array([4, 3, 2]), slice(1, 3))
        array([3, 2])
    """

    def leaf(part: Space[Any], values: Any) -> Any:
        if isinstance(part, ArraySpace):
            return np.asarray(values)[index]
        if isinstance(index, slice):
            return tuple(values[index])
        return tuple([values[row] for row in index.tolist()])

    return _walk(space, leaf, batch)


def samples_of(space: Space[Any], batch: Any, count: int) -> list[Any]:
    """Every row of a batch by itself; of an array a view.

    Args:
        space: the Space of a single sample.
        batch: samples in the layout of ``batch_space``; lists may stand for arrays.
        count: how many there are.

    Raises:
        TypeError, ValueError, KeyError, IndexError: it is no batch of this Space, or has not so many rows.
    """
    return rows_of(space, batch, count, _samples)


def _samples(space: Space[Any], batch: Any, count: int) -> list[Any]:
    if isinstance(space, ArraySpace) and not isinstance(space, Discrete):
        array = np.asarray(batch)
        return [array[row, ...] for row in range(count)]  # an array of one number too, which array[row] is not
    samples = list(batch)
    if len(samples) != count:
        raise ValueError(f"expected {count} samples, got {len(samples)}")
    return samples


def join_batches(space: Space[Any], batches: Sequence[Any]) -> Any:
    """The rows of several batches one after another, in fresh arrays.

    Args:
        space: the Space of a single sample.
        batches: at least one.

    Example:
        >>> join_batches(Discrete(5), [np.array([4]), np.array([3, 2])])
        array([4, 3, 2])
    """

    def leaf(part: Space[Any], *several: Any) -> Any:
        if isinstance(part, ArraySpace):
            return np.concatenate(several, dtype=part.dtype)  # of its own accord it forgets the byte order
        return tuple([sample for one in several for sample in one])

    return _walk(space, leaf, *batches)


def store_batch(space: Space[Any], target: Any, batch: Any) -> Any:
    """The batch in the arrays of another one of the same size; what is no array is taken over as it is."""

    def leaf(part: Space[Any], old: Any, new: Any) -> Any:
        if not isinstance(part, ArraySpace):
            return new
        if old is not new:
            old[...] = new
        return old

    return _walk(space, leaf, target, batch)


def _walk(space: Space[Any], leaf: Callable[..., Any], *batches: Any) -> Any:
    if isinstance(space, Dict):
        return {key: _walk(part, leaf, *(batch[key] for batch in batches)) for key, part in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple(
            [_walk(part, leaf, *(batch[index] for batch in batches)) for index, part in enumerate(space.spaces)]
        )
    return leaf(space, *batches)
