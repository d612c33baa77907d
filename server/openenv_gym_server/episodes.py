"""Where each environment of a vector session is: which episode, how far, and whether it may be stepped.

Not for what follows on an episode's end: that is the environments' (``lanes.py``, ``native_vector.py``).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import numpy as np
from gymnasium.vector import AutoresetMode

from openenv_gym_server.vector_hosting import not_steppable

__all__ = ["Episodes"]


class Episodes:
    """Counts them.

    Args:
        num_envs: how many environments there are.
        autoreset_mode: what follows on the end of an episode.

    Example:
        >>> episodes = Episodes(2, AutoresetMode.NEXT_STEP)
        >>> episodes.began(range(2))
        >>> episodes.stepped(range(2), np.array([True, False]))
        >>> episodes.stepped(range(2), np.array([False, False]))
        >>> episodes.steps
        [0, 2]
    """

    def __init__(self, num_envs: int, autoreset_mode: AutoresetMode) -> None:
        self._mode = autoreset_mode
        self._name = uuid.uuid4().hex
        self._ids = np.arange(num_envs)
        self._counts = np.zeros(num_envs, np.int64)
        self._steps = np.zeros(num_envs, np.int64)
        self._over = np.zeros(num_envs, np.bool_)
        self._all_begun = False

    @property
    def steps(self) -> list[int]:
        """Those of each environment's episode."""
        return [*map(int, self._steps)]

    @property
    def names(self) -> list[str | None]:
        """That of each environment's episode; None where none has begun."""
        return [f"{self._name}-{index}-{count}" if count else None for index, count in enumerate(self._counts)]

    def began(self, ids: Sequence[int]) -> None:
        """A reset has begun an episode in each of these."""
        where = _where(ids)
        self._over[where] = False
        self._steps[where] = 0
        self._counts[where] += 1
        self._all_begun = bool(self._counts.all())

    def stepped(self, ids: Sequence[int], over: np.ndarray) -> None:
        """Each of these was stepped, and these episodes are over."""
        where = _where(ids)
        if where is _ALL:
            self._steps += 1  # itself: a view of the whole costs as much again
        else:
            self._steps[where] += 1
        if self._mode is not AutoresetMode.DISABLED:
            began = over if self._mode is AutoresetMode.SAME_STEP else self._over[where]
            if began.any():
                anew = self._ids[where][began]
                self._steps[anew] = 0
                self._counts[anew] += 1
        self._over[where] = over

    def check_steppable(self, ids: Sequence[int]) -> None:
        """Refuse a step where an environment has no episode to step in.

        Raises:
            InvalidActionError: none has begun; or it is over, and nothing begins the next.
        """
        disabled = self._mode is AutoresetMode.DISABLED
        if self._all_begun and not (disabled and self._over.any()):
            return
        for index in ids:
            begun = bool(self._counts[index])
            if not begun or (disabled and self._over[index]):
                raise not_steppable(index, begun=begun)

    def check_all_begun(self) -> None:
        """Refuse what only environments can do that all have begun.

        Raises:
            InvalidActionError: one has not.
        """
        if not self._all_begun:
            raise not_steppable(int(np.argmin(self._counts)), begun=False)


_ALL = slice(None)


def _where(ids: Sequence[int]) -> slice | list[int]:
    """How NumPy wants them."""
    return _ALL if isinstance(ids, range) else list(ids)
