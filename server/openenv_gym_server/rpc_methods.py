"""The methods of OpenEnv's JSON-RPC dialect: listing and calling tools, beginning and ending sessions.

One object serves POST, the socket ``/mcp`` and the ``mcp`` messages of ``/ws``. Not for reading requests (``rpc.py``)
nor for what a call does to an environment (``rpc_tools.py``).

Source: ``openenv`` 0.10.0. A batch and a notification are as JSON-RPC has them, and the failure of a tool says in
``data`` which kind it is.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import NamedTuple, NoReturn, TypeGuard

from openenv_gym.errors import InvalidActionError, ProtocolError
from openenv_gym.json_text import JSON, JSONObject
from openenv_gym.jsonrpc import JsonRpcErrorCode
from openenv_gym.tools import Tool, ToolErrorType
from openenv_gym_server import rpc
from openenv_gym_server.closed_mode import as_told
from openenv_gym_server.errors import OvertimeError, SessionEndedError, SessionStartingError
from openenv_gym_server.reading import off_the_loop
from openenv_gym_server.reports import report
from openenv_gym_server.rpc import MAX_NAME
from openenv_gym_server.rpc_tools import NO_TOOLS, OVER_KEY, NoToolsError, call_tool, list_tools
from openenv_gym_server.session import TOOL_GRACE_S, Limit, Serving, Session
from openenv_gym_server.session_tools import call_on, list_on
from openenv_gym_server.sessions import Sessions, without_session
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.vector_hosting import HostedVector

__all__ = ["Peer", "RpcMethods"]

_CODES = {
    ToolErrorType.TOOL_NOT_FOUND: JsonRpcErrorCode.INVALID_PARAMS,
    ToolErrorType.INVALID_ARGS: JsonRpcErrorCode.INVALID_PARAMS,
}
"""The codes of a tool's failures; of all others it is an internal error."""


_OF_THE_STANDARD = ("initialize", "ping", "notifications/", "resources/", "prompts/", "completion/", "logging/")
"""How methods begin that standard MCP has and this dialect has not."""

_ACCEPT = "Accept: application/json, text/event-stream"


class Peer(NamedTuple):
    """Who asks.

    Attributes:
        session: the session of its socket; None over POST.
        has_left: whether it has gone without waiting for its answer; None where that ends its session by itself.
    """

    session: Session | None = None
    has_left: Callable[[], Awaitable[bool]] | None = None


