"""Real peers on 127.0.0.1 for the tests of the transports: WebSocket servers, bare TCP scripts, certificates."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import select
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
from typing import Any

import pytest
import trustme
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame as WebSocketFrame
from websockets.frames import Opcode
from websockets.server import ServerProtocol
from websockets.sync.server import ServerConnection, serve

from openenv_gym.loopless import drive
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.blocking import BlockingTransport, connect

Script = Callable[[socket.socket], None]
Run = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine of a client to its end."""
Start = Callable[..., str]
"""Starts a server, and gives its address."""
WAIT_S = 10.0


@pytest.fixture(params=["blocking", "awaited"])
def run(request: pytest.FixtureRequest) -> Run:
    return drive if request.param == "blocking" else asyncio.run


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        pause.wait(0.002)


@contextlib.contextmanager
def interrupted_at(point: int, *, within: str) -> Iterator[None]:
    """Raise KeyboardInterrupt before the given one of the bytecodes of the files whose path has ``within`` in it.

    Harsher than a signal, whose handler runs at some of these points alone.
    """
    left = point

    def trace(frame: FrameType, event: str, _: object) -> object:
        nonlocal left
        if within not in frame.f_code.co_filename or "tests" in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(old)


def echo(connection: ServerConnection) -> None:
    for message in connection:
        connection.send(message)


@pytest.fixture
def serve_websocket() -> Iterator[Callable[..., str]]:
    """Start a WebSocket server and get its base URL; each connection is given to the handler."""
    with contextlib.ExitStack() as stack:

        def start(
            handler: Callable[[ServerConnection], None] = echo, *, host: str = "127.0.0.1", **options: object
        ) -> str:
            def guarded(connection: ServerConnection) -> None:
                with contextlib.suppress(ConnectionClosed):
                    handler(connection)

            options = {"max_size": None, "compression": None, "ping_interval": None, **options}
            server = stack.enter_context(serve(guarded, host, 0, **options))
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            stack.callback(thread.join, WAIT_S)
            stack.callback(server.shutdown)
            shown = f"[{host}]" if ":" in host else host
            return f"{'https' if options.get('ssl') else 'http'}://{shown}:{server.socket.getsockname()[1]}"

        yield start


@pytest.fixture
def serve_tcp() -> Iterator[Callable[..., str]]:
    """Start a bare TCP server and get its base URL; the script plays the peer of each connection, one after another."""
    with contextlib.ExitStack() as stack:

        def start(script: Script, *, context: ssl.SSLContext | None = None) -> str:
            listener = socket.create_server(("127.0.0.1", 0))

            def run() -> None:
                while True:
                    try:
                        sock, _ = listener.accept()
                    except OSError:
                        return
                    sock.settimeout(WAIT_S)
                    # The peer leaves when it likes: what the test asserts is what the client sees.
                    with sock, contextlib.suppress(OSError):
                        if context is None:
                            script(sock)
                        else:
                            with context.wrap_socket(sock, server_side=True) as secure:
                                script(secure)

            thread = threading.Thread(target=run)
            thread.start()
            stack.callback(thread.join, WAIT_S)
            stack.callback(listener.close)
            stack.callback(listener.shutdown, socket.SHUT_RDWR)
            return f"{'http' if context is None else 'https'}://127.0.0.1:{listener.getsockname()[1]}"

        yield start


