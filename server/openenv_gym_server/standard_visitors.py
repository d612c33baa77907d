"""The standard MCP sessions that have no environment, of which there is a bound: looking around takes no place.

Beyond it the one that was used longest ago is ended; its client is told 404 and begins anew, as the protocol has it.
Those with an environment the server's capacity bounds. Needs the extra ``mcp``. Not for what a session does
(``standard_sessions.py``) nor for idleness, which the SDK sees to.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from openenv_gym_server.standard_sessions import SessionTools

__all__ = ["MAX_VISITORS", "Visitors", "visiting"]

MAX_VISITORS = 500
"""MCP sessions without an environment at a time, some 60 kB each."""

_SESSION = b"mcp-session-id"

logger = logging.getLogger("openenv_gym_server")


@dataclass(eq=False, slots=True)
class _Visit:
    """An MCP session: its tools as soon as it has them, and whether it has ended."""

    tools: SessionTools | None = None
    gone: bool = False

    @property
    def counts(self) -> bool:
        return not self.gone and (self.tools is None or not self.tools.has_environment)


_beginning: ContextVar[_Visit | None] = ContextVar("openenv_mcp_visit", default=None)
"""The MCP session that the request begins; the task in which that session lives has it too."""


@contextmanager
def visiting(tools: SessionTools) -> Iterator[SessionTools]:
    """Have the session whose task this is known by its tools, until it ends."""
    visit = _beginning.get() or _Visit()
    visit.tools = tools
    try:
        yield tools
    finally:
        visit.gone = True
        tools.close()


class Visitors:
    """The MCP sessions of one session manager.

    Args:
        manager: what answers the requests.
    """

    def __init__(self, manager: ASGIApp) -> None:
        self._manager = manager
        self._visits: dict[str, _Visit] = {}  # the one used last is the last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        name = _session_in(scope["headers"])
        if name is not None:
            await self._visited(name, scope, receive, send)
            return
        await self._make_room(scope)
        visit = _Visit()

        async def watching(message: Message) -> None:
            if message["type"] == "http.response.start":
                begun = _session_in(message["headers"])
                if begun is not None:
                    self._visits[begun] = visit
            await send(message)

        token = _beginning.set(visit)
        try:
            await self._manager(scope, receive, watching)
        finally:
            _beginning.reset(token)

    async def _visited(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of a session that there is, or was."""
        visit = self._visits.pop(name, None)
        if visit is not None and not visit.gone:
            self._visits[name] = visit

        async def watching(message: Message) -> None:
            if scope["method"] == "DELETE" and message.get("status") == HTTPStatus.OK:
                self._visits.pop(name, None)  # what is left of it ends in a moment
            await send(message)

        await self._manager(scope, receive, watching)

    async def _make_room(self, scope: Scope) -> None:
        if len(self._visits) < MAX_VISITORS:
            return
        self._visits = {name: visit for name, visit in self._visits.items() if not visit.gone}
        without = [name for name, visit in self._visits.items() if visit.counts]
        for name in without[: len(without) - MAX_VISITORS + 1]:
            logger.info("an MCP session was ended for another: %d have no environment", len(without))
            del self._visits[name]
            await self._ended(name, scope)

    async def _ended(self, name: str, scope: Scope) -> None:
        """End a session as its own client would, which is the one way that all releases of the SDK have."""
        events: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> Message:
            return events.pop() if events else {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            del message

        headers = [(b"accept", b"application/json, text/event-stream"), (_SESSION, name.encode("latin-1"))]
        await self._manager({**scope, "method": "DELETE", "headers": headers}, receive, send)


def _session_in(headers: list[tuple[bytes, bytes]]) -> str | None:
    return next((value.decode("latin-1") for name, value in headers if name.lower() == _SESSION), None)