class RpcMethods:
    """The methods of one application.

    Args:
        sessions: its sessions.
        settings: its settings, whose mode is this application's.
    """

    def __init__(self, sessions: Sessions, settings: ServerSettings) -> None:
        self._sessions = sessions
        self._serving = Serving(settings.mode, begins=True)
        self._limit = without_session(Limit.step(settings))
        self._methods: dict[str, Callable[[rpc.Call, Peer], Awaitable[JSONObject]]] = {
            "tools/call": self._call,
            "tools/list": self._list,
            "openenv/session/create": self._create,
            "openenv/session/close": self._close,
        }

    async def answer(self, text: str | bytes, peer: Peer) -> bytes | None:
        """The answer to a text as it came: to a call, to each call of a batch; None where nobody waits for one.

        Raises:
            SessionEndedError: the session of the peer's own socket has ended with this.
        """
        read = await off_the_loop(len(text), rpc.parse, text)
        if not isinstance(read, list):
            answer = await self._answered(read, peer)
            return None if answer is None else rpc.encoded(answer)
        answers: list[bytes] = []
        for one in read:
            there_is_room = sum(map(len, answers)) < rpc.MAX_BATCH_BYTES
            answer = await self._answered(one, peer) if there_is_room else rpc.left_out(one)
            if answer is not None:
                answers.append(rpc.encoded(answer))
        return b"[" + b",".join(answers) + b"]" if answers else None

    async def respond(self, document: JSONObject, peer: Peer) -> JSONObject:
        """The answer to a request inside another message, which has an answer in any case.

        Raises:
            SessionEndedError: the session of the peer's own socket has ended with this.
        """
        call = rpc.read(document)
        return call.answer if isinstance(call, rpc.Refusal) else await self._performed(call, peer)

    async def _answered(self, call: rpc.Call | rpc.Refusal, peer: Peer) -> JSONObject | None:
        if isinstance(call, rpc.Refusal):
            return call.answer
        answer = await self._performed(call, peer)
        return None if call.notification else answer

    async def _performed(self, call: rpc.Call, peer: Peer) -> JSONObject:
        method = self._methods.get(call.method)
        if method is None:
            message = f"Method not found: {call.method[:MAX_NAME]}"
            if call.method.startswith(_OF_THE_STANDARD):
                message += "; it is standard MCP's, whose clients POST it with the header " + _ACCEPT
            return rpc.failure(call.id, JsonRpcErrorCode.METHOD_NOT_FOUND, message)
        try:
            return await method(call, peer)
        except SessionEndedError as error:
            if peer.session is not None:
                raise
            return rpc.failure(call.id, JsonRpcErrorCode.INTERNAL_ERROR, str(error), _of_ended(call, error))
        except Exception as error:  # noqa: BLE001 - the outermost handler of a request; an environment may raise anything
            report(error, None if peer.session is None else peer.session.id, call.method)
            return rpc.answer_to_error(call.id, as_told(error, production=self._serving.production))

    # ------------------------------------------------------------------------------------------------- tools

    async def _list(self, call: rpc.Call, peer: Peer) -> JSONObject:
        session = self._session_of(call, peer)
        if session is None:
            tools = await self._sessions.borrow(list_tools, self._limit, self._serving)
        else:
            tools = await list_on(self._sessions, session)
        return rpc.success(call.id, {"tools": [_described(tool) for tool in tools]})

    async def _call(self, call: rpc.Call, peer: Peer) -> JSONObject:
        name, arguments, timeout_s = _arguments_of(call.params)
        session = self._session_of(call, peer)
        if session is None:
            limit = self._limit.within(timeout_s, "the request's timeout_s")._replace(grace=TOOL_GRACE_S)
            outcome = await self._sessions.borrow(
                lambda hosted: call_tool(hosted, name, arguments, timeout_s), limit, self._serving
            )
        else:
            outcome = await call_on(self._sessions, session, name, arguments, timeout_s)
        if outcome.error is None:
            return rpc.success(call.id, outcome.result)
        kind = outcome.error.error_type
        code = _CODES.get(kind, JsonRpcErrorCode.INTERNAL_ERROR)
        data: JSONObject = {"error_type": kind.value, "tool_name": name[:MAX_NAME]}
        if outcome.refused_as_over:
            data[OVER_KEY] = True
        return rpc.failure(call.id, code, outcome.error.message, data)

    def _session_of(self, call: rpc.Call, peer: Peer) -> Session | None:
        """The session that a call is about; None where it is to have an environment for itself."""
        session = peer.session
        if session is None and "session_id" in call.params:
            session = self._kept(_session_id(call.params))
        if session is not None and isinstance(session.hosted, HostedVector):
            raise NoToolsError(f"{NO_TOOLS} in a session of several; open a session of one")
        return session

    # ---------------------------------------------------------------------------------------------- sessions

    async def _create(self, call: rpc.Call, peer: Peer) -> JSONObject:
        if peer.session is not None:
            return rpc.success(call.id, {"session_id": peer.session.id})
        session = await self._sessions.open("kept", serving=self._serving)
        if call.notification or (peer.has_left is not None and await peer.has_left()):
            self._sessions.begin_end(session, "nobody was there to be told of it")
        return rpc.success(call.id, {"session_id": session.id})

    async def _close(self, call: rpc.Call, peer: Peer) -> JSONObject:
        session_id = _session_id(call.params)
        if peer.session is not None and peer.session.id == session_id:
            message = "Cannot close active WebSocket-managed session via MCP method"
            return rpc.failure(call.id, JsonRpcErrorCode.INVALID_REQUEST, message)
        session = self._kept(session_id)
        if session.attached:
            session.end_at_detach = True
            return rpc.success(call.id, {"session_id": session_id, "closed": False, "closing": True})
        await self._sessions.end(session, "it was closed")
        # What hangs keeps its thread and its place until it returns.
        end: JSONObject = {"closed": True} if session.gone.done() else {"closed": False, "closing": True}
        return rpc.success(call.id, {"session_id": session_id, **end})

    def _kept(self, session_id: str) -> Session:
        try:
            return self._sessions.kept(session_id)
        except SessionStartingError as error:
            raise ProtocolError(f"{error}; retry shortly") from error


def _of_ended(call: rpc.Call, error: SessionEndedError) -> JSON:
    if call.method != "tools/call":
        return None
    kind = ToolErrorType.TIMEOUT if isinstance(error, OvertimeError) else ToolErrorType.TRANSPORT_ERROR
    return {"error_type": kind.value, "tool_name": str(call.params.get("name"))[:MAX_NAME]}


def _described(tool: Tool) -> JSON:
    return {
        "name": tool.name,
        "title": getattr(tool, "title", None),
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": getattr(tool, "output_schema", None),
        "icons": None,
        "annotations": getattr(tool, "annotations", None),
        "meta": getattr(tool, "meta", None),
        "execution": None,
    }


def _arguments_of(params: JSONObject) -> tuple[str, JSONObject, float | None]:
    name, arguments, timeout_s = params.get("name"), params.get("arguments"), params.get("timeout_s")
    if not name:
        _refuse("Missing 'name' in params")
    if not isinstance(name, str):
        _refuse("Invalid params - 'name' has to be a string")
    if not isinstance(arguments, dict | None):
        _refuse("Invalid params - 'arguments' has to be an object")
    if timeout_s is not None and not (_is_number(timeout_s) and 0 < timeout_s <= sys.float_info.max):
        _refuse("Invalid params - 'timeout_s' has to be a positive number")
    return name, arguments or {}, timeout_s


def _is_number(value: JSON) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _session_id(params: JSONObject) -> str:
    if "session_id" not in params:
        _refuse("Invalid params - 'session_id' is required")
    session_id = params["session_id"]
    if not session_id or not isinstance(session_id, str):
        _refuse("Invalid params - 'session_id' has to be a string that is not empty, or left out")
    return session_id


def _refuse(message: str) -> NoReturn:
    raise InvalidActionError(message, code="VALIDATION_ERROR")
