"""Tests of ``openenv_gym_server.routes.mcp``: what POST and the socket add to the methods."""

from __future__ import annotations

import json
import sys
import threading
from socket import create_connection
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from openenv_gym_server.routes.mcp import STANDARD, is_standard
from openenv_gym_server.settings import ServerSettings
from tests.openenv_gym_server.climbing import SECRET, app_of, calling, climber, rpc, server_of
from tests.serving import serve
from tests.sockets import until

BOTH = pytest.mark.parametrize("mode", ["simulation", "production"])


def client_of(mode: str = "simulation", **settings: Any) -> TestClient:
    return TestClient(app_of(climber(), mode, ServerSettings(**settings)))


# ------------------------------------------------------------------------------------------------ over POST


@BOTH
def test_a_request_is_answered_as_json_with_status_200_its_failures_too(mode: str) -> None:
    with client_of(mode) as client:
        for content in (json.dumps(rpc("tools/list")), json.dumps(rpc("nope")), "{", '{"jsonrpc":"1"}', "5"):
            answer = client.post("/mcp", content=content)
            assert answer.status_code == 200
            assert answer.headers["content-type"] == "application/json"
            assert answer.json()["jsonrpc"] == "2.0"


def test_the_content_type_of_a_request_does_not_matter() -> None:
    with client_of() as client:
        answer = client.post("/mcp", content=json.dumps(rpc("tools/list")), headers={"content-type": "text/plain"})
        assert "result" in answer.json()


def test_a_notification_is_done_and_accepted_without_an_answer() -> None:
    env = climber()
    with TestClient(app_of(env)) as client:
        request = calling("climb")
        del request["id"]
        answer = client.post("/mcp", json=request)
        assert (answer.status_code, answer.content) == (202, b"")
        assert env.made[0].height == 1
        assert client.post("/mcp", json=[request, request]).status_code == 202
        assert len(env.made) == 3


def test_a_session_that_nobody_hears_of_is_not_kept() -> None:
    server = server_of(climber())
    app = FastAPI()
    server.register_routes(app)
    with TestClient(app) as client:
        request = rpc("openenv/session/create")
        del request["id"]
        assert client.post("/mcp", json=request).status_code == 202
        until(lambda: server.active_sessions == 0)


def test_a_batch_has_an_array_of_answers_to_its_requests() -> None:
    with client_of() as client:
        batch = [rpc("tools/list", "a"), {"jsonrpc": "2.0", "method": "tools/list"}, 5, rpc("nope", "b")]
        answers = client.post("/mcp", json=batch).json()
        assert [answer["id"] for answer in answers] == ["a", None, "b"]
        assert [answer.get("error", {}).get("code") for answer in answers] == [None, -32600, -32601]


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "HEAD"])
def test_other_verbs_are_not_allowed(method: str) -> None:
    with client_of() as client:
        answer = client.request(method, "/mcp")
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_a_body_above_the_limit_is_refused() -> None:
    with client_of(max_message_size_mb=0.001) as client:
        answer = client.post("/mcp", json=calling("climb", text="x" * 2000))
        assert answer.status_code == 413
        assert answer.json()["error"]["code"] == -32600
        assert "max_message_size_mb" in answer.json()["error"]["message"]


def test_a_web_page_of_a_stranger_may_not_call_tools() -> None:
    with client_of() as client:
        refused = client.post("/mcp", json=rpc("tools/list"), headers={"origin": "https://evil.example"})
        assert refused.status_code == 403
        with pytest.raises(WebSocketDisconnect):
            client.websocket_connect("/mcp", headers={"origin": "https://evil.example"}).__enter__()


def test_the_token_is_asked_for_here_too() -> None:
    with client_of(token="secret") as client:
        assert client.post("/mcp", json=rpc("tools/list")).status_code == 401
        allowed = {"authorization": "Bearer secret"}
        assert client.post("/mcp", json=rpc("tools/list"), headers=allowed).status_code == 200


@BOTH
def test_openapi_describes_the_route(mode: str) -> None:
    with client_of(mode) as client:
        described = client.get("/openapi.json").json()["paths"]["/mcp"]
        assert list(described) == ["post"]
        assert "requestBody" in described["post"]


def test_a_client_that_leaves_while_its_session_is_made_leaves_none_behind() -> None:
    began, go_on = threading.Event(), threading.Event()

    def slowly() -> Any:
        began.set()
        go_on.wait(10.0)
        return climber()()

    slowly.SUPPORTS_CONCURRENT_SESSIONS = True  # type: ignore[attr-defined]
    slowly.REQUIRES_SINGLE_THREAD_EXECUTOR = False  # type: ignore[attr-defined]
    server = server_of(slowly)
    app = FastAPI()
    server.register_routes(app)
    with serve(app) as url:
        host, port = url.removeprefix("http://").split(":")
        content = json.dumps(rpc("openenv/session/create")).encode()
        with create_connection((host, int(port)), timeout=10.0) as sock:
            sock.sendall(b"POST /mcp HTTP/1.1\r\nHost: %s\r\n" % host.encode())
            sock.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(content), content))
            assert began.wait(10.0)
        go_on.set()
        until(lambda: server.active_sessions == 0)


# --------------------------------------------------------------------------------------------- over a socket


def test_a_socket_goes_on_after_whatever_cannot_be_read() -> None:
    with client_of() as client, client.websocket_connect("/mcp") as socket:
        for content, code in (("{", -32700), ("[]", -32600), ("5", -32700), ('"\\ud800"', -32700), ("{}", -32600)):
            socket.send_text(content)
            assert socket.receive_json()["error"]["code"] == code
        socket.send_bytes(b"\xff")
        assert socket.receive_json()["error"]["code"] == -32700
        socket.send_bytes(json.dumps(calling("climb")).encode())
        assert socket.receive_json()["result"]["data"] == 1, "a binary frame may hold the text as well"


