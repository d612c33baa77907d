"""The session of a Gymnasium environment in production: at ``/mcp``, for calls of tools and nothing else.

It has the surface of ``shell.py`` as far as ``RemoteEnv`` uses it, and opens anew for each further episode: one session
is one episode, which the server begins. What its answers mean to Gymnasium is ``production_env.py``, how calls travel
``transports/mcp.py``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol

from openenv_gym import messages
from openenv_gym.errors import (
    ModeError,
    SessionLostError,
    SessionStateError,
    ToolCallError,
    UnreachableError,
)
from openenv_gym.json_text import JSON
from openenv_gym.shell import reason_of
from openenv_gym.tool_catalogue import read_tools
from openenv_gym.transports.base import ConnectionSettings

__all__ = ["ProductionShell", "ToolSession", "refuse"]

SEED_NOTE = "a seed is not sent in production, where the server alone begins episodes"


class ToolSession(Protocol):
    """What is asked of a session at ``/mcp``: ``transports.mcp.McpSession``."""

    def open(self) -> None:
        """Make the session; its environment is reset by the server."""

    def list_tools(self) -> Any:
        """The tools, as they are on the wire."""

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call one; its result, as it is on the wire. Whatever failure leaves the session is a ``ToolCallError``."""

    def close(self) -> None:
        """End the session. May be called again."""


class ProductionShell:
    """A session at ``/mcp``, opened on request and opened anew for each further episode.

    Args:
        base_url: the server's address, path prefix included.
        settings: timeouts, limits, headers, TLS, proxy.
        connect: makes the session of an address and settings. Default: an ``McpSession``.

    Attributes:
        opened: always None: nothing is said of the environment when a session opens.
        tools: the tools of the present session, each ``{"name", "description", "input_schema"}``.
    """

    opened: messages.Opened | None = None

    def __init__(
        self,
        base_url: str,
        settings: ConnectionSettings,
        *,
        connect: Callable[[str, ConnectionSettings], ToolSession] | None = None,
    ) -> None:
        self.base_url = base_url
        self.settings = settings
        self.tools: list[dict[str, Any]] = []
        self._connect = connect or _over_http
        self._session: ToolSession | None = None
        self._reason = "it was not opened"
        self._untouched = False
        self._begun = False
        self._seed_noted = False

    @property
    def alive(self) -> bool:
        """Whether there is a session, as far as can be known without asking the server."""
        return self._session is not None

    def open(self) -> None:
        """Make the session, and with it an episode.

        Raises:
            UnreachableError: no OpenEnv server answered.
            ServerError: the server could not make the environment (it is full, the factory failed …).
        """
        session = self._connect(self.base_url, self.settings)
        try:
            session.open()
            self.tools = read_tools(session.list_tools(), self.base_url)
        except BaseException:
            with contextlib.suppress(Exception):  # why it did not open says more
                session.close()
            raise
        self._session, self._untouched, self._begun = session, True, False

    def reopen(self, base_url: str | None = None, settings: ConnectionSettings | None = None) -> None:
        """Leave the present session, whatever its state, and open a fresh one.

        Args:
            base_url: where the server is now; None: where it was.
            settings: how to reach it now; None: as before.
        """
        self.close()
        self.base_url = base_url or self.base_url
        self.settings = settings or self.settings
        self.open()

    def begin(self) -> None:
        """See that the session is one in which nothing was done yet.

        Raises:
            SessionLostError: there is no server any more where it was.
            ServerError: it could not make another environment.
        """
        if not self._untouched:
            try:
                self.reopen()
            except UnreachableError as error:
                self._reason = reason_of(error)
                raise self._lost() from error
        self._untouched, self._begun = False, True

    def notes_of(self, data: Mapping[str, Any]) -> list[str]:
        """What the caller is to be told of a reset with that data; of a seed once."""
        if "seed" not in data or self._seed_noted:
            return []
        self._seed_noted = True
        return [SEED_NOTE]

    def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, JSON]:
        """Call a tool; the fields of the observation that OpenEnv would give for it in simulation.

        A call that failed, on its way too, has its ``error`` there and no ``result``.

        Raises:
            SessionLostError: the server knows the session no more.
            SessionStateError: no episode has begun.
            MessageTooLargeError: the call or its result is above the limit.
        """
        if self._session is None:
            raise self._lost()
        if not self._begun:
            raise SessionStateError(
                "expected reset() before the first call of a tool", expected="an episode", state="open"
            )
        result: JSON = None
        error: dict[str, JSON] | None = None
        try:
            result = self._session.call_tool(name, arguments)
        except SessionLostError as lost:
            self.abandon(reason_of(lost))
            raise
        except ToolCallError as failed:
            said = failed.data.get("message") if isinstance(failed.data, dict) else None
            error = {"error_type": failed.error_type or "execution_error", "message": said or failed.message}
        return {"tool_name": name, "result": result, "error": error}

    def request(self, kind: type[messages.Message], timeout_s: float | None, **fields: Any) -> messages.Reply:
        """Nothing that the messages of ``/ws`` ask for exists here.

        Raises:
            ModeError: always.
        """
        del timeout_s, fields
        refuse(f"{kind.__struct_config__.tag} does not exist")

    def abandon(self, reason: str) -> None:
        """Give the session up; the next call says why."""
        self._end(reason)

    def close(self) -> None:
        """End the session; its environment is closed. May be called again."""
        self._end("the session was closed")

    def _end(self, reason: str) -> None:
        session, self._session = self._session, None
        self._reason, self._untouched, self._begun = reason, False, False
        if session is not None:
            session.close()

    def _lost(self) -> SessionLostError:
        return SessionLostError(
            f"the session at {self.base_url} is gone ({self._reason}); reset() opens another", reason=self._reason
        )


def _over_http(base_url: str, settings: ConnectionSettings) -> ToolSession:
    # Here and not at the top: who plays in simulation needs no HTTP.
    from openenv_gym.transports.mcp import McpSession  # noqa: PLC0415

    return McpSession(base_url, settings)


def refuse(what: str) -> NoReturn:
    """Raise the error of what an agent has not.

    Args:
        what: what was asked for, as the beginning of a sentence.
    """
    raise ModeError(
        f"{what} in production, where an agent has the environment's tools alone and the server begins its episodes: "
        "make the environment with mode='simulation' for it",
        mode="production",
    )
