"""Environments whose steps are calls of tools: typed Python methods, registered functions, a FastMCP server's tools.

What a tool is says ``tool_functions.py``, how it is called ``tool_caller.py``, what its result looks like
``tool_results.py``, how a call arrives ``tool_codec.py``. Not for the ``/mcp`` endpoints.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from inspect import isawaitable
from typing import Any, ClassVar, TypeVar

from openenv_gym.errors import InvalidActionError
from openenv_gym.tools import CallToolAction, CallToolObservation, ListToolsAction
from openenv_gym.types import Action, Observation
from openenv_gym_server.code_act import CodeLimits
from openenv_gym_server.code_steps import run_steps
from openenv_gym_server.environment import Environment, not_an_override
from openenv_gym_server.errors import fault, invalid_message
from openenv_gym_server.fastmcp_tools import FastMCPServer
from openenv_gym_server.tool_caller import ToolCaller
from openenv_gym_server.tool_functions import ToolFunction, ToolOptions

__all__ = ["MCPEnvironment"]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class MCPEnvironment(Environment[Action, Any, Any]):
    """An environment with tools, which ``step`` lists and calls.

    ``ListToolsAction`` is answered by a ``ListToolsObservation`` and is no step of the episode. ``CallToolAction`` is
    answered by a ``CallToolObservation``: its ``result`` has the plain value as ``"data"``, or is None where its
    ``error`` says what failed; a tool that raises does not end the episode. Any other action goes to ``_step_impl``.

    A tool is a method marked with ``openenv_gym_server.tool``; a function registered with ``self.tool()``; or a tool of
    the FastMCP server that was given. Methods and functions may be ``async def``. Arguments are held strictly to the
    signature (``"1"`` is no integer), the fields of a pydantic model as the model says. Bytes are base64, in arguments
    and results; a picture is shown as one (``tool_values.py``).

    Tools run on the session's thread, one at a time, as everything of an environment does. An ``async def`` tool that
    takes longer than its limit is cancelled. Another cannot be stopped: the client is told ``timeout`` all the same,
    later calls wait for the thread within limits of their own, and what the late tool gives is dropped. ``after_tool``
    then runs beside that tool, on another thread (not where ``REQUIRES_SINGLE_THREAD_EXECUTOR``: no reward then).

    Args:
        mcp_server: a ``fastmcp.FastMCP`` (version 3) whose tools are this environment's too.
        transform: applied to the observation of each call.
        rubric: its reward is the reward of each call.

    Attributes:
        TOOL_TIMEOUT_S: limit of one call in seconds, unless the tool has one of its own, and of a FastMCP server's list
            of tools; None is no limit. A step's ``timeout_s`` is the limit instead, but never above a tool's own.
        MAX_RESULT_MB: limit of one call's result as JSON, in MiB, which travels up to three times; None is no limit.
        CODE_LIMITS: what code may use that calls the tools.

    Raises:
        ValueError: a tool has a reserved name (reset, step, state, close), or two have one name in one mode.
        TypeError: a tool's signature has parameters that cannot be given by name, or types that JSON cannot give.

    Example:
        >>> from openenv_gym_server.tool_functions import tool
        >>> class Doors(MCPEnvironment):
        ...     def reset(self, seed=None, episode_id=None, **kwargs):
        ...         return Observation(reward=0.0)
        ...     @tool
        ...     def look(self, direction: str) -> str:
        ...         "Look around."
        ...         return f"a door to the {direction}"
        >>> doors = Doors()
        >>> [each.name for each in doors.step(ListToolsAction()).tools]
        ['look']
        >>> doors.step(CallToolAction(tool_name="look", arguments={"direction": "north"})).result["data"]
        'a door to the north'
        >>> doors.step(CallToolAction(tool_name="look")).error.error_type.value
        'invalid_args'
    """

    TOOL_TIMEOUT_S: ClassVar[float | None] = 30.0
    MAX_RESULT_MB: ClassVar[float | None] = 16.0
    CODE_LIMITS: ClassVar[CodeLimits] = CodeLimits()

    mcp_server: FastMCPServer | None = None
    _openenv_tool_caller: ToolCaller | None = None

    def __init__(
        self,
        mcp_server: FastMCPServer | None = None,
        transform: Callable[[Any], Any] | None = None,
        rubric: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        super().__init__(transform=transform, rubric=rubric)
        caller = self.tool_caller
        if mcp_server is not None:
            caller.add_server(mcp_server)
        self.mcp_server = mcp_server

    # ------------------------------------------------------------------------------------------- what an author writes

    def tool(
        self, mode: str | None = None, *, name: str | None = None, timeout_s: float | None = None
    ) -> Callable[[FunctionT], FunctionT]:
        """Make a function a tool of this instance, before or after ``super().__init__()``; it remains what it is.

        Args:
            mode: ``"simulation"`` or ``"production"``, where the tool exists in that mode alone.
            name: what agents call it; else the function's name.
            timeout_s: limit of a call in seconds; else ``TOOL_TIMEOUT_S``.

        Raises:
            ValueError: there is no such mode, the name is reserved or taken.
            TypeError: the signature cannot be a tool's.
        """
        options = ToolOptions(mode, name, timeout_s)

        def register(function: FunctionT) -> FunctionT:
            self.tool_caller.add(ToolFunction(function, options))
            return function

        return register

    def after_tool(self, action: CallToolAction, observation: CallToolObservation) -> Any:
        """The observation of a call, failed ones included, with the reward and ``done`` that the author gives it.

        The default has the rubric's reward, where there is a rubric, and the transform applied. May be ``async def``.

        Args:
            action: the call.
            observation: its result or error; reward None, done False. May be changed in place.
        """
        if self.rubric is not None:
            observation.reward = _reward(self.tool_caller.now(self._apply_rubric(action, observation)))
        return self._apply_transform(observation)

    def _step_impl(self, action: Action, timeout_s: float | None = None, **kwargs: Any) -> Any:
        """What ``step`` does with any other action; the default refuses it.

        Raises:
            InvalidActionError: this environment has tools alone.
        """
        del timeout_s, kwargs
        raise _no_tool_action(self, action)

    # ---------------------------------------------------------------------------------------------------------- steps

    def step(self, action: Action, timeout_s: float | None = None, **kwargs: Any) -> Any:
        """List the tools, call one, or hand any other action to ``_step_impl``."""
        if isinstance(action, CallToolAction):
            caller = self.tool_caller
            caller.running.begin(action)
            try:
                observation = caller.now(caller.called(action, timeout_s))
            finally:
                somebody_waits = caller.running.end(action)
            if not somebody_waits or caller.runs_code(action.tool_name):
                return observation  # code's reward is that of the steps within
            after = self.tool_caller.now(self.after_tool(action, observation))
            return observation if after is None else after
        if isinstance(action, ListToolsAction):
            return self.tool_caller.now(self.tool_caller.listed(timeout_s))
        return self._step_impl(action, timeout_s=timeout_s, **kwargs)

    @not_an_override
    async def step_async(self, action: Action, timeout_s: float | None = None, **kwargs: Any) -> Any:
        """The same for authors who override this one."""
        if isinstance(action, CallToolAction):
            caller = self.tool_caller
            caller.running.begin(action)
            try:
                observation = await _settled(caller.called(action, timeout_s))
            finally:
                somebody_waits = caller.running.end(action)
            if not somebody_waits or caller.runs_code(action.tool_name):
                return observation
            after = await _settled(self.after_tool(action, observation))
            return observation if after is None else after
        if isinstance(action, ListToolsAction):
            return await _settled(self.tool_caller.listed(timeout_s))
        return await _settled(self._step_impl(action, timeout_s=timeout_s, **kwargs))

    @property
    def tool_caller(self) -> ToolCaller:
        """What lists and calls the tools; for the server."""
        # Made when it is first used: an author may register tools before ``super().__init__()``, or never call that.
        if self._openenv_tool_caller is None:
            self._openenv_tool_caller = ToolCaller(self)
        return self._openenv_tool_caller

    # -------------------------------------------------------------------------- what OpenEnv's base class has besides

    @property
    def mcp_client(self) -> Any:
        """A ``fastmcp.Client`` of the FastMCP server; None without a server."""
        if self.mcp_server is None:
            return None
        from fastmcp import Client  # noqa: PLC0415 - only where it is in use

        return Client(self.mcp_server)

    @asynccontextmanager
    async def mcp_session(self) -> AsyncIterator[Any]:
        """A connected ``fastmcp.Client``.

        Raises:
            RuntimeError: the environment has no FastMCP server, or is closed.
        """
        client = self.mcp_client
        if client is None:
            raise RuntimeError("MCP client is not available; the environment has no FastMCP server, or is closed")
        async with client:
            yield client

    @property
    def supports_code_mode(self) -> bool:
        """Whether ``execute_code`` works."""
        return True

    def get_callables(self) -> dict[str, Callable[..., Any]]:
        """The functions behind the tools of the current mode, for code that calls them as functions."""
        return self.tool_caller.functions()

    def execute_code(self, code: str) -> Observation:
        """Run Python code that calls the tools as functions, in a process of its own within ``CODE_LIMITS``.

        Each call of a tool is a ``step``, with its reward and end, and raises ``ToolError`` (a ``RuntimeError``) in the
        code where it fails. Arguments and results are plain JSON; a tool that is ``async def`` is called as any other.
        The process has none of this one's environment variables and memory, and, on Linux, no file of anyone's, no
        network and no other processes.

        Clients reach it as the tool ``execute_code``, and only where the operator allows code
        (``ServerSettings.allow_code``).

        Args:
            code: the code; what it assigns to ``result``, else the value of its last expression, is
                ``metadata["result"]``.

        Returns:
            An observation with the sum of the steps' rewards, and done where one of them was; ``metadata["error"]``
            where the code failed; ``metadata["output"]`` where it printed, and ``metadata["output_left_out"]``, a
            number of characters, where it printed more than is kept.

        Raises:
            EnvironmentExecutionError: no process can be begun.
        """
        outcome, reward, done = run_steps(self, code)
        metadata: dict[str, Any] = (
            {"result": outcome.result} if outcome.error is None else {"error": outcome.error.message}
        )
        if outcome.output:
            metadata["output"] = outcome.output
        if outcome.output_left_out:
            metadata["output_left_out"] = outcome.output_left_out
        return Observation(reward=reward, done=done, metadata=metadata)

    def close(self) -> None:
        """Let go of the FastMCP server."""
        self.mcp_server = None


def _no_tool_action(env: MCPEnvironment, action: object) -> InvalidActionError:
    message = (
        f"{type(env).__name__} has tools alone: expected a list_tools or call_tool action, got {type(action).__name__}"
    )
    return invalid_message(fault("not_a_tool_action", ["data", "type"], message, None))


async def _settled(value: Any) -> Any:
    return await value if isawaitable(value) else value


def _reward(value: Any) -> bool | int | float | None:
    """A rubric's reward; numpy's scalars, which the observation does not take, are numbers."""
    return value if value is None or isinstance(value, bool | int | float) else float(value)
