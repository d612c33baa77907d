"""Tools listed and called on a session, for whichever protocol of ``/mcp`` asks.

What happens on the session's thread is ``rpc_tools.py``; here is what surrounds it: the limit of a call, and the end of
a session whose environment takes longer than the operator allows. Not for requests without a session, whose environment
``Sessions.borrow`` lends.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from openenv_gym.json_text import JSONObject
from openenv_gym.messages import Outcome
from openenv_gym.tools import Tool
from openenv_gym_server.errors import SessionEndedError
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.rpc_tools import ToolOutcome, call_tool, list_tools, outcome_of_call
from openenv_gym_server.session import Session
from openenv_gym_server.sessions import Sessions

__all__ = ["call_on", "list_on"]

T = TypeVar("T")


async def list_on(sessions: Sessions, session: Session) -> list[Tool]:
    """The tools of a session's environment.

    Raises:
        NoToolsError: it has none.
        EnvironmentExecutionError: it could not tell them.
        SessionEndedError: it took longer than the operator allows, so that the session has ended.
    """
    return await _held(sessions, session, session.run(list_tools))


async def call_on(
    sessions: Sessions, session: Session, name: str, arguments: JSONObject, timeout_s: float | None = None
) -> ToolOutcome:
    """What a call of a tool gives; the session outlives a tool that takes longer than its own limit.

    Args:
        sessions: whose the session is.
        session: the session.
        name: the tool.
        arguments: its arguments by name.
        timeout_s: the call's own limit, in seconds.

    Raises:
        NoToolsError: the environment has none.
        SessionEndedError: it took longer than the operator allows, so that the session has ended.
    """

    def call(hosted: HostedEnvironment) -> ToolOutcome:
        return call_tool(hosted, name, arguments, timeout_s)

    def late(outcome: Outcome) -> ToolOutcome:
        assert isinstance(session.hosted, HostedEnvironment)  # only calls on a session of one are late
        return outcome_of_call(session.hosted, name, outcome)

    return await _held(sessions, session, session.call_tool(call, name, late, timeout_s))


async def _held(sessions: Sessions, session: Session, work: Awaitable[T]) -> T:
    """What the work gives; a kept session ends where that takes too long, as a socket's own does with its socket."""
    try:
        return await work
    except SessionEndedError as error:
        if session.kind == "kept":
            sessions.begin_end(session, str(error))
        raise
