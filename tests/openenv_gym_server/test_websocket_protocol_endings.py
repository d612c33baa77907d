"""How connections of the protocol class begin and end: handshakes, closes, faults, pings, the end of the server."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, ConnectionClosedError, InvalidStatus
from websockets.frames import Frame, Opcode

from openenv_gym_server import websocket_protocol
from tests.openenv_gym_server.asgi_sockets import KEY, WAIT_S, Application, bare, exactly, opened, rest, served
from tests.sockets import until


@pytest.fixture
def app() -> Application:
    return Application()


@pytest.fixture
def url(app: Application) -> Iterator[str]:
    with served(app) as url:
        yield url


# ------------------------------------------------------------------------------------------------------ endings


def test_the_peers_close_is_answered_and_told(app: Application, url: str) -> None:
    with opened(url) as client:
        client.close(3001, "enough")
    assert client.protocol.close_rcvd is not None
    assert (client.protocol.close_rcvd.code, client.protocol.close_rcvd.reason) == (3001, "enough")
    assert app.finished.wait(WAIT_S)
    assert app.ends == [{"type": "websocket.disconnect", "code": 3001, "reason": "enough"}]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (Frame(Opcode.TEXT, b"\xff").serialize(mask=True), 1007),
        (Frame(Opcode.TEXT, b"not masked").serialize(mask=False), 1002),
        (b"\x81\x02", 1002),
        (Frame(Opcode.TEXT, b"\xff").serialize(mask=True) * 2000, 1007),
        (b"\x83\x80\x00\x00\x00\x00", 1002),
        (b"\xc1\x80\x00\x00\x00\x00", 1002),
        (Frame(Opcode.CONT, b"of nothing").serialize(mask=True), 1002),
        (b"\x81\xff" + (2**40).to_bytes(8, "big") + b"\x00\x00\x00\x00", 1009),
    ],
    ids=[
        "text that is not UTF-8",
        "no mask",
        "header without mask",
        "much text that is not UTF-8",
        "unknown opcode",
        "reserved bit",
        "continuation of nothing",
        "too large",
    ],
)
def test_a_faulty_frame_ends_the_connection_with_its_code(app: Application, url: str, data: bytes, code: int) -> None:
    with bare(url) as sock:
        sock.sendall(data)
        answer = rest(sock)
    assert answer[0] == 0x88
    assert int.from_bytes(answer[2:4], "big") == code
    assert app.finished.wait(WAIT_S)
    assert [end["code"] for end in app.ends] == [code]


def test_a_message_above_the_limit_closes_with_1009(app: Application) -> None:
    with served(app, ws_max_size=1000) as url, opened(url) as client:
        client.send("x" * 1000)
        assert client.recv(WAIT_S) == "x" * 1000
        client.send("x" * 1001)
        with pytest.raises(ConnectionClosedError) as closed:
            client.recv(WAIT_S)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


@pytest.mark.parametrize("how", ["reset", "end"])
def test_a_peer_that_vanishes_is_told_to_the_application(app: Application, url: str, how: str) -> None:
    with bare(url) as sock:
        if how == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.sendall(b"\x81")  # and no more of that frame
    assert app.finished.wait(WAIT_S)
    assert [end["code"] for end in app.ends] == [1005]


def test_the_applications_close_is_sent_and_its_answer_awaited() -> None:
    async def leave(receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.close", "code": 4000, "reason": "done"})
        with pytest.raises(RuntimeError, match=r"websocket\.send"):
            await send({"type": "websocket.send", "text": "late"})

    with served(app := Application(leave)) as url, opened(url) as client:
        client.send("go")
        client.send("ignored")
        with pytest.raises(ConnectionClosed) as closed:
            client.recv(WAIT_S)
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4000, "done")
        assert closed.value.sent is not None, "the peer had the time to answer"
    assert app.finished.wait(WAIT_S)


@pytest.mark.parametrize("last", [b"", b"\x88\x80\x00\x00\x00\x00", b"\xff" * 14], ids=["silence", "close", "garbage"])
@pytest.mark.parametrize("crowd", [b"", b"\x81\x80\x00\x00\x00\x00" * 50_000], ids=["", "reading is paused"])
def test_a_peer_that_reads_nothing_is_given_up_though_it_stays(
    last: bytes, crowd: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket_protocol, "_CLOSE_TIMEOUT_S", 0.3)
    lost = threading.Event()

    class Watched(websocket_protocol.WebSocketProtocol):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            lost.set()

    async def flood(receive: Any, send: Any) -> None:
        while True:
            await send({"type": "websocket.send", "bytes": b"x" * 100_000})

    pings = {"ws_ping_interval": 0.3, "ws_ping_timeout": 0.3} if crowd or not last else {"ws_ping_interval": None}
    with served(app := Application(flood), ws=Watched, **pings) as url, bare(url) as sock:
        sock.settimeout(0.2)
        threading.Event().wait(0.2)
        with contextlib.suppress(OSError):
            sock.sendall(crowd)
            sock.sendall(last)
        assert app.finished.wait(WAIT_S)
        assert lost.wait(WAIT_S)


def test_a_peer_that_reads_slowly_stays() -> None:
    async def tell(receive: Any, send: Any) -> None:
        for _ in range(3):
            await send({"type": "websocket.send", "bytes": b"x" * 8_000_000})

    with served(app := Application(tell), ws_ping_interval=0.2, ws_ping_timeout=0.2) as url, bare(url) as sock:
        for _ in range(16):
            exactly(sock, 1_000_000)
            threading.Event().wait(0.1)
        exactly(sock, 8_000_030)
    assert app.finished.wait(WAIT_S)


def test_sending_to_a_peer_that_is_gone_is_an_oserror_and_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    async def talk_on(receive: Any, send: Any) -> None:
        while (await receive())["type"] != "websocket.disconnect":
            pass
        await send({"type": "websocket.send", "text": "anybody?"})

    with served(app := Application(talk_on), log_config=None) as url:
        with opened(url):
            pass
        assert app.finished.wait(WAIT_S)
    assert not caplog.records


def test_an_application_that_raises_is_logged_and_closes_with_1011(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(receive: Any, send: Any) -> None:
        await receive()
        raise LookupError("its own fault")

    with served(Application(fail), log_config=None) as url, opened(url) as client:
        client.send("go")
        with pytest.raises(ConnectionClosedError) as closed:
            client.recv(WAIT_S)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1011
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [LookupError]


def test_an_event_that_has_no_place_is_refused() -> None:
    refused: list[str] = []

    async def err(receive: Any, send: Any) -> None:
        try:
            await send({"type": "websocket.accept"})
        except RuntimeError as error:
            refused.append(str(error))

    with served(app := Application(err)) as url, opened(url):
        assert app.finished.wait(WAIT_S)
    assert "websocket.accept" in refused[0]


# ------------------------------------------------------------------------------------------------ the handshake


def test_a_subprotocol_and_headers_are_agreed(caplog: pytest.LogCaptureFixture) -> None:
    app = Application(accept={"subprotocol": "b", "headers": [(b"x-told", b"caf\xe9")]})
    caplog.set_level(logging.INFO, "uvicorn.error")
    with (
        served(app, root_path="/root", log_level="info") as url,
        opened(f"{url}/p%20q?x=1", subprotocols=["a", "b"]) as client,
    ):
        assert client.subprotocol == "b"
        assert client.response is not None
        assert client.response.headers["x-told"].encode("latin-1", "surrogateescape") == b"caf\xe9"
        assert client.response.headers.get_all("date") == client.response.headers.get_all("Date")
        assert len(client.response.headers.get_all("Date")) == 1
    [scope] = app.scopes
    assert scope["subprotocols"] == ["a", "b"]
    assert (scope["path"], scope["query_string"]) == ("/root/p q", b"x=1")


def test_proxy_headers_are_believed(app: Application) -> None:
    with (
        served(app, proxy_headers=True) as url,
        opened(url, additional_headers={"X-Forwarded-For": "10.1.2.3", "X-Forwarded-Proto": "https"}),
    ):
        pass
    assert app.scopes[0]["client"][0] == "10.1.2.3"
    assert app.scopes[0]["scheme"] == "wss"


@pytest.mark.parametrize(
    ("events", "status", "body"),
    [
        ([{"type": "websocket.close"}], 403, b""),
        (
            [
                {"type": "websocket.http.response.start", "status": 401, "headers": [(b"x-why", b"token")]},
                {"type": "websocket.http.response.body", "body": b"no ", "more_body": True},
                {"type": "websocket.http.response.body", "body": b"token"},
            ],
            401,
            b"no token",
        ),
        ([], 500, b""),
        ([{"type": "websocket.send", "text": "too early"}], 500, b""),
    ],
    ids=["closed", "answered", "left", "wrong event"],
)
def test_a_handshake_may_be_refused(events: list[dict[str, Any]], status: int, body: bytes) -> None:
    async def refuse(scope: dict[str, Any], receive: Any, send: Any) -> None:
        assert (await receive())["type"] == "websocket.connect"
        for event in events:
            await send(event)

    with served(refuse) as url, pytest.raises(InvalidStatus) as refused, opened(url):
        pass
    assert refused.value.response.status_code == status
    assert refused.value.response.body == body
    assert refused.value.response.headers.get("x-why") == ("token" if status == 401 else None)


@pytest.mark.parametrize(
    ("fields", "status"),
    [(b"", b"400"), (KEY.replace(b"13", b"12"), b"400"), (KEY + b"x: " + b"y" * 9000 + b"\r\n", b"4")],
    ids=["no key", "another version", "a header that is too long"],
)
def test_a_faulty_request_is_answered_and_reaches_no_application(
    app: Application, url: str, fields: bytes, status: bytes
) -> None:
    host, port = url.removeprefix("ws://").split(":")
    with socket.create_connection((host, int(port)), timeout=WAIT_S) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" + fields + b"\r\n")
        assert rest(sock).startswith(b"HTTP/1.1 " + status)
    assert not app.scopes


# -------------------------------------------------------------------------------------------- pings and the end


def test_a_peer_that_does_not_answer_pings_is_given_up(app: Application) -> None:
    with served(app, ws_ping_interval=0.05, ws_ping_timeout=0.1) as url, bare(url) as sock:
        answer = rest(sock)
    assert answer.startswith(Frame(Opcode.PING, b"").serialize(mask=False))
    assert (1011).to_bytes(2, "big") + b"keepalive ping timeout" in answer
    assert app.finished.wait(WAIT_S)
    assert app.ends[0]["code"] == 1011


@pytest.mark.parametrize("timeout", [0.05, None])
def test_a_peer_that_answers_pings_stays(app: Application, timeout: float | None) -> None:
    with served(app, ws_ping_interval=0.05, ws_ping_timeout=timeout) as url, bare(url) as sock:
        for _ in range(5):
            assert exactly(sock, 2) == b"\x89\x00"
            sock.sendall(Frame(Opcode.PONG, b"").serialize(mask=True))
    assert app.finished.wait(WAIT_S)
    assert app.ends[0]["code"] == 1005


def test_a_server_that_ends_says_so_and_waits_for_nobody(app: Application) -> None:
    with contextlib.ExitStack() as stack:
        with served(app) as url:
            clients = [stack.enter_context(opened(url)) for _ in range(3)]
            stack.enter_context(bare(url))
            until(lambda: len(app.scopes) == 4)
        for client in clients:
            with pytest.raises(ConnectionClosed) as closed:
                client.recv(WAIT_S)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1012
    assert [end["code"] for end in app.ends] == [1012] * 4


def test_a_server_that_ends_refuses_a_handshake_that_is_not_answered_yet() -> None:
    begun = threading.Event()

    async def undecided(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await receive()
        begun.set()
        assert (await receive())["type"] == "websocket.disconnect"

    failures: list[BaseException] = []

    def knock(url: str) -> None:
        try:
            with opened(url):
                pass
        except InvalidStatus as error:
            failures.append(error)

    with served(undecided) as url:
        thread = threading.Thread(target=knock, args=(url,))
        thread.start()
        assert begun.wait(WAIT_S)
    thread.join(WAIT_S)
    assert [error.response.status_code for error in failures] == [500]
