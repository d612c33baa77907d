"""The binary frames of the negotiated extension: resets, steps and outcomes of one environment or of many.

A header of fixed size, then values laid out by the Space that both ends know (``spaces/batch_buffers.py``), with JSON
for what no Space describes. Not for the values themselves, nor for which frame may be said when (``session.py``). No
I/O here.

Everything is little-endian and nothing is aligned:

=======================  =============================================================================================
header                   uint8 version (1), uint8 kind, uint16 flags, uint32 count of environments, uint64 id of the
                         request
where ``ENV_IDS``        a uint32 for each of the count: the environments, in the order of the rows; without it all of
                         the session, from 0 on
reset                    the rest is the JSON of a reset's data
step, ``AT_LEAST``       uint32 steps to be done before the answer comes
step, ``WITHIN``         float64 seconds after which it comes all the same; beside ``AT_LEAST`` alone
step                     the rest is the batch of actions
outcome, ``STEPPED``     a float64 reward for each, then a uint8 for each (terminated), then another (truncated)
outcome, ``INFO``        uint32 length, JSON: the info in the exact form of ``openenv_gym.info``
outcome, ``NOTES``       uint32 length, JSON: a list of strings
outcome, ``FINAL``       uint32 number of rows, uint32 for each, uint32 length in bytes, the batch of the last
                         observations of the episodes that ended in these rows
outcome                  the rest is the batch of observations
=======================  =============================================================================================

Every length is checked against the bytes there are before anything is made of it.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterable, Sequence
from typing import Any, Required, TypeAlias, TypedDict, Unpack

import msgspec
import numpy as np

from openenv_gym.errors import ProtocolError
from openenv_gym.json_text import JSON, decode_json, encode_json

__all__ = [
    "Final",
    "Kind",
    "OutcomeFields",
    "OutcomeParts",
    "Packed",
    "Part",
    "Stepped",
    "Wait",
    "read_frame",
    "read_outcome",
    "write_frame",
    "write_outcome",
    "write_waiting_step",
]

Part: TypeAlias = "bytes | bytearray | memoryview | np.ndarray[Any, Any]"
"""A piece of a frame: anything that gives its bytes in C order; an array must be contiguous and little-endian."""

VERSION = 1
MAX_COUNT = 2**32 - 1


class Kind(enum.IntEnum):
    """What a binary frame is."""

    RESET = 1
    """A request: begin episodes."""
    STEP = 2
    """A request: take one action in each of the environments."""
    OUTCOME = 3
    """The answer to either."""


ENV_IDS, STEPPED, INFO, NOTES, FINAL, AT_LEAST, WITHIN = 1, 2, 4, 8, 16, 32, 64

_HEADER = struct.Struct("<BBHIQ")
_LENGTH = struct.Struct("<I")
_SECONDS = struct.Struct("<d")
_KINDS = {kind.value: kind for kind in Kind}
_OF_OUTCOME = ENV_IDS | STEPPED | INFO | NOTES | FINAL
_FLAGS = {Kind.RESET: ENV_IDS, Kind.STEP: ENV_IDS | AT_LEAST | WITHIN, Kind.OUTCOME: _OF_OUTCOME}
_STEPPED_BYTES = 10  # of each environment


class Wait(msgspec.Struct, frozen=True):
    """How long the answer to a step waits, where it is first come, first served.

    Attributes:
        at_least: steps that must be done, of all that are under way in the session.
        within_s: seconds after which the answer comes all the same; None: it waits on.
    """

    at_least: int
    within_s: float | None = None


class Packed(msgspec.Struct, frozen=True):
    """A binary frame whose header was read.

    Attributes:
        kind: what it is.
        id: the id of the request that it makes or answers.
        count: how many environments it is of.
        env_ids: int64, which ones, in the order of its rows; None for all of the session, from 0 on.
        flags: which parts the body has, as the table of this module says.
        body: what follows; a view of the frame's own bytes.
        wait: how long the answer to a step waits; None: until the steps that it asks for are done.
    """

    kind: Kind
    id: int
    count: int
    env_ids: np.ndarray | None
    flags: int
    body: memoryview
    wait: Wait | None = None


class Stepped(msgspec.Struct, frozen=True):
    """What only steps have, one entry an environment.

    Attributes:
        rewards: float64.
        terminations: bool.
        truncations: bool.
    """

    rewards: np.ndarray
    terminations: np.ndarray
    truncations: np.ndarray


class Final(msgspec.Struct, frozen=True):
    """The last observations of episodes that ended and were followed by the next within the same step.

    Attributes:
        rows: the rows of the message that they belong to, int64, ascending.
        observations: their batch, in the layout of ``spaces.BatchCodec``.
    """

    rows: np.ndarray
    observations: memoryview


class OutcomeParts(msgspec.Struct, frozen=True):
    """What an outcome says; arrays are its own and may be written to.

    Attributes:
        observations: the batch, in the layout of ``spaces.BatchCodec``; a view of the frame's own bytes.
        stepped: rewards and flags; None after a reset.
        info: the info in the exact form of ``openenv_gym.info``; None where it is empty.
        notes: what the server noted for its user.
        final: last observations; None where there are none.
    """

    observations: memoryview
    stepped: Stepped | None
    info: JSON | None
    notes: list[str]
    final: Final | None


def write_frame(
    kind: Kind,
    request_id: int,
    count: int,
    env_ids: Sequence[int] | np.ndarray | None,
    parts: Iterable[Part],
    *,
    flags: int = 0,
) -> bytes:
    """A frame of its parts, which are copied once.

    Args:
        kind: what it is.
        request_id: the id of the request that it makes or answers.
        count: how many environments it is of.
        env_ids: which ones, where not all of the session.
        parts: what follows header and ids.
        flags: those of an outcome; the one of the ids is set here.

    Raises:
        ValueError: there are not as many ids as the count says, or one that is not of 32 bits.

    Example:
        >>> write_frame(Kind.STEP, 7, 2, None, [b"ab"]).hex(" ")
        '01 02 00 00 02 00 00 00 07 00 00 00 00 00 00 00 61 62'
        >>> read_frame(write_frame(Kind.STEP, 7, 1, [5], [b"a"])).env_ids
        array([5])
    """
    if env_ids is None:
        return b"".join((_HEADER.pack(VERSION, kind, flags, count, request_id), *parts))  # type: ignore[arg-type]
    listed = np.asarray(env_ids, np.int64)
    if listed.shape != (count,) or (count and not 0 <= listed.min() <= listed.max() <= MAX_COUNT):
        raise ValueError(f"expected {count} ids of environments from 0 to {MAX_COUNT}, got {env_ids!r}")
    head = _HEADER.pack(VERSION, kind, flags | ENV_IDS, count, request_id)
    return b"".join((head, listed.astype("<u4"), *parts))  # type: ignore[arg-type]  # an array gives its bytes


def read_frame(payload: bytes | bytearray | memoryview) -> Packed:
    """The header of a frame.

    Raises:
        ProtocolError: it is of another version or kind, has flags that its kind has not, or is too short for its ids.
    """
    view = memoryview(payload).cast("B")
    if len(view) < _HEADER.size:
        raise _malformed(f"a binary frame of at least {_HEADER.size} bytes, got {len(view)}", view)
    version, number, flags, count, request_id = _HEADER.unpack_from(view)
    kind = _KINDS.get(number)
    if version != VERSION or kind is None:
        raise _malformed(f"a binary frame of version {VERSION} and a kind among {list(_KINDS)}", view)
    if flags & ~_FLAGS[kind]:
        raise _malformed(f"flags within {_FLAGS[kind]:#x} in a binary frame of kind {number}, got {flags:#x}", view)
    if not flags & (ENV_IDS | AT_LEAST | WITHIN):
        return Packed(kind, request_id, count, None, flags, view[_HEADER.size :])
    env_ids, reader = None, _Reader(view, _HEADER.size)
    if flags & ENV_IDS:
        env_ids = np.frombuffer(reader.take(4 * count, "ids of environments"), "<u4").astype(np.int64)
    wait = reader.wait(flags) if flags & (AT_LEAST | WITHIN) else None
    return Packed(kind, request_id, count, env_ids, flags, reader.rest(), wait)


def write_waiting_step(
    request_id: int, count: int, env_ids: Sequence[int] | np.ndarray | None, parts: Iterable[Part], wait: Wait
) -> bytes:
    """A step whose answer is first come, first served.

    Arguments as ``write_frame`` has them; without actions, ``env_ids`` is an empty list.

    Example:
        >>> write_waiting_step(7, 0, [], [], Wait(3)).hex(" ")
        '01 02 21 00 00 00 00 00 07 00 00 00 00 00 00 00 03 00 00 00'
    """
    flags, said = AT_LEAST, _LENGTH.pack(wait.at_least)
    if wait.within_s is not None:
        flags, said = flags | WITHIN, said + _SECONDS.pack(wait.within_s)
    return write_frame(Kind.STEP, request_id, count, env_ids, [said, *parts], flags=flags)


class OutcomeFields(TypedDict, total=False):
    """What an outcome is written of.

    Attributes:
        observations: the batch, as ``spaces.BatchCodec.pack`` gives it.
        stepped: rewards, terminations and truncations, each of ``count`` entries; None after a reset.
        info: the info in the exact form of ``openenv_gym.info``; empty or None: there is none.
        notes: what the user should hear.
        final: the rows (below ``count``) whose episodes ended and were followed by the next, and the batch of their
            last observations.
    """

    observations: Required[Iterable[Part]]
    stepped: tuple[Any, Any, Any] | None
    info: JSON | None
    notes: Sequence[str]
    final: tuple[Any, Iterable[Part]] | None


def write_outcome(
    request_id: int,
    count: int,
    env_ids: Sequence[int] | np.ndarray | None,
    **said: Unpack[OutcomeFields],
) -> bytes:
    """The answer to a reset or a step.

    Args:
        request_id: the id of the request.
        count: how many environments it is of.
        env_ids: which ones, where not all of the session.
        **said: what it says; see ``OutcomeFields``.

    Raises:
        ValueMappingError: ``info`` has no JSON form.
        ValueError: rewards or flags are not ``count`` in number.

    Example:
        >>> import numpy as np
        >>> frame = write_outcome(1, 2, None, observations=[b"ab"], stepped=([0.5, 1.0], [False, True], [False, False]))
        >>> outcome = read_outcome(read_frame(frame))
        >>> outcome.stepped.terminations, bytes(outcome.observations)
        (array([False,  True]), b'ab')
    """
    flags = 0
    parts: list[Part] = []
    stepped, info, notes, final = said.get("stepped"), said.get("info"), said.get("notes"), said.get("final")
    if stepped is not None:
        flags |= STEPPED
        parts += _stepped_parts(stepped, count)
    if info:
        flags |= INFO
        parts += _counted(encode_json(info))
    if notes:
        flags |= NOTES
        parts += _counted(encode_json(list(notes)))
    if final is not None:
        flags |= FINAL
        rows = np.ascontiguousarray(final[0], "<u4")
        parts += [_LENGTH.pack(rows.size), rows, *_counted(b"".join(final[1]))]  # type: ignore[arg-type]
    parts.extend(said["observations"])
    return write_frame(Kind.OUTCOME, request_id, count, env_ids, parts, flags=flags)


def _stepped_parts(stepped: tuple[Any, Any, Any], count: int) -> list[Part]:
    arrays = [np.ascontiguousarray(values, dtype) for values, dtype in zip(stepped, _STEPPED_DTYPES, strict=True)]
    shapes = {array.shape for array in arrays}
    if shapes != {(count,)}:
        raise ValueError(f"expected rewards and flags of {count} environments, got the shapes {sorted(shapes)}")
    return [*arrays]


_STEPPED_DTYPES = (np.dtype("<f8"), np.dtype(np.bool_), np.dtype(np.bool_))


def _counted(content: bytes) -> list[Part]:
    return [_LENGTH.pack(len(content)), content]


def read_outcome(packed: Packed) -> OutcomeParts:
    """The parts of an outcome.

    Raises:
        ProtocolError: the frame is no outcome, ends early, or has flags that are neither 0 nor 1, rows that are none
            of it, or what is no JSON where JSON belongs.
    """
    if packed.kind is not Kind.OUTCOME:
        raise _malformed(f"an outcome, got a binary frame of kind {packed.kind.name}", packed.body)
    flags, reader = packed.flags, _Reader(packed.body)
    stepped = reader.stepped(packed.count) if flags & STEPPED else None
    info = decode_json(bytes(reader.counted("the info"))) if flags & INFO else None
    notes = _notes(reader.counted("the notes")) if flags & NOTES else []
    final = reader.final(packed.count) if flags & FINAL else None
    return OutcomeParts(reader.rest(), stepped, info, notes, final)


def _notes(text: memoryview) -> list[str]:
    notes = decode_json(bytes(text))
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise _malformed("the notes of an outcome as a list of strings", text)
    return [str(note) for note in notes]


class _Reader:
    """What follows on a header, and the place in it."""

    def __init__(self, body: memoryview, place: int = 0) -> None:
        self._body = body
        self._place = place

    def rest(self) -> memoryview:
        return self._body[self._place :]

    def take(self, size: int, what: str) -> memoryview:
        start, end = self._place, self._place + size
        if end > len(self._body):
            raise _malformed(f"{size} bytes of {what} in a binary frame, got {len(self._body) - start}", self._body)
        self._place = end
        return self._body[start:end]

    def _number(self, what: str) -> int:
        return int(_LENGTH.unpack(self.take(_LENGTH.size, what))[0])

    def counted(self, what: str) -> memoryview:
        return self.take(self._number(f"the length of {what}"), what)

    def stepped(self, count: int) -> Stepped:
        own = bytearray(self.take(_STEPPED_BYTES * count, "rewards and flags"))
        if own[8 * count :].translate(None, b"\0\1"):
            raise _malformed("terminations and truncations of 0 or 1 in an outcome", self._body)
        rewards = np.frombuffer(own, "<f8", count).astype(np.float64, copy=False)
        return Stepped(
            rewards, np.frombuffer(own, np.bool_, count, 8 * count), np.frombuffer(own, np.bool_, count, 9 * count)
        )

    def wait(self, flags: int) -> Wait:
        if not flags & AT_LEAST:
            raise _malformed(f"the flag {AT_LEAST:#x} beside {WITHIN:#x} in a step, got {flags:#x}", self._body)
        at_least = self._number("how many are to be done")
        if not flags & WITHIN:
            return Wait(at_least)
        return Wait(at_least, float(_SECONDS.unpack(self.take(_SECONDS.size, "the longest wait"))[0]))

    def final(self, count: int) -> Final:
        size = self._number("the count of last observations")
        rows = np.frombuffer(self.take(4 * size, "rows with last observations"), "<u4").astype(np.int64)
        if size and (rows[-1] >= count or (np.diff(rows) <= 0).any()):
            raise _malformed(f"ascending rows below {count} of last observations in an outcome", self._body)
        return Final(rows, self.counted("last observations"))


def _malformed(expected: str, view: memoryview) -> ProtocolError:
    start = bytes(view[:32])
    return ProtocolError(f"expected {expected}; it begins {start.hex(' ')}", received=start.hex())
