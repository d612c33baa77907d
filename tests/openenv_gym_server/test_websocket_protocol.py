"""Messages and flow control of the protocol class under a real uvicorn; its handshakes and endings: ``_endings``."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.frames import Frame, Opcode

from tests.openenv_gym_server.asgi_sockets import KEY, WAIT_S, Application, bare, exactly, opened, rest, served
from tests.sockets import until


@pytest.fixture
def app() -> Application:
    return Application()


@pytest.fixture
def url(app: Application) -> Iterator[str]:
    with served(app) as url:
        yield url


# ----------------------------------------------------------------------------------------------------- messages


@pytest.mark.parametrize("compression", [None, "deflate"])
@pytest.mark.parametrize("size", [0, 1, 125, 126, 1500, 65_535, 65_536, 1_000_000])
def test_messages_of_every_size_come_back(url: str, compression: str | None, size: int) -> None:
    text = "ä" + "x" * size
    with opened(url, compression=compression) as client:
        for message in (text, text.encode(), text):
            client.send(message)
            assert client.recv(WAIT_S) == message


def test_fragments_are_joined(url: str) -> None:
    with opened(url) as client:
        client.send(["one ", "two ", "three"])
        assert client.recv(WAIT_S) == "one two three"
        client.send([b"1", b"2"])
        assert client.recv(WAIT_S) == b"12"


def test_many_messages_at_once_come_back_in_order(url: str) -> None:
    frames = b"".join(Frame(Opcode.TEXT, b"%d" % number).serialize(mask=True) for number in range(500))
    expected = b"".join(Frame(Opcode.TEXT, b"%d" % number).serialize(mask=False) for number in range(500))
    with bare(url) as sock:
        sock.sendall(frames)
        assert exactly(sock, len(expected)) == expected


def test_a_client_that_does_not_wait_for_the_handshake_loses_nothing() -> None:
    begun, may_accept = threading.Event(), threading.Event()

    async def slow(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await receive()
        begun.set()
        while not may_accept.is_set():
            await asyncio.sleep(0.01)
        await send({"type": "websocket.accept"})
        size = 0
        while size < 200_000:
            size += len((await receive())["bytes"])
        await send({"type": "websocket.send", "text": str(size)})

    with served(slow) as url:
        host, port = url.removeprefix("ws://").split(":")
        with socket.create_connection((host, int(port)), timeout=WAIT_S) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" + KEY + b"\r\n")
            assert begun.wait(WAIT_S)  # what comes in one piece with the request, uvicorn drops
            sock.sendall(Frame(Opcode.BINARY, b"x" * 100_000).serialize(mask=True) * 2)
            may_accept.set()
            assert rest(sock).endswith(b"200000")


def test_pings_are_answered(url: str) -> None:
    with opened(url) as client:
        assert client.ping().wait(WAIT_S)


def test_a_hundred_clients_are_served_at_once(app: Application, url: str) -> None:
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(opened(url)) for _ in range(100)]
        for number, client in enumerate(clients):
            client.send(str(number))
        assert [client.recv(WAIT_S) for client in clients] == [str(number) for number in range(100)]
    until(lambda: len(app.ends) == 100)
    assert {end["code"] for end in app.ends} == {1000}


# ------------------------------------------------------------------------------------------------ flow control


def test_a_peer_that_does_not_read_holds_the_application_up() -> None:
    sent: list[int] = []

    async def flood(receive: Any, send: Any) -> None:
        for number in range(1000):
            await send({"type": "websocket.send", "bytes": b"x" * 100_000})
            sent.append(number)

    with served(Application(flood)) as url, bare(url) as sock:
        held = -1
        while held != len(sent):
            held = len(sent)
            threading.Event().wait(0.3)
        assert 0 < held < 500
        got = 0
        while got < 1000 * 100_010:
            got += len(sock.recv(1_000_000))
    assert len(sent) == 1000


def test_an_application_that_does_not_receive_holds_the_peer_up_and_then_loses_nothing() -> None:
    may_receive = threading.Event()

    async def late(receive: Any, send: Any) -> None:
        while not may_receive.is_set():
            await asyncio.sleep(0.01)
        for _ in range(1000):
            await receive()
        await send({"type": "websocket.send", "text": "all"})

    with served(Application(late)) as url, bare(url) as sock:
        sock.settimeout(0.5)
        stream = memoryview(Frame(Opcode.BINARY, b"x" * 100_000).serialize(mask=True) * 1000)
        with contextlib.suppress(TimeoutError):
            while stream:
                stream = stream[sock.send(stream[:100_000]) :]
        assert len(stream) > 50_000_000
        may_receive.set()
        sock.settimeout(WAIT_S)
        sock.sendall(stream)
        assert rest(sock) == Frame(Opcode.TEXT, b"all").serialize(mask=False)


def masked(opcode: Opcode, payload: bytes, *, fin: bool = True) -> bytes:
    return Frame(opcode, payload, fin=fin).serialize(mask=True)


@pytest.mark.parametrize(
    "frame",
    [masked(Opcode.TEXT, b""), masked(Opcode.PING, b"?" * 100)],
    ids=["empty messages", "pings whose pongs are not read"],
)
def test_frames_that_nobody_takes_are_held_at_the_peer(frame: bytes) -> None:
    may_receive = threading.Event()

    async def late(receive: Any, send: Any) -> None:
        while not may_receive.is_set():
            await asyncio.sleep(0.01)

    with served(Application(late)) as url, bare(url) as sock:
        sock.settimeout(3)  # longer than the server takes to go through what it has read
        stream = memoryview(frame * (30_000_000 // len(frame)))
        with contextlib.suppress(TimeoutError):
            while stream:
                stream = stream[sock.send(stream[:100_000]) :]
        may_receive.set()
    assert len(stream) > 10_000_000


def test_a_flood_of_fragments_without_payload_keeps_nobody_waiting(url: str) -> None:
    def flood(sock: socket.socket) -> None:
        empty = masked(Opcode.CONT, b"", fin=False) * 100_000
        sock.sendall(masked(Opcode.TEXT, b"a", fin=False) + empty + masked(Opcode.CONT, b"b"))
        assert exactly(sock, 4) == b"\x81\x02ab"

    with opened(url) as other, bare(url) as sock:
        thread = threading.Thread(target=flood, args=(sock,))
        thread.start()
        answered = 0
        while thread.is_alive():
            other.send("there?")
            assert other.recv(WAIT_S) == "there?"
            answered += 1
    assert answered > 30, "of 150 turns of the loop"


def test_messages_of_all_sizes_at_once_come_back_in_order(url: str) -> None:
    sizes = [0, 1, 70_000, 5_000, 0, 4_090, 4_096, 200_000, 3, 100] * 5
    frames = [Frame(Opcode.BINARY, bytes([number]) * size) for number, size in enumerate(sizes)]
    with bare(url) as sock:
        thread = threading.Thread(target=sock.sendall, args=(b"".join(frame.serialize(mask=True) for frame in frames),))
        thread.start()
        for frame in frames:
            expected = frame.serialize(mask=False)
            assert exactly(sock, len(expected)) == expected
        thread.join()


def test_a_receive_that_is_cancelled_loses_no_message() -> None:
    async def impatient(receive: Any, send: Any) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(receive(), 0.01)
        await send({"type": "websocket.send", "text": "now"})
        first, second = asyncio.create_task(receive()), asyncio.create_task(receive())
        texts = sorted([(await first)["text"], (await second)["text"]])
        await send({"type": "websocket.send", "text": " ".join(texts)})

    with served(Application(impatient)) as url, opened(url) as client:
        assert client.recv(WAIT_S) == "now"
        client.send("a")
        client.send("b")
        assert client.recv(WAIT_S) == "a b"
