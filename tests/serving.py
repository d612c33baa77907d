"""Real servers for tests: uvicorn in a named thread, on a port the system chose, stopped and joined at exit.

Not for tests that starlette's ``TestClient`` or the in-memory transport can hold. Used by every suite that needs a
socket.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import uvicorn

from openenv_gym_server.websocket_protocol import WebSocketProtocol

START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 20.0


@contextmanager
def serve(app: Any, *, host: str = "127.0.0.1", **uvicorn_settings: Any) -> Iterator[str]:
    """Serve an ASGI app and give its base URL, e.g. ``http://127.0.0.1:40123``.

    Args:
        app: any ASGI application.
        host: the address to listen on; ``::1`` gives an IPv6 server.
        **uvicorn_settings: what ``uvicorn.Config`` takes, over quiet defaults.
    """
    settings: dict[str, Any] = {
        "log_level": "error",
        "access_log": False,
        "ws": WebSocketProtocol,
        "lifespan": "on",
        "ws_max_size": 128 * 2**20,
        "timeout_graceful_shutdown": 10,
        **uvicorn_settings,
    }
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, 0))
        listener.listen(512)
        port = listener.getsockname()[1]
        server = _Server(uvicorn.Config(app, **settings))
        thread = threading.Thread(target=server.run_on, args=(listener,), name=f"uvicorn-{port}", daemon=True)
        thread.start()
        try:
            assert server.settled.wait(START_TIMEOUT_S), "the server did not start in time"
            if not server.started:
                raise RuntimeError("the server ended while it started") from server.failure
            yield f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        finally:
            server.should_exit = True
            thread.join(STOP_TIMEOUT_S)
            assert not thread.is_alive(), "the server did not stop in time"


@contextmanager
def serve_all(apps: Sequence[Any], **uvicorn_settings: Any) -> Iterator[list[str]]:
    """Serve several apps, each on a port of its own, and give their base URLs in order."""
    with ExitStack() as stack:
        yield [stack.enter_context(serve(app, **uvicorn_settings)) for app in apps]


class _Server(uvicorn.Server):
    """A uvicorn server that says when its start has succeeded or failed."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.settled = threading.Event()
        self.failure: BaseException | None = None

    def run_on(self, listener: socket.socket) -> None:
        try:
            self.run(sockets=[listener])
        except BaseException as error:
            self.failure = error
        finally:
            self.settled.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.settled.set()
