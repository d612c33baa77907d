"""A thousand clients that leave without a word, at every moment of a session: nothing of them stays behind."""

from __future__ import annotations

import itertools
import os
import socket
import stat
import struct
import threading
from collections import Counter
from typing import Any
from urllib.parse import urlsplit

import httpx

from openenv_gym.messages import SUBPROTOCOL
from tests.serving import serve
from tests.sockets import ask, serving, socket_of, until
from tests.text_envs import Echo, Heard, Say

DISCONNECTS = 1000
WAIT_S = 20.0

UPGRADE = (
    "GET /ws HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{more}\r\n"
)
KEPT_RESET = "POST /reset HTTP/1.1\r\nHost: {host}\r\nX-OpenEnv-Session: new\r\nContent-Length: {length}\r\n\r\n{body}"


class Counted(Echo):
    """Counts how many of it live, and takes its time where it is told to."""

    alive: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        self.alive["made"] += 1

    def step(self, action: Say) -> Heard:
        if action.message == "long":
            threading.Event().wait(0.02)
        return super().step(action)

    def close(self) -> None:
        self.alive["closed"] += 1


def upgrade(host: str, more: str = "") -> bytes:
    return UPGRADE.format(host=host, more=more).encode()


def frame(text: str) -> bytes:
    """A masked text frame (RFC 6455, section 5.2), with a mask of zeros."""
    payload = text.encode()
    assert len(payload) < 126
    return bytes([0x81, 0x80 | len(payload)]) + bytes(4) + payload


STEP = frame('{"type":"step","data":{"message":"long"}}')
RESET = frame('{"type":"reset"}')
OPEN = frame('{"type":"x-open","id":1}')
OURS = f"Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n"

MOMENTS: dict[str, tuple[Any, list[bytes], int]] = {
    # What is said at first, what after the server's answer to that, and how many answers are awaited before leaving.
    "before a word": (lambda host: b"", [], 0),
    "in the handshake": (lambda host: upgrade(host)[:60], [], 0),
    "after sending the handshake": (upgrade, [], 0),
    "after the handshake": (upgrade, [], 1),
    "before x-open": (lambda host: upgrade(host, OURS), [], 1),
    "after sending x-open": (lambda host: upgrade(host, OURS), [OPEN], 1),
    "in a frame": (upgrade, [RESET[:7]], 1),
    "after sending a reset": (upgrade, [RESET], 1),
    "between two steps": (upgrade, [RESET], 2),
    "in a step": (upgrade, [RESET, STEP], 2),
    "with steps in the queue": (upgrade, [RESET, STEP * 5], 2),
    "in a body": (lambda host: KEPT_RESET.format(host=host, length=9, body="{").encode(), [], 0),
    "after sending a body": (lambda host: KEPT_RESET.format(host=host, length=2, body="{}").encode(), [], 0),
}


def leave(address: tuple[str, int], moment: str, *, abruptly: bool) -> None:
    """Come, say what is said up to that moment, and be gone, with a reset or with an ordinary end of the stream."""
    opening, later, answers = MOMENTS[moment]
    with socket.create_connection(address, timeout=WAIT_S) as peer:
        peer.sendall(opening(f"{address[0]}:{address[1]}"))
        for number, words in enumerate(itertools.chain(later, [b""] * answers)):
            if number < answers:
                assert peer.recv(65536)
            if words:
                peer.sendall(words)
        if abruptly:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def open_sockets() -> int:
    return sum(_is_socket(descriptor) for descriptor in range(8192))


def _is_socket(descriptor: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:  # it is none of ours, or was closed just now
        return False


def session_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("openenv-")]


def test_a_thousand_dirty_disconnects_leave_no_slot_thread_or_socket_behind() -> None:
    counted = type("Counted", (Counted,), {"alive": Counter()})
    app, server = serving(counted, max_concurrent_envs=64)
    with serve(app) as url:
        address = urlsplit(url).hostname or "", urlsplit(url).port or 0
        with socket_of(url) as bystander:
            ask(bystander, {"type": "reset"})
            sockets, threads = open_sockets(), session_threads()
            manners = itertools.cycle(itertools.product(MOMENTS, (True, False)))
            for number, (moment, abruptly) in enumerate(itertools.islice(manners, DISCONNECTS)):
                leave(address, moment, abruptly=abruptly)
                if number % 50 == 0:
                    assert ask(bystander, {"type": "step", "data": {"message": "on"}})["data"]["reward"] == 1.0
            until(lambda: server.active_sessions == 1 + len(orphans(server)))
            for session_id in orphans(server):
                assert httpx.delete(f"{url}/session/{session_id}").status_code == 204
            until(lambda: server.active_sessions == 1)
            until(lambda: len(session_threads()) == len(threads))
            until(lambda: open_sockets() <= sockets)
            assert httpx.get(f"{url}/ready").json()["capacity"] == {"active_sessions": 1, "max_sessions": 64}
            assert counted.alive["made"] - counted.alive["closed"] == 1
            assert ask(bystander, {"type": "step", "data": {"message": "on"}})["data"]["reward"] == 1.0
        until(lambda: server.active_sessions == 0)
    assert counted.alive["made"] == counted.alive["closed"]


def orphans(server: Any) -> list[str]:
    """Sessions kept over HTTP whose client left after all had been sent to it: only their idle time ends them."""
    return [each for each in server._sessions.ids() if (known := server._sessions.get(each)) and known.kind == "kept"]
