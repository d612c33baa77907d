"""Messages to the bytes of one WebSocket and back, without I/O, for either end of it.

Whole data frames, which is nearly all there is, are read and written here; every other frame (pings, pongs, closes,
fragments, compressed ones, faulty ones) goes to ``websockets``' protocol, which also knows the state of the connection
and is always given whole frames, so that the two never hold parts of the same. Not for sockets or ASGI.
"""

from __future__ import annotations

import os
from collections import deque
from struct import Struct
from typing import TypeAlias

import numpy as np
from websockets.client import ClientProtocol
from websockets.frames import Frame as WebSocketFrame
from websockets.frames import Opcode
from websockets.protocol import State
from websockets.server import ServerProtocol

from openenv_gym.transports.base import Frame

try:
    from websockets.speedups import apply_mask
except ImportError:  # pragma: no cover - an installation without compiled parts
    from websockets.utils import apply_mask

__all__ = ["Framing"]

_Bytes: TypeAlias = "bytes | memoryview"

_TEXT, _BINARY = 0x81, 0x82  # the first byte of an unfragmented, uncompressed message
_WHOLE = frozenset({_TEXT, _BINARY})
_MASKED = 0x80
_SHORT, _MEDIUM = 126, 65_536  # lengths from which a header has two, and eight, more bytes for them
_TWO, _EIGHT = Struct("!BBH"), Struct("!BBQ")
_MASKS_AT_ONCE = 64
_APART = 16_384  # bytes from which a message is not copied behind its header

# Looked up once: an attribute of an enum's class costs more than the comparison.
_OPEN = State.OPEN
_TEXT_FRAME, _BINARY_FRAME, _CONT_FRAME = Opcode.TEXT, Opcode.BINARY, Opcode.CONT


