"""How one environment's resets and steps travel: as text, which every server takes, or as binary frames.

Both say the same, value for value; ``choose`` says which a session uses. Not for what may be said when
(``session.py``), nor for the layout of a frame (``frames.py``) or of a value (``spaces``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from gymnasium.spaces import Dict, Graph, OneOf, Sequence, Space, Text, Tuple
from typing_extensions import override

from openenv_gym import frames, messages
from openenv_gym.errors import ProtocolError, SettingsError, ValueMappingError
from openenv_gym.info import decode_exact, encode_info
from openenv_gym.interface import Interface
from openenv_gym.json_text import encode_json, require_distinct_keys
from openenv_gym.shell import Shell
from openenv_gym.spaces import BufferCodec, codec_for
from openenv_gym.spaces.atoms import spell_float
from openenv_gym.transition import EXACT_INFO_KEY, NOTES_KEY, read_flags, read_info, read_notes, read_reward

__all__ = ["WORTH_PACKING", "Answer", "BinaryEncoding", "Encoding", "TextEncoding", "choose"]

WORTH_PACKING = 128
"""Bytes of arrays in an action and an observation together from which on binary frames are used.

Measured with everything but the socket: 16 bytes take as long either way, 256 bytes a quarter less in binary, a frame
of 84 by 84 by 4 a hundredth of what JSON takes. Text and small structures are quicker as JSON, at any length.
"""


class Answer(ABC):
    """What the server answered to a reset or a step, read as far as it is asked for.

    Attributes:
        observation: a member of the observation Space, made anew by each reading; raises ``ValueMappingError`` where it
            does not fit.
        reward: a float; 0.0 after a reset.
        flags: terminated and truncated.
        info: the environment's own.
        notes: what the server noted for its user.
        outcome: the whole answer as it is, or would have been, as text.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def observation(self) -> Any:
        """See the class."""

    @property
    @abstractmethod
    def reward(self) -> float:
        """See the class."""

    @property
    @abstractmethod
    def flags(self) -> tuple[bool, bool]:
        """See the class."""

    @property
    @abstractmethod
    def info(self) -> dict[str, Any]:
        """See the class."""

    @property
    @abstractmethod
    def notes(self) -> list[str]:
        """See the class."""

    @property
    @abstractmethod
    def outcome(self) -> messages.Outcome:
        """See the class."""


class Encoding(ABC):
    """Makes resets and steps over one shell."""

    __slots__ = ()

    @abstractmethod
    def reset(self, data: Mapping[str, Any], timeout_s: float | None) -> Answer:
        """Begin an episode.

        Args:
            data: reset's keyword arguments as JSON.
            timeout_s: seconds to wait for the answer.
        """

    @abstractmethod
    def step(self, action: Any, timeout_s: float | None) -> Answer:
        """Take an action.

        Raises:
            ValueMappingError: it does not fit the action Space; nothing was sent.
        """


def choose(shell: Shell, interface: Interface, binary: bool | None) -> Encoding:
    """The encoding of an open session.

    Args:
        shell: the session.
        interface: what its environment looks like.
        binary: None: binary where the server has it and the values are large enough for that to pay.

    Raises:
        SettingsError: binary frames are asked for, and the server has none or the Spaces are not the server's own.
    """
    fields = interface.packed_fields if shell.opened is not None and shell.opened.binary else None
    if fields is None:
        if binary:
            raise SettingsError(
                f"binary=True needs a server that takes binary frames ({messages.SUBPROTOCOL}) and Spaces as it "
                f"publishes them; leave it out for {shell.base_url}",
                setting="binary",
            )
        return TextEncoding(shell, interface)
    size = _array_bytes(interface.action_space) + _array_bytes(interface.observation_space)
    if binary or (binary is None and size >= WORTH_PACKING):
        return BinaryEncoding(shell, interface, fields)
    return TextEncoding(shell, interface)


def _array_bytes(space: Space[Any]) -> int:
    """The bytes of the arrays in one sample; of those that come in any number, one is counted."""
    if isinstance(space, Dict):
        return sum(map(_array_bytes, space.spaces.values()))
    if isinstance(space, Tuple):
        return sum(map(_array_bytes, space.spaces))
    if isinstance(space, OneOf):
        return max(map(_array_bytes, space.spaces))
    if isinstance(space, Sequence):
        return _array_bytes(space.feature_space)
    if isinstance(space, Graph):
        return _array_bytes(space.node_space)
    return 0 if space.dtype is None or isinstance(space, Text) else math.prod(space.shape or ()) * space.dtype.itemsize


class TextEncoding(Encoding):
    """Resets and steps as OpenEnv's JSON.

    Args:
        shell: the session.
        interface: the Spaces and their JSON.
    """

    __slots__ = ("_decode", "_encode", "_shell")

    def __init__(self, shell: Shell, interface: Interface) -> None:
        self._shell = shell
        self._encode = interface.encode_action
        self._decode = interface.decode_observation

    @override
    def reset(self, data: Mapping[str, Any], timeout_s: float | None) -> Answer:
        return self._answer(self._shell.request(messages.Reset, timeout_s, data=data))

    @override
    def step(self, action: Any, timeout_s: float | None) -> Answer:
        return self._answer(self._shell.request(messages.Step, timeout_s, data=self._encode(action)))

    def _answer(self, reply: messages.Reply) -> Answer:
        assert isinstance(reply, messages.ObservationReply)
        return _TextAnswer(reply.data, self._decode)


