"""Tests of ``openenv_gym_server.protection``."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.testclient import WebSocketDenialResponse

from openenv_gym_server.protection import Gate, Refusal, page_refusal, token_refusal
from openenv_gym_server.settings import ServerSettings
from tests.sockets import ask, client_of


def scope_of(
    host: str | None, origin: str | None = None, server: Any = ("10.0.0.5", 8000), scheme: str = "http"
) -> Any:
    headers = [(b"host", host.encode())] if host is not None else []
    headers += [(b"origin", origin.encode())] if origin is not None else []
    return {"headers": headers, "server": server, "scheme": scheme}


LOOPBACK = ("127.0.0.1", 8000)


@pytest.mark.parametrize(
    "scope",
    [
        scope_of("example.com"),
        scope_of("10.0.0.5:8000", "http://10.0.0.5:8000"),
        scope_of("[fd00::5]:8000", "http://[fd00::5]:8000"),
        scope_of("gpu-box:8000", "http://GPU-box.:8000"),
        scope_of("example.com", "https://example.com", scheme="https"),
        # TLS ends at a proxy: the page is https, the hop to the server is not.
        scope_of("example.com", "https://example.com"),
        scope_of("example.com", "https://example.com:443"),
        scope_of("EXAMPLE.com.:443", "https://example.COM"),
        scope_of("box", "http://box:80"),
        scope_of("localhost:8000", None, LOOPBACK),
        scope_of("127.0.0.1:8000", None, LOOPBACK),
        scope_of("[::1]:8000", None, ("::1", 8000)),
        scope_of("app.localhost", None, LOOPBACK),
        scope_of("localhost:8000", "http://localhost:8000", LOOPBACK),
        scope_of(None, None, LOOPBACK),
        scope_of("anything", None, None),
        scope_of("anything", None, ("/run/socket", None)),
    ],
)
def test_ordinary_requests_pass(scope: Any) -> None:
    assert page_refusal(scope, ServerSettings()) is None


@pytest.mark.parametrize(
    "scope",
    [
        scope_of("example.com", "https://evil.example"),
        scope_of("example.com", "null"),
        scope_of("localhost:8000", "http://localhost:3000", LOOPBACK),
        scope_of("example.com:8000", "https://example.com"),
        scope_of(None, "https://evil.example"),
        scope_of("example.com", "http://example.com:port"),
        scope_of("example.com", "http://[bad"),
    ],
)
def test_foreign_origins_are_refused_by_the_settings_name(scope: Any) -> None:
    reason = page_refusal(scope, ServerSettings())
    assert reason is not None
    assert reason.status == 403
    assert "allowed_origins" in reason.reason


@pytest.mark.parametrize("server", [LOOPBACK, ("::1", 8000), ("::ffff:127.0.0.1", 8000)])
@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "10.0.0.5", "[bad"])
def test_foreign_hosts_are_refused_on_loopback(host: str, server: Any) -> None:
    reason = page_refusal(scope_of(host, None, server), ServerSettings())
    assert reason is not None
    assert reason.status == 403
    assert "OPENENV_ALLOWED_HOSTS" in reason.reason


@pytest.mark.parametrize("host", ["rebound.example:8000", "REBOUND.example.:8000", "env.local:8000"])
def test_a_strangers_name_that_leads_here_is_refused_though_it_agrees_with_its_origin(host: str) -> None:
    page = scope_of(host, f"http://{host}")
    refused = page_refusal(page, ServerSettings())
    assert refused is not None
    assert refused.status == 403
    assert "allowed_hosts" in refused.reason
    name = host.partition(":")[0]
    for allowed in ({name}, {host}):
        assert page_refusal(page, ServerSettings(allowed_hosts=frozenset(allowed))) is None
    assert page_refusal(page, ServerSettings(allowed_origins=frozenset({f"http://{host}"}))) is None
    assert page_refusal(page, ServerSettings(allowed_hosts="all")) is None
    assert page_refusal(scope_of(host, f"https://{host}"), ServerSettings()) is None
    assert page_refusal(scope_of(host), ServerSettings()) is None


def test_names_are_compared_in_one_form_however_they_were_set() -> None:
    settings = ServerSettings(allowed_hosts=["My.Host."], allowed_origins={"HTTPS://Page.Example:443/"})  # type: ignore[arg-type]
    assert settings.allowed_hosts == {"my.host"}
    assert page_refusal(scope_of("my.HOST:8000", "https://page.example", LOOPBACK), settings) is None


TOKEN = "a.good-token_0~"


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (None, "no Authorization header"),
        (b"Basic " + TOKEN.encode(), 'does not begin with "Bearer "'),
        (TOKEN.encode(), 'does not begin with "Bearer "'),
        (b"Bearer", "another token"),
        (b"Bearer a.good-token", "another token"),
        (b"Bearer \xff\xfe", "another token"),
    ],
)
def test_without_the_token_nobody_gets_in_and_it_is_never_told(header: bytes | None, said: str) -> None:
    headers = [] if header is None else [(b"authorization", header)]
    refused = token_refusal({"headers": headers}, TOKEN)
    assert refused is not None
    assert refused.status == 401
    assert said in refused.reason
    assert TOKEN not in refused.reason


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER  "])
def test_with_the_token_everybody_gets_in(scheme: str) -> None:
    assert token_refusal({"headers": [(b"authorization", f"{scheme} {TOKEN}".encode())]}, TOKEN) is None
    assert token_refusal({"headers": []}, None) is None


@pytest.mark.parametrize("path", ["/", "/health", "/ready", "/metadata", "/schema", "/state", "/docs", "/none"])
def test_every_path_of_a_server_with_a_token_asks_for_it(path: str) -> None:
    with client_of(settings=ServerSettings(token=TOKEN)) as client:
        answer = client.get(path)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert client.get(path, headers={"Authorization": f"Bearer {TOKEN}"}).status_code != 401


def test_a_handshake_without_the_token_is_refused_with_its_status() -> None:
    with client_of(settings=ServerSettings(token=TOKEN)) as client:
        with pytest.raises(WebSocketDenialResponse) as caught, client.websocket_connect("/ws"):
            pass
        assert caught.value.status_code == 401
        with client.websocket_connect("/ws", headers={"Authorization": f"Bearer {TOKEN}"}) as socket:
            assert ask(socket, {"type": "reset"})["type"] == "observation"


def test_a_server_that_cannot_refuse_a_handshake_with_a_status_closes_it() -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError

    gate = Gate(inner, check=lambda scope: Refusal(401, "no " * 100))
    asyncio.run(gate({"type": "websocket", "headers": []}, receive, send))
    assert [(message["type"], message["code"], len(message["reason"])) for message in sent] == [
        ("websocket.close", 1008, 100)
    ]


def test_the_operator_can_allow_both(monkeypatch: pytest.MonkeyPatch) -> None:
    page = scope_of("my.host:8000", "https://page.example", LOOPBACK)
    named = ServerSettings(allowed_hosts=frozenset({"my.host"}), allowed_origins=frozenset({"https://page.example"}))
    assert page_refusal(page, named) is None
    assert page_refusal(page, ServerSettings(allowed_hosts="all", allowed_origins="all")) is None
    monkeypatch.setenv("OPENENV_ALLOWED_HOSTS", "other, MY.host")
    monkeypatch.setenv("OPENENV_ALLOWED_ORIGINS", "*")
    assert page_refusal(page, ServerSettings()) is None


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ([("host", "localhost"), ("host", "evil.com")], "one header Host"),
        ([("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://evil.com")], "one header Origin"),
        ([("host", "evil.com@localhost")], "Host without user information"),
        ([("host", "localhost"), ("origin", "http://evil.com@localhost")], "Origin without user information"),
    ],
)
@pytest.mark.parametrize("settings", [ServerSettings(), ServerSettings(allowed_hosts="all", allowed_origins="all")])
def test_headers_that_can_be_read_in_two_ways_are_refused(headers: Any, said: str, settings: ServerSettings) -> None:
    scope = {"headers": [(name.encode(), value.encode()) for name, value in headers], "server": LOOPBACK}
    refused = page_refusal(scope, settings)
    assert refused is not None
    assert (refused.status, said in refused.reason) == (403, True)


@pytest.mark.parametrize(
    ("origin", "scheme"),
    [("http://box:8000", "https"), ("http://box:8000", "wss"), ("ftp://box:8000", "http"), ("app://box:8000", "http")],
)
def test_the_scheme_of_an_origin_matters(origin: str, scheme: str) -> None:
    refused = page_refusal(scope_of("box:8000", origin, scheme=scheme), ServerSettings())
    assert refused is not None
    assert "allowed_origins" in refused.reason
