"""Listing and calling the tools of one environment, each call within its time.

The machinery behind ``MCPEnvironment``, in an object of its own so that an author's attributes meet none of it. Not for
what an author writes (``mcp_environment.py``).
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Collection
from inspect import isawaitable
from typing import Any, ClassVar, Protocol

from pydantic import ValidationError

from openenv_gym.errors import EnvironmentExecutionError
from openenv_gym.tools import CallToolAction, CallToolObservation, ListToolsObservation, Tool, ToolErrorType
from openenv_gym.types import Observation, ServerMode
from openenv_gym_server.closed_mode import reason_of
from openenv_gym_server.code_act import CodeLimits
from openenv_gym_server.code_steps import CODE_TOOL, code_observation
from openenv_gym_server.fastmcp_tools import FastMCPServer, call_server_tool, described, server_tools
from openenv_gym_server.reports import traceback_text
from openenv_gym_server.running_calls import RunningCalls
from openenv_gym_server.tool_functions import ArgumentsError, ToolFunction, ToolOptions, check_tool_name
from openenv_gym_server.tool_results import bounded, failure, success, timed_out
from openenv_gym_server.tool_sets import ToolSet
from openenv_gym_server.tool_waiting import ended_within, loop_is_running, run_now

__all__ = ["ToolCaller"]

logger = logging.getLogger("openenv_gym_server")

MAX_NAMES = 50
"""Names of tools that the answer to a call of an unknown one repeats."""


class Owner(Protocol):
    """What is asked of an environment with tools."""

    TOOL_TIMEOUT_S: ClassVar[float | None]
    MAX_RESULT_MB: ClassVar[float | None]
    CODE_LIMITS: ClassVar[CodeLimits]
    mcp_server: FastMCPServer | None

    @property
    def tool_caller(self) -> Any:
        """Its tools."""

    def step(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
        """Call one."""


class ToolCaller:
    """The tools of an environment.

    Args:
        owner: the environment.

    Attributes:
        mode: the server's mode.
        wait_for: waits for an awaitable, on the environment's own event loop.
        running: the calls that run.

    Raises:
        ValueError: two tools have one name in one mode, or a name is reserved.
        TypeError: a signature cannot be a tool's.

    Example:
        >>> from openenv_gym_server.tool_functions import ToolOptions
        >>> class Doors:
        ...     TOOL_TIMEOUT_S, MAX_RESULT_MB, mcp_server = 30.0, 16.0, None
        >>> caller = ToolCaller(Doors())
        >>> caller.add(ToolFunction(lambda: "a door", ToolOptions(name="look")))
        >>> caller.called(CallToolAction(tool_name="look"), None).result["data"]
        'a door'
    """

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._tools = ToolSet(owner)
        self._server_names: Collection[str] = ()
        self._code: ToolFunction | None = None
        self.running = RunningCalls()
        self.mode: str | None = None
        self.wait_for: Callable[[Awaitable[Any]], Any] = run_now

    def add(self, tool: ToolFunction) -> None:
        """Take one more function in.

        Raises:
            ValueError: there is a tool of that name.
        """
        _check_server_names(self._server_names, {tool.name})
        self._tools.add(tool)

    def add_server(self, server: FastMCPServer) -> None:
        """Take the names of a FastMCP server's tools in.

        Raises:
            ValueError: one is reserved, or there is a tool of that name.
        """
        self._server_names = frozenset(run_now(server_tools(server)))
        _check_server_names(self._server_names, self._tools.names)

    def allow_code(self) -> None:
        """Let agents give code, by one more tool; an author's own of that name remains what it is."""
        if self._code is None and CODE_TOOL not in {*self._tools.names, *self._server_names}:
            self._code = _code_tool(self._owner.CODE_LIMITS.time_s)
            self._tools.add(self._code)

    def runs_code(self, name: str) -> bool:
        """Whether it is the tool by which agents give code."""
        return self._code is not None and name == CODE_TOOL

    @property
    def awaits(self) -> bool:
        """Whether calls may have to be awaited, so that an event loop has to be there."""
        return self._owner.mcp_server is not None or self._tools.any_async

    @property
    def _mode(self) -> str:
        # An author who knows the mode better sets OpenEnv's own attribute; a server's word goes before it.
        return self.mode or getattr(self._owner, "_mode", None) or ServerMode.SIMULATION.value

    @property
    def production(self) -> bool:
        """Whether agents are told less than the text of an exception (``closed_mode.py``)."""
        return self._mode == ServerMode.PRODUCTION

    def now(self, value: Any) -> Any:
        """The value, waited for here and now where it is an awaitable."""
        if isinstance(value, Observation) or not isawaitable(value):
            return value
        # A server's way of waiting is for its own threads, between two turns of the environment's loop.
        return run_now(value) if loop_is_running() else self.wait_for(value)

    # ------------------------------------------------------------------------------------------- listing and calling

    def functions(self) -> dict[str, Callable[..., Any]]:
        """The functions behind the tools of the current mode."""
        server = self._owner.mcp_server
        servers = {} if server is None else self.now(server_tools(server))
        found = {name: each.fn for name, each in servers.items() if callable(getattr(each, "fn", None))}
        return found | {tool.name: tool.function for tool in self._tools.in_mode(self._mode) if tool is not self._code}

    def listed(self, timeout_s: float | None = None) -> ListToolsObservation | Awaitable[ListToolsObservation]:
        """The tools of the current mode; an awaitable of them where a FastMCP server has to be asked.

        Raises:
            EnvironmentExecutionError: where it is awaited: the server took longer than a call may.
        """
        own: list[Tool] = [tool.description for tool in self._tools.in_mode(self._mode)]
        server = self._owner.mcp_server
        if server is None:
            return ListToolsObservation(tools=own)

        async def with_servers() -> ListToolsObservation:
            limit = self._limit_of(None, timeout_s)
            ending = await ended_within(server_tools(server), limit)
            if not ending.in_time:
                message = f"the FastMCP server took longer than {limit:g} seconds to list its tools"
                raise EnvironmentExecutionError(message, code="EXECUTION_ERROR")
            if ending.error is not None:
                raise ending.error
            return ListToolsObservation(tools=[*(described(each) for each in ending.value.values()), *own])

        return with_servers()

    def limit_s(self, name: str, timeout_s: float | None = None) -> float | None:
        """Seconds that a call of the tool may take; None for ever.

        Args:
            name: the tool.
            timeout_s: the step's own limit, in place of the environment's; a tool's own counts where it is lower.
        """
        return self._limit_of(self._tools.find(name, self._mode), timeout_s)

    def _limit_of(self, tool: ToolFunction | None, timeout_s: float | None) -> float | None:
        own = None if tool is None else tool.timeout_s
        if timeout_s is None:
            return own or self._owner.TOOL_TIMEOUT_S
        return timeout_s if own is None else min(own, timeout_s)

    def called(
        self, action: CallToolAction, timeout_s: float | None
    ) -> CallToolObservation | Awaitable[CallToolObservation]:
        """The observation of a call; an awaitable of it where the tool has to be awaited."""
        name = action.tool_name
        tool = self._tools.find(name, self._mode)
        limit = self._limit_of(tool, timeout_s)
        if tool is None:
            if self._owner.mcp_server is None or self._tools.modes_of(name):
                return self._unknown(name)
            work = call_server_tool(self._owner.mcp_server, name, action.arguments, production=self.production)
            return self._awaited(name, work, limit, self._bounded)
        try:
            arguments = tool.read(action.arguments)
        except ArgumentsError as error:
            return failure(name, ToolErrorType.INVALID_ARGS, self._of_arguments(name, error))
        if tool is self._code:
            return code_observation(self._owner, arguments["code"], limit)
        begun = time.monotonic()
        try:
            value = tool.function(**arguments)
        except BaseException as error:  # noqa: BLE001 - a tool may raise anything; all of it is the tool's own failure
            return self._failed(name, error)
        if isawaitable(value):
            return self._awaited(name, value, limit, self._succeeded)
        if limit is not None and time.monotonic() - begun > limit:
            return timed_out(name, limit)
        return self._succeeded(name, value)

    def _succeeded(self, name: str, value: Any) -> CallToolObservation:
        return success(name, value, self._owner.MAX_RESULT_MB, production=self.production)

    def _bounded(self, name: str, observation: CallToolObservation) -> CallToolObservation:
        return bounded(name, observation, self._owner.MAX_RESULT_MB)

    async def _awaited(
        self, name: str, work: Awaitable[Any], limit: float | None, give: Callable[[str, Any], CallToolObservation]
    ) -> CallToolObservation:
        ending = await ended_within(work, limit)
        if not ending.in_time:
            return timed_out(name, limit)
        if ending.error is not None:
            return self._failed(name, ending.error)
        return give(name, ending.value)

    def _of_arguments(self, name: str, error: ArgumentsError) -> str:
        raised = error.__cause__
        if raised is None or isinstance(raised, ValidationError):
            return str(error)  # findings about the arguments
        return f"the arguments of {name!r} cannot be read: {reason_of(raised, name, production=self.production)}"

    def _failed(self, name: str, error: BaseException) -> CallToolObservation:
        if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            raise error  # somebody wants the program to end
        if logger.isEnabledFor(logging.INFO):
            wrapped = RuntimeError(name)
            wrapped.__cause__ = error
            logger.info("the tool %r raised %s\n%s", name, type(error).__name__, traceback_text(wrapped))
        reason = reason_of(error, name, production=self.production)
        return failure(name, ToolErrorType.EXECUTION_ERROR, f"Error calling tool {name!r}: {reason}")

    def _unknown(self, name: str) -> CallToolObservation:
        modes = self._tools.modes_of(name)
        if modes:
            message = f"Tool {name!r} not available in {self._mode} mode; it is in {' and '.join(modes)} mode"
        else:
            known = [tool.name for tool in self._tools.in_mode(self._mode)][:MAX_NAMES]
            message = f"Unknown tool: {name[:200]!r}; the tools are {known}"
        return failure(name, ToolErrorType.TOOL_NOT_FOUND, message)


def _check_server_names(servers: Collection[str], own: Collection[str]) -> None:
    for name in servers:
        check_tool_name(name)
    both = sorted(set(servers) & set(own))
    if both:
        raise ValueError(f"there are two tools each called {both}, the FastMCP server's and another; rename one")


@functools.cache
def _code_tool(timeout_s: float) -> ToolFunction:
    """The tool by which agents give code, which all environments with that limit share: it takes long to describe."""
    return ToolFunction(_execute_code, ToolOptions(name=CODE_TOOL, timeout_s=timeout_s))


def _execute_code(code: str) -> None:
    """Run Python code in which the other tools are functions; its `result` and its printed `output` are given back.

    The result is what the code assigns to `result`, else the value of its last expression. Each call begins without the
    names of the last one. Where the code fails, the exception's type and the line are told. `output_left_out` is the
    number of characters that were printed beyond the limit.

    Args:
        code: The code. Arguments and results of the tools are JSON; a tool that fails raises ToolError.
    """
    raise AssertionError(code)  # called() runs it, which knows the environment
