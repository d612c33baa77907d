"""Tests of ``openenv_gym_server.standard_visitors``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from openenv_gym_server import standard_visitors
from openenv_gym_server.standard_visitors import Visitors, visiting
from tests.interop.mcp_wire import answers
from tests.openenv_gym_server.test_standard_mcp import HEADERS, HELLO, served


class Visit:
    """A client that looks around; with a call it takes an environment."""

    def __init__(self, http: httpx.AsyncClient, name: str) -> None:
        self._http = http
        self._headers = {"mcp-session-id": name}

    @classmethod
    async def begun(cls, http: httpx.AsyncClient) -> Visit:
        begun = await http.post("/mcp", json=HELLO)
        assert begun.status_code == 200
        visit = cls(http, begun.headers["mcp-session-id"])
        await visit._post("notifications/initialized")
        return visit

    async def _post(self, method: str, **message: Any) -> httpx.Response:
        body = {"jsonrpc": "2.0", "method": method, **message}
        return await self._http.post("/mcp", json=body, headers=self._headers)

    async def is_there(self) -> bool:
        answer = await self._post("tools/list", id=2)
        assert answer.status_code in {200, 404}
        return answer.status_code == 200

    async def call(self) -> None:
        answer = await self._post("tools/call", id=3, params={"name": "next_number", "arguments": {}})
        assert answers(answer)[0]["result"]["isError"] is False

    async def leave(self) -> None:
        await self._http.delete("/mcp", headers=self._headers)


def visited(body: Callable[[httpx.AsyncClient], Awaitable[None]]) -> None:
    async def main() -> None:
        app, _ = served()
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=HEADERS) as http:
                await body(http)

    asyncio.run(main())


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standard_visitors, "MAX_VISITORS", 3)


def test_beyond_the_bound_the_session_that_was_used_longest_ago_ends() -> None:
    async def body(http: httpx.AsyncClient) -> None:
        first, second, third = [await Visit.begun(http) for _ in range(3)]
        assert await first.is_there()
        fourth = await Visit.begun(http)
        assert [await each.is_there() for each in (first, second, third, fourth)] == [True, False, True, True]

    visited(body)


def test_a_session_with_an_environment_is_no_visitor() -> None:
    async def body(http: httpx.AsyncClient) -> None:
        playing = await Visit.begun(http)
        await playing.call()
        others = [await Visit.begun(http) for _ in range(5)]
        assert await playing.is_there()
        assert [await each.is_there() for each in others] == [False, False, True, True, True]

    visited(body)


def test_a_session_that_has_ended_counts_no_more() -> None:
    async def body(http: httpx.AsyncClient) -> None:
        first, second, third = [await Visit.begun(http) for _ in range(3)]
        await second.leave()
        await Visit.begun(http)
        assert [await each.is_there() for each in (first, second, third)] == [True, False, True]

    visited(body)


def test_what_begins_no_session_is_not_remembered() -> None:
    visitors: list[Visitors] = []

    async def manager(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 400, "headers": []})
        await send({"type": "http.response.body"})

    async def main() -> None:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        visitors.append(Visitors(manager))
        await visitors[0]({"type": "http", "method": "POST", "headers": []}, None, send)  # type: ignore[arg-type]
        assert [each["type"] for each in sent] == ["http.response.start", "http.response.body"]

    asyncio.run(main())
    assert visitors[0]._visits == {}


def test_tools_outside_any_request_are_closed_too() -> None:
    class Tools:
        closed = False

        def close(self) -> None:
            self.closed = True

    tools = Tools()
    with visiting(tools):  # type: ignore[arg-type]
        assert not tools.closed
    assert tools.closed
