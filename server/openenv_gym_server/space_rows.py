"""Actions and observations of many environments of one Space: as the rows of messages, and as values again.

Not for the layout of the bytes (``openenv_gym.spaces.BatchCodec``), nor for one message as JSON (``space_codec.py``,
which refuses for both).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple
from gymnasium.vector.utils import batch_space

from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError, ValueMappingError
from openenv_gym.frames import Part
from openenv_gym.json_text import JSONObject
from openenv_gym.spaces import BatchCodec, codec_for
from openenv_gym.spaces.batches import stack, unstack
from openenv_gym_server.errors import UnsendableError, fault, invalid_message
from openenv_gym_server.parsing import malformed
from openenv_gym_server.space_codec import SpaceCodec

__all__ = ["SpaceRows", "in_row"]

LARGE_ROW = 4096
"""Bytes of an observation from which on a copy costs more than a piece of a frame."""


class SpaceRows:
    """The rows of one environment's actions and observations.

    Args:
        codec: refuses an action in its own words.
        action_space: the Space that each action must lie in.
        observation_space: the Space of each observation.
        count: how many environments there are.

    Example:
        >>> from gymnasium.spaces import Box, Discrete
        >>> spaces = Discrete(2), Box(-1, 1, (2,))
        >>> rows = SpaceRows(SpaceCodec(*spaces, "Demo-v0"), *spaces, 3)
        >>> rows.actions([{"action": 1}, {"action": 0}])
        [np.int64(1), np.int64(0)]
        >>> b"".join(rows.parts([[0.0, 0.5]], 1, [0])).hex()
        '000000000000003f'
    """

    def __init__(self, codec: SpaceCodec, action_space: Space[Any], observation_space: Space[Any], count: int) -> None:
        self._codec = codec
        self._action_space = action_space
        self._observation_space = observation_space
        self._count = count
        self._actions = BatchCodec(action_space)
        self._observations = BatchCodec(observation_space)
        self._value = codec_for(action_space)
        self._observation = codec_for(observation_space)
        self._all_actions = batch_space(action_space, count)
        self._is_array = isinstance(observation_space, Box | MultiBinary | MultiDiscrete) and bool(
            observation_space.shape
        )
        self._noted = False
        self._shape = observation_space.shape or ()
        self._dtype = observation_space.dtype
        self._is_large = (
            self._is_array
            and math.prod(self._shape) * np.dtype(self._dtype).itemsize >= LARGE_ROW
            and np.dtype(self._dtype).newbyteorder("<") == self._dtype
        )

    # ------------------------------------------------------------------------------------------------ actions

    def actions(self, data: Sequence[JSONObject]) -> list[Any]:
        """Each action, a member of its Space.

        Raises:
            InvalidActionError: one is refused; ``errors`` begin with its row.
        """
        actions: list[Any] = []
        try:
            for each in data:
                actions.append(self._codec.decode_action(each))  # noqa: PERF401 - the fault's place is their number
        except InvalidActionError as error:
            raise in_row(error, len(actions)) from error
        return actions

    def batch(self, body: memoryview, count: int) -> Any:
        """The batch of actions of a binary frame, all of them members of their Space.

        Raises:
            InvalidActionError: one is refused, in the words that refuse it as JSON; or the bytes are no such batch.
        """
        batch = self._unpacked(body, count)
        if not self._are_members(batch, count):
            # The batch says that there is a fault, each row by itself where it is.
            self.actions([{"action": self._value.encode(row)} for row in self.each_action(batch, count)])
        return batch

    def _are_members(self, batch: Any, count: int) -> bool:
        space = self._action_space
        if isinstance(space, Discrete):
            # The Space of the batch would take ten times as long to say so.
            return count == 0 or bool(int(batch.min()) >= space.start and int(batch.max()) < space.start + space.n)
        if count != self._count:
            return batch_space(space, count).contains(batch)
        return self._all_actions.contains(batch)

    def _unpacked(self, body: memoryview, count: int) -> Any:
        try:
            return self._actions.unpack(body, count)
        except ValueMappingError as error:
            raise malformed(["data", "actions"], str(error)) from error

    def each_action(self, batch: Any, count: int) -> list[Any]:
        """The actions of a batch."""
        return unstack(self._action_space, batch, count)

    def joined_actions(self, actions: Sequence[Any]) -> Any:
        """The batch of actions, as a vector environment takes it."""
        return stack(self._action_space, actions)

    # ------------------------------------------------------------------------------------------- observations

    def each_observation(self, batch: Any, count: int) -> list[Any]:
        """The observations of a batch."""
        return unstack(self._observation_space, batch, count)

    def fields(self, observations: Sequence[Any], ids: Sequence[int]) -> list[JSONObject]:
        """Each observation as the JSON of its fields.

        Raises:
            EnvironmentExecutionError: one does not fit its Space; ``env_index`` is its environment.
        """
        encode = self._observation.encode
        rows: list[JSONObject] = []
        try:
            for observation in observations:
                rows.append({"obs": encode(observation, "$.obs")})  # noqa: PERF401 - the fault's place is their number
        except ValueMappingError as error:
            raise _unsendable(error, ids[len(rows)]) from error
        return rows

    def parts(self, observations: Sequence[Any], count: int, ids: Sequence[int]) -> list[Part]:
        """The batch of the observations, in pieces.

        Raises:
            EnvironmentExecutionError: one does not fit its Space; ``env_index`` is its environment.
        """
        if self._is_array:
            parts = self._pieces(observations) if self._is_large else self._joined(observations)
            if parts is not None:
                return parts
        try:
            return self.batch_parts(_columns(self._observation_space, observations), count)
        except (ValueMappingError, KeyError, IndexError, TypeError) as error:
            self.fields(observations, ids)  # names the environment, in the words of one by itself
            raise _unsendable(error, None) from error

    def batch_parts(self, batch: Any, count: int) -> list[Part]:
        """The batch of observations that a vector environment gave, in pieces.

        Raises:
            ValueMappingError: it does not fit the Space.
        """
        return self._observations.pack_fitting(batch, count)

    def notes(self, observation: Any) -> list[str]:
        """What is to be said, once, where the observation is cast to its Space's dtype."""
        note = None if self._noted else self._observation.dtype_note(observation)
        if note is None:
            return []
        self._noted = True
        return [f"the observation of {self._codec.env_id} was cast: it is {note}"]

    def _pieces(self, observations: Sequence[Any]) -> list[Part] | None:
        """Large arrays as they are: the joining of the frame copies each, and once is enough."""
        if any(
            type(each) is not np.ndarray or each.dtype != self._dtype or each.shape != self._shape
            for each in observations
        ):
            return None
        return [np.ascontiguousarray(each) for each in observations]

    def _joined(self, observations: Sequence[Any]) -> list[Part] | None:
        """Small arrays as one; None where one has another shape or dtype. For each, no more is done than must be."""
        try:
            lengths = set(map(len, observations))
            joined = np.concatenate(observations)
        except (TypeError, ValueError):
            return None
        length, *rest = self._shape
        if lengths != {length} or joined.shape[1:] != (*rest,) or joined.dtype != self._dtype:
            return None
        return self._observations.pack(joined.reshape(len(observations), *self._shape), len(observations))


