"""Tests of ``openenv_gym_server.standard_mcp``: what is not the protocol's but the endpoint's own."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import httpx
import pytest
from anyio import ClosedResourceError
from fastapi import FastAPI

from openenv_gym.tools import CallToolAction, CallToolObservation
from openenv_gym_server import standard_mcp
from openenv_gym_server.app import HTTPEnvServer
from openenv_gym_server.catalogue import Catalogue
from openenv_gym_server.routes.served import Served
from openenv_gym_server.rpc_methods import RpcMethods
from openenv_gym_server.settings import DEFAULT_KEPT_SESSION_TIMEOUT_S, ServerSettings
from tests.interop.mcp_playground import Playground, playground
from tests.interop.mcp_wire import ACCEPT, LATEST, Wire, answers
from tests.sockets import until

HEADERS = {"accept": ACCEPT, "content-type": "application/json"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": LATEST, "capabilities": {}, "clientInfo": {"name": "loops", "version": "1"}},
}


def served(**settings: Any) -> tuple[FastAPI, HTTPEnvServer]:
    server = HTTPEnvServer(Playground, CallToolAction, CallToolObservation, settings=ServerSettings(**settings))
    app = FastAPI()
    server.register_routes(app)
    return app, server


async def played(app: FastAPI) -> tuple[str, dict[str, Any]]:
    """A session's id, and the answer to a call in it, without any lifespan."""
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=HEADERS) as client:
        begun = await client.post("/mcp", json=HELLO)
        client.headers["mcp-session-id"] = begun.headers["mcp-session-id"]
        await client.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        params = {"name": "next_number", "arguments": {}}
        called = await client.post("/mcp", json={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
        return client.headers["mcp-session-id"], answers(called)[0]["result"]


def test_an_application_may_be_driven_from_one_loop_after_another() -> None:
    app, server = served()
    given = [asyncio.run(played(app)) for _ in range(3)]
    assert [result["content"][0]["text"] for _, result in given] == ["1", "1", "1"]
    # The end of a loop is the end of its sessions.
    until(lambda: server.active_sessions == 0)


def test_the_end_of_the_application_is_the_end_of_its_sessions() -> None:
    app, server = served()

    async def play() -> int:
        async with app.router.lifespan_context(app):
            await played(app)
            return server.active_sessions

    assert asyncio.run(play()) == 1
    assert server.active_sessions == 0


def test_ending_what_has_not_begun_is_nothing() -> None:
    app, _ = served()

    async def end() -> None:
        async with app.router.lifespan_context(app):
            pass

    asyncio.run(end())


def test_after_its_end_the_endpoint_begins_anew() -> None:
    app, server = served()

    # The sessions' threads are stopped with the application, so only what needs none is asked.
    async def hello() -> int:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            return (await client.post("/mcp", json=HELLO, headers=HEADERS)).status_code

    async def main() -> list[int]:
        async with app.router.lifespan_context(app):
            first = await hello()
        return [first, await hello()]

    assert asyncio.run(main()) == [200, 200]
    assert server.active_sessions == 0


def test_a_body_above_the_limit_is_refused_by_the_settings_name() -> None:
    with playground("simulation", max_message_size_mb=0.001) as (url, _), Wire(url) as wire:
        refused = wire.begin().post({"jsonrpc": "2.0", "id": 1, "method": "ping", "padding": "x" * 2000})
        assert refused.status_code == 413
        assert "max_message_size_mb" in refused.json()["error"]["message"]
        assert wire.call("add", a=1)["isError"] is False


@pytest.mark.parametrize("body", [b"\xff", b"[" * 100_000, b"NaN", b""])
def test_what_is_no_json_is_a_parse_error(body: bytes) -> None:
    with playground("production") as (url, _), Wire(url) as wire:
        refused = wire.begin().post(body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32700)


def test_a_body_that_never_comes_to_its_end_is_nobodys() -> None:
    app, _ = served()
    sent: list[Any] = []
    events = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Any:
        return events.pop(0)

    async def send(event: Any) -> None:
        sent.append(event)

    headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers, "server": None, "query_string": b""}
    asyncio.run(app({**scope, "root_path": "", "scheme": "http"}, receive, send))
    assert sent == []


@pytest.mark.parametrize(("own", "expected"), [(5.0, 5.0), (None, DEFAULT_KEPT_SESSION_TIMEOUT_S)])
def test_the_operators_limits_are_the_sdks(monkeypatch: pytest.MonkeyPatch, own: float | None, expected: float) -> None:
    limits: dict[str, Any] = {}

    class Manager:
        def __init__(self, _: Any, *, session_idle_timeout: float, max_request_body_size: int) -> None:
            limits.update(session_idle_timeout=session_idle_timeout, max_request_body_size=max_request_body_size)

    monkeypatch.setattr(standard_mcp, "StreamableHTTPSessionManager", Manager)
    chosen = ServerSettings(session_timeout_s=own, max_message_size_mb=2.0)
    sessions = HTTPEnvServer(Playground, CallToolAction, CallToolObservation, settings=chosen)._sessions
    parts = Served("playground", sessions, Catalogue(sessions), chosen, RpcMethods(sessions, chosen))
    standard_mcp.endpoint(parts)._manager()
    assert limits == {"session_idle_timeout": expected, "max_request_body_size": 2 * 2**20}


def test_the_ordinary_end_of_an_open_stream_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("mcp.server.streamable_http")
    for error in (ClosedResourceError(), ValueError("else")):
        try:
            raise error
        except Exception:
            logger.exception("Error in standalone SSE writer")
    logger.warning("plain")
    assert [record.exc_info and record.exc_info[0] for record in caplog.records] == [ValueError, None]


def test_the_body_is_what_the_client_sent() -> None:
    with playground("simulation") as (url, _), Wire(url) as wire:
        text = json.dumps(wire.begin().message("tools/call", {"name": "add", "arguments": {"a": 2**40}}), indent=3)
        assert answers(wire.post(text))[0]["result"]["content"][0]["text"] == str(2**40 + 1)


@pytest.mark.parametrize("request_id", [1.5, 1.0, None, [], {}, True])
@pytest.mark.parametrize("method", ["initialize", "tools/call"])
def test_a_request_whose_id_is_none_is_refused_and_no_notification(method: str, request_id: Any) -> None:
    app, _ = served()

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            return await client.post("/mcp", json=HELLO | {"id": request_id, "method": method}, headers=HEADERS)

    answer = asyncio.run(ask())
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], error["message"]) == (-32600, "Invalid request: id: expected a string or an integer")
