"""Several samples of one Space as one batch, and apart again, laid out as ``gymnasium.vector.utils`` lays them out.

For stacked ``Sequence`` and for ``Graph``, whose samples are batches of any length, zero included (where Gymnasium's
own ``concatenate`` cannot go), and for vector environments. Not for some rows of a batch (``vector_batches.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as PySequence
from typing import Any, TypeAlias

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple

__all__ = ["ArraySpace", "batch_length", "rows_of", "stack", "unstack"]

ArraySpace: TypeAlias = Box | Discrete | MultiBinary | MultiDiscrete
"""The Spaces whose samples are one array or number, and whose batches so are one array."""


def stack(space: Space[Any], items: PySequence[Any]) -> Any:
    """One batch of samples: arrays with a new first axis, within the Space's ``Dict`` and ``Tuple``; else a tuple."""
    if isinstance(space, ArraySpace):
        batch = np.empty((len(items), *(space.shape or ())), space.dtype)
        for index, item in enumerate(items):
            batch[index] = item
        return batch
    if isinstance(space, Tuple):
        return tuple(stack(part, [item[index] for item in items]) for index, part in enumerate(space.spaces))
    if isinstance(space, Dict):
        return {key: stack(part, [item[key] for item in items]) for key, part in space.spaces.items()}
    return tuple(items)


def unstack(space: Space[Any], batch: Any, count: int | None = None) -> list[Any]:
    """The samples of a batch.

    Args:
        space: the Space of one sample.
        batch: as ``stack`` gives it.
        count: how many they are, where that is known: a batch of empty Dicts or Tuples does not tell.

    Raises:
        TypeError, ValueError, KeyError, IndexError: it is no batch of this Space.
    """
    known = (batch_length(space, batch) or 0) if count is None else count
    return rows_of(space, batch, known, lambda _, part, __: list(part))


def batch_length(space: Space[Any], batch: Any) -> int | None:
    """How many samples a batch has; None where no part of the Space holds anything, so that no batch can tell.

    Raises:
        TypeError, KeyError, IndexError: it is no batch of this Space.
    """
    if isinstance(space, Tuple):
        counts = (batch_length(part, batch[index]) for index, part in enumerate(space.spaces))
    elif isinstance(space, Dict):
        counts = (batch_length(part, batch[key]) for key, part in space.spaces.items())
    else:
        return len(batch)
    return next((count for count in counts if count is not None), None)


def rows_of(
    space: Space[Any], batch: Any, count: int, rows_of_leaf: Callable[[Space[Any], Any, int], list[Any]]
) -> list[Any]:
    """The rows of a batch within the Space's ``Dict`` and ``Tuple``.

    Args:
        space: the Space of one sample.
        batch: as ``stack`` gives it.
        count: how many rows there are.
        rows_of_leaf: gives the rows of a part that is neither, of its Space, its batch and the count.

    Raises:
        TypeError, ValueError, KeyError, IndexError: it is no batch of this Space.
    """
    if isinstance(space, Tuple):
        columns = [rows_of(part, batch[index], count, rows_of_leaf) for index, part in enumerate(space.spaces)]
        return list(zip(*columns, strict=True)) if columns else [()] * count
    if isinstance(space, Dict):
        columns = [rows_of(part, batch[key], count, rows_of_leaf) for key, part in space.spaces.items()]
        rows = zip(*columns, strict=True) if columns else [()] * count
        return [dict(zip(space.spaces, row, strict=True)) for row in rows]
    return rows_of_leaf(space, batch, count)
