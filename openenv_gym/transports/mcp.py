"""A session at ``/mcp``: tools listed and called over HTTP, in OpenEnv's JSON-RPC dialect.

What an agent does in production, where nothing but tools crosses the wire. One session of the server is one
environment. ``McpCalls`` has coroutines that need no event loop, ``McpSession`` the same as plain calls. Not for
standard MCP, nor for tools called through steps (``mcp_client.py``); what an answer means is ``mcp_answers.py``.

Source of the methods: ``openenv`` 0.10.0.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from enum import Enum
from typing import Any, Self, TypeVar

from openenv_gym.errors import (
    MessageTooLargeError,
    OpenEnvGymError,
    ProtocolError,
    RequestTimeoutError,
    SessionLostError,
    SessionStateError,
    UnreachableError,
)
from openenv_gym.json_text import JSON, JSONObject, encode_json, require_distinct_keys, shown
from openenv_gym.line import Line, Place
from openenv_gym.loopless import blocking, drive, loopless
from openenv_gym.mcp_answers import call_failure, read_answer, request_failure, result_of_call, tool_call_error
from openenv_gym.transports.base import ConnectionSettings, redacted
from openenv_gym.transports.exchange import HttpExchange

__all__ = ["Address", "McpCalls", "McpSession"]

T = TypeVar("T")

Address = Callable[[], Awaitable[tuple[str, ConnectionSettings]]]
"""Gives the server's base URL and how to reach it, asked for each session anew; a loopless coroutine function."""

_PATH = "/mcp"
_CREATE = "openenv/session/create"
_GRACE_S = 1.0
_CLOSED = "this client closed it"


class _State(Enum):
    """Where a session stands.

    Attributes:
        NEW: nobody has asked for anything; the first call opens it.
        OPEN: the server has it.
        LOST: the server no longer has it, or nobody knows; only ``open`` helps.
        CLOSED: by this end; only ``open`` helps.
    """

    NEW = "new"
    OPEN = "open"
    LOST = "lost"
    CLOSED = "closed"


