"""Tests of ``openenv_gym_server.host_check``."""

from __future__ import annotations

from typing import Any

import pytest

from openenv_gym_server.host_check import mcp_refusal
from openenv_gym_server.settings import ServerSettings

LOOPBACK = ("127.0.0.1", 8000)
OUTSIDE = ("10.0.0.5", 8000)


def scope_of(host: str | None, *origins: str, server: Any = LOOPBACK) -> dict[str, Any]:
    headers = [(b"host", host.encode())] if host is not None else []
    headers += [(b"origin", origin.encode()) for origin in origins]
    return {"headers": headers, "server": server, "scheme": "http"}


@pytest.mark.parametrize(
    "scope",
    [
        scope_of("localhost:8000"),
        scope_of("127.0.0.1:8000", "http://localhost:6274"),
        scope_of("localhost:8000", "http://[::1]:3000"),
        scope_of("[::1]:8000", "https://127.0.0.1", server=("::1", 8000)),
        scope_of("gpu-box:8000", server=OUTSIDE),
        scope_of("agents.example", server=OUTSIDE),
        scope_of("agents.example", server=None),
        scope_of(None),
    ],
)
def test_loopback_names_pass_on_loopback_and_any_host_elsewhere(scope: dict[str, Any]) -> None:
    assert mcp_refusal(scope, ServerSettings()) is None


@pytest.mark.parametrize(
    ("scope", "setting"),
    [
        (scope_of("evil.example"), "OPENENV_ALLOWED_HOSTS"),
        (scope_of("evil.example", "http://evil.example"), "OPENENV_ALLOWED_HOSTS"),
        # The page is this machine's, but the name it was asked by is not.
        (scope_of("evil.example", "http://localhost:3000"), "OPENENV_ALLOWED_HOSTS"),
        (scope_of("localhost:8000", "https://evil.example"), "OPENENV_ALLOWED_ORIGINS"),
        (scope_of("localhost:8000", "null"), "OPENENV_ALLOWED_ORIGINS"),
        (scope_of("localhost:8000", "file://localhost"), "OPENENV_ALLOWED_ORIGINS"),
        # A page of another machine's own loopback is a stranger.
        (scope_of("gpu-box:8000", "http://localhost:3000", server=OUTSIDE), "OPENENV_ALLOWED_ORIGINS"),
        (scope_of("gpu-box:8000", "http://localhost:3000", server=None), "OPENENV_ALLOWED_ORIGINS"),
        (scope_of("localhost:8000", "http://localhost:1", "http://localhost:2"), "Origin"),
    ],
)
def test_others_are_refused_by_the_settings_name(scope: dict[str, Any], setting: str) -> None:
    refused = mcp_refusal(scope, ServerSettings())
    assert refused is not None
    assert refused.status == 403
    assert setting in refused.reason


@pytest.mark.parametrize("server", [LOOPBACK, OUTSIDE])
@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("agents.example", True),
        ("AGENTS.example:8000", True),
        ("agents.example.:80", True),
        ("localhost:8000", True),
        ("evil.example", False),
        ("agents.example.evil.example", False),
        ("[bad", False),
    ],
)
def test_where_the_operator_lists_hosts_no_other_is_served(host: str, allowed: bool, server: Any) -> None:
    settings = ServerSettings(allowed_hosts=frozenset({"agents.example"}))
    refused = mcp_refusal(scope_of(host, server=server), settings)
    assert (refused is None) is allowed
    assert refused is None or "allowed_hosts" in refused.reason


@pytest.mark.parametrize("server", [LOOPBACK, OUTSIDE])
def test_all_hosts_and_all_origins_are_allowed_where_the_operator_says_so(server: Any) -> None:
    settings = ServerSettings(allowed_hosts="all", allowed_origins="all")
    assert mcp_refusal(scope_of("anything.example", "https://any.example", server=server), settings) is None


def test_a_listed_origin_passes() -> None:
    settings = ServerSettings(allowed_origins=frozenset({"https://agents.example"}))
    assert mcp_refusal(scope_of("localhost:8000", "https://agents.example"), settings) is None