class Framing:
    """The frames of one connection.

    Args:
        protocol: its protocol; the handshake may still be to come.
        limit: most bytes a message may have.

    Attributes:
        messages: those that have come and were not taken yet, in order.

    Example:
        >>> from websockets.uri import parse_uri
        >>> client = Framing(ClientProtocol(parse_uri("ws://a/"), state=State.OPEN), 100)
        >>> server = Framing(ServerProtocol(state=State.OPEN), 100)
        >>> rest = server.feed(b"".join(client.encode(b"hello", text=True)))
        >>> server.messages.popleft()
        Frame(payload=b'hello', text=True)
    """

    def __init__(self, protocol: ClientProtocol | ServerProtocol, limit: int) -> None:
        self.messages: deque[Frame] = deque()
        self._protocol = protocol
        self._limit = limit
        server = isinstance(protocol, ServerProtocol)
        self._mask_in, self._mask_out = (_MASKED, 0) if server else (0, _MASKED)
        self._head = b""  # of a frame whose header has not come whole
        self._masks: list[bytes] = []
        self._left = 0  # bytes to come of a frame that is the protocol's
        self._body: memoryview | None = None  # of a frame that has not come whole, as long as it will be
        self._body_text = False
        self._body_mask = b""
        self._filled = 0
        self._fragments: bytearray | None = None
        self._fragments_text = False

    @property
    def unfinished(self) -> int:
        """Bytes that have come of a message whose end has not."""
        return len(self._fragments or b"") + self._filled

    @property
    def partial(self) -> bool:
        """Whether a message has come in part."""
        return self._fragments is not None or self._body is not None or bool(self._head)

    @property
    def target(self) -> memoryview | None:
        """Where the next bytes belong, where they are a message's alone; ``filled`` says how many were put there."""
        return None if self._body is None else self._body[self._filled :]

    def encode(self, payload: bytes, *, text: bool) -> tuple[bytes, ...]:
        """A message as one frame, in one piece or two."""
        length = len(payload)
        first, mask_bit = _TEXT if text else _BINARY, self._mask_out
        if length < _SHORT:
            head = bytes((first, mask_bit | length))
        elif length < _MEDIUM:
            head = _TWO.pack(first, mask_bit | 126, length)
        else:
            head = _EIGHT.pack(first, mask_bit | 127, length)
        if mask_bit:
            if not self._masks:
                self._masks = _new_masks()
            mask = self._masks.pop()
            head += mask
            payload = apply_mask(payload, mask)
        return (head + payload,) if length < _APART else (head, payload)

    def feed(self, data: _Bytes, most: int | None = None) -> _Bytes:
        """Take what has come; it may change afterwards.

        Args:
            data: the bytes.
            most: frames to take at once; None: all.

        Returns:
            What was not taken: it is to come again, before anything else does.
        """
        frames = 0
        while data and frames != most:
            frames += 1
            if self._head:
                data, self._head = self._head + bytes(data), b""
            if self._left:
                data = self._pass_on(data, self._left)
            elif self._body is not None:
                size = min(len(data), len(self._body) - self._filled)
                self._body[self._filled : self._filled + size] = data[:size]
                self.filled(size)
                data = data[size:]
            elif self._protocol.state is _OPEN:
                data = self._begin(data)
            else:
                data = self._pass_on(data, len(data))
        return data

    def filled(self, size: int) -> None:
        """So many bytes were put where ``target`` said."""
        self._filled += size
        body = self._body
        if body is not None and self._filled == len(body):
            self._body, self._filled = None, 0
            if self._mask_in:
                payload: _Bytes = _unmasked(body, self._body_mask)
            else:
                payload = bytes(body) if self._body_text else body
            self.messages.append(Frame(payload, self._body_text))  # type: ignore[arg-type]  # see Frame

    def forget(self) -> None:
        """Let go of a message that has come in part; the rest of it will not come."""
        self._fragments = self._body = None
        self._head, self._filled = b"", 0

    def _begin(self, data: _Bytes) -> _Bytes:
        """Take the frame that begins here, as far as it has come; gives what follows it."""
        size = len(data)
        if size < 2:
            self._head = bytes(data)
            return b""
        first, second = data[0], data[1]
        if second & _MASKED != self._mask_in:
            return self._pass_on(data, size)  # which refuses it
        length, start = second & 0x7F, 2
        if length >= _SHORT:
            start = 4 if length == _SHORT else 10
            length = int.from_bytes(data[2:start], "big")
        if self._mask_in:
            start += 4
        if size < start:
            self._head = bytes(data)
            return b""
        end = start + length
        if first not in _WHOLE or self._fragments is not None or length > self._limit:
            return self._pass_on(data, end)
        if size < end:
            # Not zeroed, so that what a peer only announces costs no memory.
            self._body, self._body_text = np.empty(length, np.uint8).data, first == _TEXT
            self._body_mask = bytes(data[start - 4 : start])
            self._body[: size - start] = data[start:]
            self._filled = size - start
            return b""
        body = data[start:end]
        payload = _unmasked(body, data[start - 4 : start]) if self._mask_in else bytes(body)
        self.messages.append(Frame(payload, first == _TEXT))
        return data[end:] if size > end else b""

    def _pass_on(self, data: _Bytes, end: int) -> _Bytes:
        """Give the protocol its frame, as far as it has come."""
        mine = data[:end]
        self._left = end - len(mine)
        # It copies at once, so it may be given a view of a buffer that will change.
        self._protocol.receive_data(mine)  # type: ignore[arg-type]
        for event in self._protocol.events_received():
            if isinstance(event, WebSocketFrame):
                self._take_frame(event)
        return data[end:]

    def _take_frame(self, frame: WebSocketFrame) -> None:
        if frame.opcode is _TEXT_FRAME or frame.opcode is _BINARY_FRAME:
            self._fragments, self._fragments_text = bytearray(frame.data), frame.opcode is _TEXT_FRAME
        elif frame.opcode is _CONT_FRAME and self._fragments is not None:
            self._fragments += frame.data
        else:
            return
        if frame.fin:
            self.messages.append(Frame(bytes(self._fragments), self._fragments_text))
            self._fragments = None


def _new_masks() -> list[bytes]:
    """Masks for the next frames: one system call for many."""
    drawn = os.urandom(4 * _MASKS_AT_ONCE)
    return [drawn[start : start + 4] for start in range(0, len(drawn), 4)]


def _unmasked(body: _Bytes, mask: _Bytes) -> bytes:
    return apply_mask(body, mask)  # type: ignore[arg-type]  # it takes a view as well