class McpCalls:
    """One session at a time on one server; its calls are served one after another, of threads and tasks alike.

    The session is made by ``open`` or by the first call. A call that fails, times out or is cancelled leaves it as it
    is: what comes late is thrown away with the connection.

    Args:
        address: where the server is.
        session_id: a kept session to use instead of opening one; it is not closed at the end.

    Example:
        >>> calls = McpCalls.at("http://127.0.0.1:8000", ConnectionSettings())
        >>> await calls.call_tool("look", {"direction": "north"})    # doctest: +SKIP
        >>> await calls.close()                                      # doctest: +SKIP
    """

    def __init__(self, address: Address, *, session_id: str | None = None) -> None:
        self._address = address
        self._given = session_id
        self._line = Line()
        self._ids = itertools.count(1)
        self._exchange: HttpExchange | None = None
        self._settings = ConnectionSettings()
        self._session_id: str | None = None
        self._state = _State.NEW
        self._reason = ""
        self._closings = 0
        self._process = os.getpid()

    @classmethod
    def at(cls, base_url: str, settings: ConnectionSettings) -> Self:
        """Calls on a server whose address is known and stays.

        Args:
            base_url: the server's address.
            settings: how to reach it.
        """

        async def address() -> tuple[str, ConnectionSettings]:
            return base_url, settings

        return cls(address)

    @property
    def session_id(self) -> str | None:
        """The session's name on the server; None where there is none."""
        return self._session_id if self._state is _State.OPEN else None

    @property
    def opened(self) -> bool:
        """Whether there is a session, or was one that is lost: not before the first call and not after ``close``."""
        return self._state in {_State.OPEN, _State.LOST}

    @property
    def fresh(self) -> bool:
        """Whether nobody has opened or closed anything yet."""
        return self._state is _State.NEW

    @loopless
    async def open(self) -> None:
        """Open a session, unless there is one that goes on.

        Raises:
            UnreachableError: no OpenEnv server answered.
            CapacityError: the server is full.
            EnvironmentFactoryError: the server could not make the environment.
            RequestTimeoutError: no answer in time.
        """
        await self._in_turn(self._open)

    @loopless
    async def list_tools(self) -> list[JSONObject]:
        """The tools, each as the server describes it.

        Raises:
            EnvironmentExecutionError: the server could not list them.
            SessionLostError: the server no longer has the session; ``open`` makes another.
            SessionStateError: it was closed; ``open`` makes another.
            OpenEnvGymError: else as ``open``.
        """
        return await self._in_turn(self._list)

    @loopless
    async def call_tool(self, name: str, arguments: Mapping[str, Any], timeout_s: float | None = None) -> JSON:
        """Call a tool, and give its result as it is on the wire: ``content``, ``structured_content``, ``data``.

        Args:
            name: the tool.
            arguments: its arguments, values with a JSON form.
            timeout_s: seconds for this call instead of ``step_timeout_s``; on a server of this project also instead of
                its environment's limit of a call, though never above the tool's own.

        Raises:
            ToolCallError: the call gave no result; ``error_type`` says why, the server's silence and the network's
                failures included.
            ValueMappingError: an argument has no JSON form, or two keys of one that would be one in JSON; nothing was
                sent.
            MessageTooLargeError: the call or its result is above a limit.
            SessionLostError: the server no longer has the session; ``open`` makes another.
            SessionStateError: it was closed; ``open`` makes another.
        """
        return await self._in_turn(lambda: self._call(name, arguments, timeout_s))

    @loopless
    async def close(self) -> None:
        """Close the session; a call under way raises. Never fails over a server that is gone. Again: nothing."""
        self._closings += 1
        session_id, self._session_id = self._session_id, None
        known = self._state is _State.OPEN and self._given is None and self._process == os.getpid()
        self._state, exchange = _State.CLOSED, self._exchange
        if exchange is None:
            return
        if self._line.served is not None:
            exchange.drop()
        place = Place.here()
        try:
            # Best effort: the server's reaper does it otherwise.
            with contextlib.suppress(OpenEnvGymError):
                await self._enter(place)
                if known and session_id is not None and self._settings.close_timeout_s:
                    await self._ask("openenv/session/close", {"session_id": session_id}, self._settings.close_timeout_s)
        finally:
            exchange.drop()
            self._line.leave(place)

    # ------------------------------------------------------------------------------------- with the turn taken

    async def _open(self) -> None:
        if self._process != os.getpid():
            self._state, self._process = _State.NEW, os.getpid()
        if self._state is _State.OPEN:
            return
        closings = self._closings
        base_url, self._settings = await self._address()
        if self._exchange is not None:
            self._exchange.drop()
        self._exchange = HttpExchange(base_url, _PATH, self._settings)
        session_id = self._given
        if session_id is None:
            try:
                session_id = await self._create()
            except BaseException:
                self._exchange.drop()
                raise
        if closings != self._closings:
            with contextlib.suppress(OpenEnvGymError):
                await self._ask("openenv/session/close", {"session_id": session_id}, self._settings.close_timeout_s)
            raise self._closed()
        self._session_id, self._state = session_id, _State.OPEN

    async def _create(self) -> str:
        result, failure = await self._ask(_CREATE, {}, self._settings.reset_timeout_s)
        if failure is not None:
            raise request_failure(_CREATE, failure, self._url)
        session_id = result.get("session_id") if isinstance(result, dict) else None
        if not isinstance(session_id, str):
            raise ProtocolError(
                f"expected {self._url} to name the session it opened, got {shown(result)}", received=shown(result)
            )
        return session_id

    async def _list(self) -> list[JSONObject]:
        await self._ready()
        params = {"session_id": self._session_id}
        result, failure = await self._ask("tools/list", params, self._settings.step_timeout_s)
        if failure is not None:
            raise self._noted(request_failure("tools/list", failure, self._url))
        tools = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(tools, list) or not all(isinstance(tool, dict) and "name" in tool for tool in tools):
            raise ProtocolError(f"expected {self._url} to list tools, got {shown(result)}", received=shown(result))
        return [tool for tool in tools if isinstance(tool, dict)]

    async def _call(self, name: str, arguments: Mapping[str, Any], timeout_s: float | None) -> JSON:
        require_distinct_keys(arguments, "$.arguments")
        await self._ready()
        params: dict[str, Any] = {"name": name, "arguments": arguments, "session_id": self._session_id}
        if timeout_s:
            params["timeout_s"] = timeout_s
        # A tool that is cut off by the server says so itself, and needs a moment for that.
        wait_s = timeout_s + _GRACE_S if timeout_s else self._settings.step_timeout_s
        try:
            result, failure = await self._ask("tools/call", params, wait_s)
        except RequestTimeoutError as error:
            raise tool_call_error(name, error.message, "timeout") from error
        except (UnreachableError, ProtocolError) as error:
            raise tool_call_error(name, error.message, "transport_error") from error
        if failure is not None:
            raise self._noted(call_failure(name, failure))
        return result_of_call(name, result)

    async def _ready(self) -> None:
        """See that there is a session."""
        if self._state is _State.NEW:
            await self._open()
        if self._state is _State.CLOSED:
            raise self._closed()
        if self._state is _State.OPEN and self._process != os.getpid():
            self._lose("a process was forked")
        if self._state is _State.LOST:
            raise SessionLostError(f"the session is lost, connect() opens another: {self._reason}", reason=self._reason)

    async def _ask(
        self, method: str, params: Mapping[str, Any], timeout_s: float | None
    ) -> tuple[JSON, JSONObject | None]:
        """One request and its answer: the result, or the failure."""
        assert self._exchange is not None
        request_id = next(self._ids)
        request = encode_json({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        # A session too many is closed by the server in time; a call too many was made twice.
        answer = await self._exchange.post(request, timeout_s, repeatable=method == _CREATE)
        return read_answer(answer, request_id, self._url)

    def _noted(self, failure: OpenEnvGymError) -> OpenEnvGymError:
        if isinstance(failure, SessionLostError):
            self._lose(str(failure.reason))
        return failure

    def _lose(self, reason: str) -> None:
        self._state, self._reason, self._session_id = _State.LOST, reason, None

    def _closed(self) -> SessionStateError:
        return SessionStateError(
            "expected a session, but this client was closed: connect() opens another", expected="open", state="closed"
        )

    @property
    def _url(self) -> str:
        assert self._exchange is not None
        return redacted(self._exchange.url)

    # ------------------------------------------------------------------------------------------------- whose turn

    async def _in_turn(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        closings, place = self._closings, Place.here()
        try:
            try:
                await self._enter(place)
                return await work()
            except (OpenEnvGymError, OSError) as error:
                if closings != self._closings and not isinstance(error, SessionStateError | MessageTooLargeError):
                    raise SessionLostError(f"the session is lost: {_CLOSED}", reason=_CLOSED) from error
                raise
            finally:
                self._line.leave(place)
        except BaseException:
            # Once more, for an interrupt may have come in the middle of the clean-up.
            self._line.leave(place)
            raise

    async def _enter(self, place: Place) -> None:
        reason: str | None = "a call was interrupted"
        try:
            reason = self._line.enter(place) if blocking() else await self._line.enter_awaited(place)
        except SessionStateError:
            reason = None
            raise
        finally:
            # The call before has left its answer on the connection.
            if reason is not None and self._exchange is not None:
                self._exchange.drop()


class McpSession:
    """A session at ``/mcp`` whose calls block; else as ``McpCalls``.

    Args:
        base_url: the server's address.
        settings: how to reach it.

    Example:
        >>> with McpSession("http://127.0.0.1:8000", ConnectionSettings()) as session:    # doctest: +SKIP
        ...     session.call_tool("echo_message", {"message": "Hello!"})["data"]
        'Hello!'
    """

    def __init__(self, base_url: str, settings: ConnectionSettings) -> None:
        self._calls = McpCalls.at(base_url, settings)

    @property
    def session_id(self) -> str | None:
        """The session's name on the server; None where there is none."""
        return self._calls.session_id

    def open(self) -> None:
        """Open a session, unless there is one that goes on; see ``McpCalls.open``."""
        drive(self._calls.open())

    def list_tools(self) -> list[JSONObject]:
        """The tools, each as the server describes it; see ``McpCalls.list_tools``."""
        return drive(self._calls.list_tools())

    def call_tool(self, name: str, arguments: Mapping[str, Any], timeout_s: float | None = None) -> JSON:
        """Call a tool, and give its result as it is on the wire; see ``McpCalls.call_tool``."""
        return drive(self._calls.call_tool(name, arguments, timeout_s))

    def close(self) -> None:
        """Close the session. Again: nothing."""
        drive(self._calls.close())

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
