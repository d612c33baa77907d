"""A server that sends without end and says nothing: no call waits longer than its limit, and no event loop stands."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

import pytest
from websockets.frames import Frame as WebSocketFrame
from websockets.frames import Opcode

from openenv_gym.errors import RequestTimeoutError
from openenv_gym.transports.aio import SocketCalls
from tests.openenv_gym.transports.conftest import WAIT_S, ScriptedPeer

FLOODS = {
    "pings": (b"", WebSocketFrame(Opcode.PING, b"")),
    "empty fragments": (b"{", WebSocketFrame(Opcode.CONT, b"", False)),
    "small fragments": (b"{", WebSocketFrame(Opcode.CONT, b" ", False)),
}
LIMIT_S = 0.5


@pytest.fixture(params=FLOODS)
def flooded(request, serve_scripted, open_transport):
    start, frame = FLOODS[request.param]

    def script(peer: ScriptedPeer) -> None:
        if start:
            peer.send(start, fin=False)
        piece = frame.serialize(mask=False) * 20_000
        while True:
            peer.sock.sendall(piece)

    return open_transport(serve_scripted(script))


def within_reason(call: Callable[[], object]) -> None:
    begun = time.monotonic()
    with pytest.raises(RequestTimeoutError):
        call()
    assert time.monotonic() - begun < WAIT_S / 4


def test_a_call_that_blocks_is_over_in_time(flooded):
    within_reason(lambda: flooded.receive(LIMIT_S))


def test_an_awaited_call_is_over_in_time_and_other_tasks_run_meanwhile(flooded):
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def main() -> None:
        task = asyncio.create_task(others())
        try:
            await SocketCalls(flooded).receive(LIMIT_S)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    within_reason(lambda: asyncio.run(main()))
    assert turns > 5