def test_a_notification_over_a_socket_has_no_answer_and_a_batch_has_one() -> None:
    with client_of() as client, client.websocket_connect("/mcp") as socket:
        request = calling("climb")
        del request["id"]
        socket.send_json(request)
        socket.send_json([request, calling("climb")])
        (answer,) = socket.receive_json()
        assert answer["result"]["data"] == 3


def test_a_message_above_the_limit_is_refused_and_the_socket_goes_on() -> None:
    with client_of(max_message_size_mb=0.001) as client, client.websocket_connect("/mcp") as socket:
        socket.send_text("x" * 2000)
        assert socket.receive_json()["error"]["code"] == -32600
        socket.send_json(rpc("nope"))
        assert socket.receive_json()["error"]["code"] == -32601


def test_a_full_server_says_so_once_and_closes() -> None:
    with client_of(max_concurrent_envs=1) as client, client.websocket_connect("/mcp") as first:
        first.send_json(rpc("tools/list"))
        assert "result" in first.receive_json()
        with client.websocket_connect("/mcp") as second:
            refused = second.receive_json()
            assert refused["id"] is None
            assert (refused["error"]["code"], refused["error"]["data"]["max_sessions"]) == (-32000, 1)
            assert_closed(second)


@BOTH
def test_a_broken_factory_is_told_once_and_in_production_not_explained(mode: str) -> None:
    def broken() -> Any:
        raise FileNotFoundError(SECRET)

    with TestClient(app_of(broken, mode)) as client, client.websocket_connect("/mcp") as socket:
        error = socket.receive_json()["error"]
        assert error["code"] == -32000
        assert (SECRET in error["message"]) is (mode == "simulation")
        assert_closed(socket)


def test_an_idle_socket_is_told_why_its_session_ends() -> None:
    with client_of(session_timeout_s=0.05) as client, client.websocket_connect("/mcp") as socket:
        assert socket.receive_json()["error"]["code"] == -32000
        assert_closed(socket)


def test_a_step_that_takes_longer_than_the_operator_allows_ends_the_socket() -> None:
    env = climber()
    app = app_of(env, "simulation", ServerSettings(step_timeout_s=0.02, close_timeout_s=0.1))
    with TestClient(app) as client, client.websocket_connect("/mcp") as socket:
        socket.send_json(calling("rest"))
        error = socket.receive_json()["error"]
        assert error["code"] == -32000
        assert "step_timeout_s" in error["message"]
        env.held.set()
        assert_closed(socket)


def assert_closed(socket: Any) -> None:
    with pytest.raises(WebSocketDisconnect) as caught:
        socket.receive_text()
    assert caught.value.code == 1000


# --------------------------------------------------------------------------------------- the standard's clients


@pytest.mark.parametrize(
    ("method", "headers", "standard"),
    [
        ("POST", {}, False),
        ("POST", {"accept": "*/*"}, False),
        ("POST", {"accept": "application/json"}, False),
        ("GET", {"accept": "text/html"}, False),
        ("POST", {"accept": "application/json, text/event-stream"}, True),
        ("GET", {"accept": "Text/Event-Stream"}, True),
        ("POST", {"mcp-session-id": "x"}, True),
        ("POST", {"mcp-protocol-version": "2025-11-25"}, True),
        ("DELETE", {}, True),
    ],
)
def test_a_standard_client_is_known_by_its_headers(method: str, headers: dict[str, str], standard: bool) -> None:
    scope = {"method": method, "headers": [(name.encode(), value.encode()) for name, value in headers.items()]}
    assert is_standard(scope) is standard


class Endpoint:
    """In place of the standard's own."""

    def __init__(self, served: Any) -> None:
        self.served = served
        self.requests: list[str] = []
        self.closed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests.append(scope["method"])
        await send({"type": "http.response.start", "status": 418, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def aclose(self) -> None:
        self.closed = True


def test_its_requests_are_handed_on_whole_to_one_endpoint_that_ends_with_the_application(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    endpoints: list[Endpoint] = []

    def endpoint(served: Any) -> Endpoint:
        endpoints.append(Endpoint(served))
        return endpoints[-1]

    monkeypatch.setitem(sys.modules, STANDARD, SimpleNamespace(endpoint=endpoint))  # type: ignore[arg-type]
    with client_of("production") as client:
        for method in ("POST", "GET", "DELETE"):
            answer = client.request(method, "/mcp", headers={"accept": "text/event-stream"})
            assert answer.status_code == 418
        (one,) = endpoints
        assert one.requests == ["POST", "GET", "DELETE"]
        assert one.served.settings.production
        assert not one.closed
    assert one.closed


def test_without_the_extra_they_are_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    for name in [name for name in sys.modules if name.startswith(("mcp.", "openenv_gym_server.standard", STANDARD))]:
        monkeypatch.delitem(sys.modules, name)
    with client_of() as client:
        answer = client.post("/mcp", json=rpc("initialize"), headers={"accept": "text/event-stream"})
        assert answer.status_code == 501
        assert "pip install openenv-gym[mcp]" in answer.json()["error"]["message"]


def test_another_missing_module_is_no_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, STANDARD, None)
    with client_of() as client, pytest.raises(ModuleNotFoundError):
        client.post("/mcp", json=rpc("initialize"), headers={"accept": "text/event-stream"})
