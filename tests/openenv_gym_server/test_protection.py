"""Tests of ``openenv_gym_server.protection``."""

from __future__ import annotations

from typing import Any

import pytest

from openenv_gym_server.protection import refusal
from openenv_gym_server.settings import ServerSettings


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
        scope_of("example.com:8000", "http://example.com:8000"),
        scope_of("example.com", "https://example.com", scheme="https"),
        # TLS ends at a proxy: the page is https, the hop to the server is not.
        scope_of("example.com", "https://example.com"),
        scope_of("example.com", "http://example.com:80"),
        scope_of("EXAMPLE.com", "http://example.COM"),
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
    assert refusal(scope, ServerSettings()) is None


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
    reason = refusal(scope, ServerSettings())
    assert reason is not None
    assert "allowed_origins" in reason


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "10.0.0.5", "[bad"])
def test_foreign_hosts_are_refused_on_loopback(host: str) -> None:
    reason = refusal(scope_of(host, None, LOOPBACK), ServerSettings())
    assert reason is not None
    assert "OPENENV_ALLOWED_HOSTS" in reason


def test_the_operator_can_allow_both(monkeypatch: pytest.MonkeyPatch) -> None:
    page = scope_of("my.host:8000", "https://page.example", LOOPBACK)
    named = ServerSettings(allowed_hosts=frozenset({"my.host"}), allowed_origins=frozenset({"https://page.example"}))
    assert refusal(page, named) is None
    assert refusal(page, ServerSettings(allowed_hosts="all", allowed_origins="all")) is None
    monkeypatch.setenv("OPENENV_ALLOWED_HOSTS", "other, MY.host")
    monkeypatch.setenv("OPENENV_ALLOWED_ORIGINS", "*")
    assert refusal(page, ServerSettings()) is None