def in_row(error: InvalidActionError, row: int) -> InvalidActionError:
    """The refusal of one action as that of a message with many: the same fault, at its place."""
    faults = error.errors
    if not faults:
        return invalid_message(fault("refused", ["data", "actions", row], str(error), None))
    return invalid_message(*({**each, "loc": ["data", "actions", row, *each["loc"]]} for each in faults))


def _unsendable(error: Exception, index: int | None) -> EnvironmentExecutionError:
    return UnsendableError(
        f"the observation cannot be sent: {error}; the environment has already advanced",
        code="EXECUTION_ERROR",
        env_index=index,
    )


def _columns(space: Space[Any], rows: Sequence[Any]) -> Any:
    """Samples turned round: within Dicts and Tuples, one list a part."""
    if isinstance(space, Dict):
        for row in rows:
            if len(row) != len(space.spaces):
                raise KeyError(f"expected the keys {list(space.spaces)}")
        return {key: _columns(part, [row[key] for row in rows]) for key, part in space.spaces.items()}
    if isinstance(space, Tuple):
        for row in rows:
            if len(row) != len(space.spaces):
                raise IndexError(f"expected a tuple of {len(space.spaces)}")
        return tuple(_columns(part, [row[index] for row in rows]) for index, part in enumerate(space.spaces))
    return list(rows)