class _TextAnswer(Answer):
    """An answer in OpenEnv's envelope."""

    __slots__ = ("_decode", "_outcome")

    def __init__(self, outcome: messages.Outcome, decode: Callable[[dict[str, Any]], Any]) -> None:
        self._outcome = outcome
        self._decode = decode

    @property
    @override
    def observation(self) -> Any:
        return self._decode(self._outcome.observation)

    @property
    @override
    def reward(self) -> float:
        return read_reward(self._outcome)

    @property
    @override
    def flags(self) -> tuple[bool, bool]:
        return read_flags(self._outcome)

    @property
    @override
    def info(self) -> dict[str, Any]:
        return read_info(self._outcome)

    @property
    @override
    def notes(self) -> list[str]:
        return read_notes(self._outcome)

    @property
    @override
    def outcome(self) -> messages.Outcome:
        return self._outcome


class BinaryEncoding(Encoding):
    """Resets and steps as binary frames.

    Args:
        shell: the session, which must be one with binary frames.
        interface: the Spaces, as the server publishes them.
        fields: names of the one field of an action and of an observation.
    """

    __slots__ = ("_action", "_codec", "_encode", "_field", "_observation", "_shell")

    def __init__(self, shell: Shell, interface: Interface, fields: tuple[str, str]) -> None:
        self._shell = shell
        self._encode = interface.encode_action
        self._codec = codec_for(interface.action_space)
        self._action = BufferCodec(interface.action_space)
        self._observation = BufferCodec(interface.observation_space)
        self._field = fields[1]

    @override
    def reset(self, data: Mapping[str, Any], timeout_s: float | None) -> Answer:
        require_distinct_keys(data)
        return self._exchange(messages.Reset, frames.Kind.RESET, [encode_json(data)], timeout_s)

    @override
    def step(self, action: Any, timeout_s: float | None) -> Answer:
        try:
            parts = self._action.pack_parts(action)
        except ValueMappingError:
            # What JSON would cast is cast, and what it would refuse is refused in the same words.
            self._encode(action)
            parts = self._action.pack_parts(self._codec.cast(action))
        return self._exchange(messages.Step, frames.Kind.STEP, parts, timeout_s)

    def _exchange(
        self, message: type[messages.Message], kind: frames.Kind, parts: list[frames.Part], timeout_s: float | None
    ) -> Answer:
        reply = self._shell.request_packed(
            message, timeout_s, lambda request_id: frames.write_frame(kind, request_id, 1, None, parts)
        )
        assert isinstance(reply, messages.PackedReply)
        packed = reply.packed
        try:
            outcome = frames.read_outcome(packed)
            if packed.count != 1 or packed.env_ids is not None or (outcome.stepped is None) is (kind is _STEP):
                raise _none_of_one(kind)
        except ProtocolError as error:
            self._shell.abandon(str(error))
            raise
        return _BinaryAnswer(outcome, self._observation, self._field)


_STEP = frames.Kind.STEP


def _none_of_one(kind: frames.Kind) -> ProtocolError:
    return ProtocolError(
        f"expected the outcome of a {kind.name.lower()} of one environment: a count of 1, no ids, and reward and flags "
        "after a step alone"
    )


class _BinaryAnswer(Answer):
    """An answer in a binary frame."""

    __slots__ = ("_codec", "_field", "_parts")

    def __init__(self, parts: frames.OutcomeParts, codec: BufferCodec, field: str) -> None:
        self._parts = parts
        self._codec = codec
        self._field = field

    @property
    @override
    def observation(self) -> Any:
        return self._codec.unpack(self._parts.observations)

    @property
    @override
    def reward(self) -> float:
        stepped = self._parts.stepped
        return 0.0 if stepped is None else float(stepped.rewards[0])

    @property
    @override
    def flags(self) -> tuple[bool, bool]:
        stepped = self._parts.stepped
        return (False, False) if stepped is None else (bool(stepped.terminations[0]), bool(stepped.truncations[0]))

    @property
    @override
    def info(self) -> dict[str, Any]:
        info = {} if self._parts.info is None else decode_exact(self._parts.info)
        if not isinstance(info, dict):
            raise ValueMappingError(f"expected an info dictionary at $, got a {type(info).__name__}", path="$")
        return info

    @property
    @override
    def notes(self) -> list[str]:
        return self._parts.notes

    @property
    @override
    def outcome(self) -> messages.Outcome:
        terminated, truncated = self.flags
        metadata: dict[str, Any] = {"terminated": terminated, "truncated": truncated}
        metadata["info"], exact = encode_info(self.info)
        if exact is not None:
            metadata[EXACT_INFO_KEY] = exact
        reward = None if self._parts.stepped is None else self.reward
        if reward is not None and not math.isfinite(reward):
            metadata["reward"], reward = spell_float(reward), None
        if self.notes:
            metadata[NOTES_KEY] = self.notes
        return messages.Outcome(
            observation={self._field: codec_for(self._codec.space).encode(self.observation)},
            reward=reward,
            done=terminated or truncated,
            metadata=metadata,
        )
