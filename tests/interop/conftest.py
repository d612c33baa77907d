"""A playground in either mode, and a standard MCP session in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.mcp_playground import MODES, playground
from tests.interop.mcp_wire import Wire


@pytest.fixture(scope="module", params=MODES)
def mcp_mode(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def mcp_url(mcp_mode: str) -> Iterator[str]:
    with playground(mcp_mode, max_concurrent_envs=16) as (url, _):
        yield url


@pytest.fixture
def wire(mcp_url: str) -> Iterator[Wire]:
    with Wire(mcp_url) as wire:
        yield wire.begin()
        wire.http.delete("/mcp", headers=wire.headers)