class ScriptedPeer:
    """The server's end of one WebSocket on a bare socket, its handshake done, for what no proper server sends."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.protocol = ServerProtocol(max_size=None)
        self.frames: list[WebSocketFrame] = []
        while True:
            data = sock.recv(65536)
            if not data:
                raise ConnectionError("the client left before its handshake")
            self.protocol.receive_data(data)
            for event in self.protocol.events_received():
                self.protocol.send_response(self.protocol.accept(event))
                sock.sendall(b"".join(self.protocol.data_to_send()))
                return

    def send(self, data: bytes, *, opcode: Opcode = Opcode.TEXT, fin: bool = True, mask: bool = False) -> None:
        self.sock.sendall(WebSocketFrame(opcode, data, fin).serialize(mask=mask))

    def receive(self, *, until: Opcode | None = None) -> WebSocketFrame | None:
        """The next frame (of that kind), or None once the client has gone."""
        while True:
            while self.frames:
                frame = self.frames.pop(0)
                if until is None or frame.opcode is until:
                    return frame
            data = self.sock.recv(65536)
            if not data:
                return None
            self.protocol.receive_data(data)
            events = self.protocol.events_received()
            self.frames.extend(event for event in events if isinstance(event, WebSocketFrame))

    def wait_for_end(self) -> None:
        while self.sock.recv(65536):
            pass


@pytest.fixture
def serve_scripted(serve_tcp: Callable[..., str]) -> Callable[..., str]:
    """Start a server whose script gets a ``ScriptedPeer``."""

    def start(script: Callable[[ScriptedPeer], None], **options: object) -> str:
        return serve_tcp(lambda sock: script(ScriptedPeer(sock)), **options)

    return start


@dataclasses.dataclass
class HttpRequest:
    """What a client asked: ``target`` is the path, or what stands in its place towards a proxy."""

    method: str
    target: str
    headers: dict[str, str]


def read_request(sock: socket.socket) -> HttpRequest:
    head = b""
    while b"\r\n\r\n" not in head:
        data = sock.recv(65536)
        if not data:
            raise ConnectionError("the client left before its request")
        head += data
    first, *fields = head.decode("latin-1").split("\r\n\r\n")[0].split("\r\n")
    method, target, _ = first.split(" ")
    return HttpRequest(
        method, target, {name.lower(): value for name, _, value in (line.partition(": ") for line in fields)}
    )


Answer = tuple[int, dict[str, str], bytes]


@pytest.fixture
def serve_http(serve_tcp: Callable[..., str]) -> Callable[..., str]:
    """Start an HTTP server; the function gives status, headers and body for each request."""

    def start(answer: Callable[[HttpRequest], Answer], **options: object) -> str:
        def script(sock: socket.socket) -> None:
            status, headers, body = answer(read_request(sock))
            headers = {"Content-Length": str(len(body)), "Connection": "close", **headers}
            fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items() if value)
            sock.sendall(f"HTTP/1.1 {status} Said\r\n{fields}\r\n".encode() + body)

        return serve_tcp(script, **options)

    return start


@pytest.fixture
def serve_proxy(serve_tcp: Callable[..., str]) -> Callable[..., str]:
    """Start a proxy that opens tunnels (CONNECT), always to 127.0.0.1, and notes each request in the given list."""

    def start(requests: list[HttpRequest], **options: object) -> str:
        def script(sock: socket.socket) -> None:
            request = read_request(sock)
            requests.append(request)
            port = int(request.target.rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port)) as onward:
                sock.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                relay(sock, onward)

        return serve_tcp(script, **options)

    return start


def relay(left: socket.socket, right: socket.socket) -> None:
    other = {left: right, right: left}
    while True:
        for source in select.select([left, right], [], [], WAIT_S)[0]:
            data = source.recv(65536)
            if not data:
                return
            other[source].sendall(data)


@pytest.fixture
def open_transport() -> Iterator[Callable[..., BlockingTransport]]:
    """Connect; what a test leaves open is closed after it."""
    opened: list[BlockingTransport] = []

    def start(base_url: str, settings: ConnectionSettings | None = None, **options: object) -> BlockingTransport:
        opened.append(connect(base_url, settings or ConnectionSettings(close_timeout_s=0.2), **options))
        return opened[-1]

    yield start
    for transport in opened:
        transport.close()


@pytest.fixture
def echoing(serve_websocket: Callable[..., str], open_transport: Callable[..., BlockingTransport]) -> BlockingTransport:
    return open_transport(serve_websocket())


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def authority_file(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


@pytest.fixture(scope="session")
def server_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", "localhost", "server.test").configure_cert(context)
    return context


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment that names no proxy."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch
