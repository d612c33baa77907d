"""Answers that are large go out in parts, and within a time: a peer that does not read holds no more than that.

What is handed to a server in one piece is kept until its peer has read it, however long that takes. Not for sockets,
each of which keeps one answer at a time and takes a session's place.
"""

from __future__ import annotations

import asyncio
import logging

from starlette.types import Message, Send

__all__ = ["PART", "PATIENCE_S", "SLOWEST", "bounded"]

PART = 65_536
"""Bytes that are sent in one piece, about what a server keeps before it waits for the peer."""

PATIENCE_S = 30.0
SLOWEST = 131_072
"""Bytes per second that a peer has to read of a larger answer, ``PATIENCE_S`` aside."""

logger = logging.getLogger("openenv_gym_server")


def bounded(send: Send) -> Send:
    """The ``send`` of an HTTP request, which gives an answer up that is not read.

    The application goes on as though it had been sent; as it never came to its end, the server closes the connection.
    """
    gave_up = False

    async def sending(message: Message) -> None:
        nonlocal gave_up
        body: bytes = message.get("body", b"")
        if gave_up:
            return
        if len(body) <= PART:
            await send(message)
            return
        try:
            async with asyncio.timeout(PATIENCE_S + len(body) / SLOWEST):
                await _in_parts(send, body, more=message.get("more_body", False))
        except TimeoutError:
            gave_up = True
            logger.warning("an answer of %d bytes was given up, since its client reads too slowly or not", len(body))

    return sending


async def _in_parts(send: Send, body: bytes, *, more: bool) -> None:
    view = memoryview(body)
    for start in range(0, len(view), PART):
        part = bytes(view[start : start + PART])
        is_last = start + PART >= len(view)
        await send({"type": "http.response.body", "body": part, "more_body": more or not is_last})
