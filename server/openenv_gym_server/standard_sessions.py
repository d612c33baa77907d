"""One standard MCP session's environment: made at the first call of a tool, ended with the MCP session.

Until then the tools are those of an environment that was made to be asked once for all sessions: a client that only
looks around takes no place. Needs the extra ``mcp``. Not for messages and transports (``standard_mcp.py``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mcp import types
from mcp.shared.exceptions import McpError

from openenv_gym.errors import EnvironmentExecutionError
from openenv_gym.json_text import JSONObject
from openenv_gym.tool_wire import failed_call, mcp_result, mcp_tool, refuse
from openenv_gym.tools import Tool, ToolError, ToolErrorType
from openenv_gym_server.closed_mode import as_told
from openenv_gym_server.errors import OvertimeError, SessionEndedError, text_of
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.output_checks import OutputChecks
from openenv_gym_server.reports import report
from openenv_gym_server.routes.served import Served
from openenv_gym_server.rpc import answer_to_error
from openenv_gym_server.rpc_tools import OVER_KEY, ToolOutcome, list_tools
from openenv_gym_server.session import Serving, Session
from openenv_gym_server.session_tools import call_on, list_on
from openenv_gym_server.space_codec import SpaceCodec

__all__ = ["OVER", "KnownTools", "SessionTools"]

OVER = f"openenv-gym/{OVER_KEY}"
"""Where the ``_meta`` of a refused call says to programs that the episode is over."""


class KnownTools:
    """The tools of an application's environments, asked of one when they are first wanted.

    Args:
        served: the application's parts.
    """

    def __init__(self, served: Served) -> None:
        self._sessions = served.sessions
        self._serving = Serving(served.settings.mode)
        self._tools: list[Tool] | None = None
        self._asking = asyncio.Lock()

    async def get(self) -> list[Tool]:
        """The tools; concurrent first wishes make one environment.

        Raises:
            OpenEnvGymError: no environment can be made, or it has no tools.
        """
        async with self._asking:
            if self._tools is None:
                self._tools = await self._sessions.ask(list_tools, self._serving)
            return self._tools


class SessionTools:
    """The tools of one MCP session.

    Args:
        served: the application's parts.
        known: the tools as long as there is no environment.
    """

    def __init__(self, served: Served, known: KnownTools) -> None:
        self._served = served
        self._serving = Serving(served.settings.mode, begins=True)
        self._known = known
        self._checks = OutputChecks()
        self._session: Session | None = None
        self._opening = asyncio.Lock()

    @property
    def has_environment(self) -> bool:
        """Whether the session has an environment, or is about to."""
        session = self._session
        return self._opening.locked() if session is None else session.ending is None

    async def list_tools(self) -> list[types.Tool]:
        """The tools there are, those of the session's own environment once there is one.

        Raises:
            McpError: there is none to be asked.
        """
        with self._errors_as_answers():
            session = self._session
            if session is None or session.ending is not None:
                tools = await self._known.get()
            else:
                tools = await list_on(self._served.sessions, session)
        shown = [mcp_tool(tool, rewarded=not self._serving.production) for tool in tools]
        self._checks.learn(shown)
        return shown

    async def call_tool(self, name: str, arguments: JSONObject) -> types.CallToolResult:
        """What a tool gives.

        A call that was cancelled before its turn is not made; one that runs goes on, and what it gives is dropped.

        Raises:
            McpError: there is no such tool, or no environment.
        """
        with self._errors_as_answers():
            try:
                session = await self._opened()
                outcome = await call_on(self._served.sessions, session, name, arguments)
            except SessionEndedError as error:
                kind = ToolErrorType.TIMEOUT if isinstance(error, OvertimeError) else ToolErrorType.TRANSPORT_ERROR
                return failed_call(ToolError(error_type=kind, message=text_of(error)), None)
        reward = None if self._serving.production else _reward(outcome)
        result = mcp_result(outcome.result, outcome.error, reward)
        if outcome.refused_as_over:
            return result.model_copy(update={"meta": {**(result.meta or {}), OVER: True}})
        fault = None if result.isError else await self._fault_of(session, name, result.structuredContent)
        if fault is None:
            return result
        message = f"the tool {name!r} has run, but its result is not what it declares and is lost: {fault}"
        report(EnvironmentExecutionError(message, code="EXECUTION_ERROR"), session.id, f"the tool {name!r}")
        return failed_call(ToolError(error_type=ToolErrorType.EXECUTION_ERROR, message=message), reward)

    async def _fault_of(self, session: Session, name: str, structured: JSONObject | None) -> str | None:
        """Why an official client would refuse a result; results of a Gymnasium environment fit by their making."""
        if isinstance(session.hosted, HostedEnvironment) and isinstance(session.hosted.codec, SpaceCodec):
            return None
        if name not in self._checks:
            with suppress(McpError):  # of what cannot be listed nothing is declared
                await self.list_tools()
        return await self._checks.fault_of(name, structured)

    def close(self) -> None:
        """End the session's environment, after whatever it is doing."""
        if self._session is not None:
            self._served.sessions.begin_end(self._session, "its MCP session has ended")

    async def _opened(self) -> Session:
        """The session of the environment, which concurrent first calls share.

        Raises:
            OpenEnvGymError: the server is full, or the environment could not be made.
            SessionEndedError: it has ended, by idleness or because it took too long.
        """
        async with self._opening:
            if self._session is None:
                self._session = await self._served.sessions.open("kept", serving=self._serving)
        if self._session.ending is not None:
            raise SessionEndedError(
                f"this session's environment is gone ({self._session.ending}); open a new MCP session",
                code="SESSION_ERROR",
            )
        return self._session

    @contextmanager
    def _errors_as_answers(self) -> Iterator[None]:
        try:
            yield
        except McpError:
            raise
        except Exception as error:  # noqa: BLE001 - the outermost handler of a request; an environment may raise anything
            report(error, None if self._session is None else self._session.id, "an MCP request")
            shown = as_told(error, production=self._serving.production)
            answer = answer_to_error(None, shown)["error"]
            refuse(answer["code"], answer["message"], answer["data"])  # type: ignore[index, call-overload, arg-type]


def _reward(outcome: ToolOutcome) -> JSONObject:
    return {"reward": outcome.reward, "terminated": outcome.terminated, "truncated": outcome.truncated}
