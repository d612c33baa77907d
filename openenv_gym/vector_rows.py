"""What the sessions of a vector environment answer, row by row, and as one answer of them all.

Not for asking (``vector_sessions.py``, ``vector_singles.py``), nor for the batching rules themselves
(``vector_batches.py``, ``vector_infos.py``).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from gymnasium import Space

from openenv_gym.errors import ValueMappingError
from openenv_gym.spaces.batches import batch_length, stack
from openenv_gym.spaces.codec import describe
from openenv_gym.vector_batches import join_batches, samples_of, take_rows
from openenv_gym.vector_infos import add_info, merge_infos

__all__ = ["Actions", "Latest", "Row", "Rows", "join_answers"]

_T = TypeVar("_T")


@dataclasses.dataclass(slots=True)
class Rows:
    """An answer about several environments.

    Attributes:
        env_ids: int64, which environments, in the order of the rows; not to be written to.
        observations: their batch.
        rewards, terminations, truncations: float64, bool and bool; None after a reset.
        infos: the batched info, arrays with one entry a row.
    """

    env_ids: np.ndarray
    observations: Any
    rewards: np.ndarray | None
    terminations: np.ndarray | None
    truncations: np.ndarray | None
    infos: dict[str, Any]


@dataclasses.dataclass(slots=True)
class Row:
    """An answer about one environment.

    Attributes:
        env_id: which one.
        observation: the observation.
        stepped: reward, terminated and truncated; None after a reset.
        infos: what was said, one after the other: where an episode ended and the next began in one step, of both.
    """

    env_id: int
    observation: Any
    stepped: tuple[float, bool, bool] | None
    infos: tuple[dict[str, Any], ...]


def join_answers(space: Space[Any], answers: Sequence[Rows | Row]) -> Rows:
    """One answer of several, row after row.

    Args:
        space: the Space of a single observation.
        answers: at least one; all to resets, or all to steps.
    """
    if len(answers) == 1 and isinstance(answers[0], Rows):
        return answers[0]
    parts: list[Rows] = []
    for single, run in itertools.groupby(answers, key=lambda answer: isinstance(answer, Row)):
        if single:
            parts.append(_stacked(space, list(run)))  # type: ignore[arg-type]  # the run is of rows
        else:
            parts.extend(run)  # type: ignore[arg-type]  # and this one is not
    if len(parts) == 1:
        return parts[0]
    infos: dict[str, Any] = {}
    count, first = sum(len(part.env_ids) for part in parts), 0
    for part in parts:
        last = first + len(part.env_ids)
        merge_infos(infos, part.infos, np.arange(first, last), count)
        first = last
    return Rows(
        np.concatenate([part.env_ids for part in parts]),
        join_batches(space, [part.observations for part in parts]),
        _joined([part.rewards for part in parts]),
        _joined([part.terminations for part in parts]),
        _joined([part.truncations for part in parts]),
        infos,
    )


def _joined(arrays: list[np.ndarray | None]) -> np.ndarray | None:
    known = [array for array in arrays if array is not None]
    return np.concatenate(known) if known else None


def _stacked(space: Space[Any], rows: list[Row]) -> Rows:
    infos: dict[str, Any] = {}
    for place, row in enumerate(rows):
        for info in row.infos:
            add_info(infos, info, place, len(rows))
    stepped = [row.stepped for row in rows if row.stepped is not None]
    rewards, terminations, truncations = zip(*stepped, strict=True) if stepped else (None, None, None)
    return Rows(
        np.array([row.env_id for row in rows], np.int64),
        stack(space, [row.observation for row in rows]),
        None if rewards is None else np.array(rewards, np.float64),
        None if terminations is None else np.array(terminations, np.bool_),
        None if truncations is None else np.array(truncations, np.bool_),
        infos,
    )


class Actions:
    """A batch of actions, of which each session takes its rows.

    Args:
        space: the Space of a single action.
        batch: the actions, in the layout of ``batch_space``; lists may stand for arrays.
        count: how many there must be.

    ``rows`` and ``samples`` raise ``ValueMappingError`` where there are more or fewer, or it is no batch of this Space.
    """

    def __init__(self, space: Space[Any], batch: Any, count: int) -> None:
        self._space = space
        self._batch = batch
        self._count = count
        self._samples: list[Any] | None = None
        self._counted = False

    def rows(self, index: slice | np.ndarray | None) -> Any:
        """The batch of some rows; None: the whole batch as it came, unchecked."""
        if index is None:
            return self._batch
        self._require_count()
        return self._of_batch(take_rows, self._batch, index)

    def _require_count(self) -> None:
        if self._counted:
            return
        length = self._of_batch(batch_length, self._batch)
        if length != self._count and length is not None:
            raise ValueMappingError(f"expected {self._count} actions, one for each environment, got {length}", path="$")
        self._counted = True

    def samples(self, index: slice | np.ndarray | None) -> list[Any]:
        """The actions of some rows, each by itself; None: all of them."""
        if self._samples is None:
            self._require_count()
            self._samples = self._of_batch(samples_of, self._batch, self._count)
        if index is None:
            return self._samples
        return self._samples[index] if isinstance(index, slice) else [self._samples[row] for row in index.tolist()]

    def _of_batch(self, work: Callable[..., _T], *arguments: Any) -> _T:
        try:
            return work(self._space, *arguments)
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise ValueMappingError(
                f"expected a batch of {self._count} actions of {self._space}, as batch_space lays it out, got "
                f"{describe(self._batch)}",
                path="$",
            ) from error


class Latest:
    """The last observation of each environment of a session, kept as it came and read only when it is asked for.

    What was handed out belongs to the caller, who may have written to it since.

    Args:
        space: the Space of a single observation.
        count: how many environments there are.
        decode: makes a batch of what came and of the number of its rows.
    """

    def __init__(self, space: Space[Any], count: int, decode: Callable[[Any, int], Any]) -> None:
        self._space = space
        self._count = count
        self._decode = decode
        self._pieces: list[tuple[Any, int]] = []
        self._places: np.ndarray | None = None  # of each environment: its piece, and its row there

    def note(self, raw: Any, env_ids: np.ndarray | None) -> None:
        """Keep what came, of some of the environments (None: of all)."""
        if env_ids is None:
            self._pieces, self._places = [(raw, self._count)], None
            return
        if self._places is None:
            self._places = np.stack([np.zeros(self._count, np.int64), np.arange(self._count)])
        if len(self._pieces) > 2 * self._count:
            self._forget_old()
        self._places[0, env_ids] = len(self._pieces)
        self._places[1, env_ids] = np.arange(len(env_ids))
        self._pieces.append((raw, len(env_ids)))

    def _forget_old(self) -> None:
        assert self._places is not None
        used, self._places[0] = np.unique(self._places[0], return_inverse=True)
        self._pieces = [self._pieces[piece] for piece in used.tolist()]

    def batch(self) -> Any:
        """The batch of all, in fresh arrays. There must have been an answer of each environment."""
        if self._places is None:
            return self._decode(*self._pieces[0])
        used, piece = np.unique(self._places[0], return_inverse=True)
        batches = [self._decode(*self._pieces[index]) for index in used.tolist()]
        starts = np.cumsum([0, *(self._pieces[index][1] for index in used.tolist()[:-1])])
        return take_rows(self._space, join_batches(self._space, batches), starts[piece] + self._places[1])
