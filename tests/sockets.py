"""Ways for tests to talk to the server's ``/ws``: in process, and over real sockets."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI
from starlette.testclient import TestClient
from websockets.sync.client import ClientConnection, connect

from openenv_gym_server.app import HTTPEnvServer, create_app
from openenv_gym_server.settings import ServerSettings
from tests.text_envs import Echo, Heard, Say

WAIT_S = 10.0


@contextmanager
def client_of(env: Any = Echo, settings: ServerSettings | None = None, **more: Any) -> Iterator[TestClient]:
    with TestClient(create_app(env, Say, Heard, settings=settings, **more)) as client:
        yield client


@contextmanager
def socket_of(url: str, query: str = "", **options: Any) -> Iterator[ClientConnection]:
    with connect(url.replace("http", "ws", 1) + "/ws" + query, compression=None, proxy=None, **options) as socket:
        yield socket


def ask(socket: Any, message: object) -> dict[str, Any]:
    text = message if isinstance(message, str) else json.dumps(message)
    if isinstance(socket, ClientConnection):
        socket.send(text)
        return json.loads(socket.recv(timeout=WAIT_S))
    socket.send_text(text)
    return socket.receive_json()


def until(condition: Callable[[], bool], waiter: threading.Event | None = None) -> None:
    waiter = waiter or threading.Event()
    for _ in range(1000):
        if condition():
            return
        waiter.wait(0.01)
    raise AssertionError("it did not come about in time")


def serving(env: Any, settings: ServerSettings | None = None, **more: Any) -> tuple[Any, HTTPEnvServer]:
    server = HTTPEnvServer(env, Say, Heard, settings=settings, **more)
    app = FastAPI()
    server.register_routes(app)
    return app, server
