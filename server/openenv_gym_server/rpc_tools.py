"""What a request about tools does to a hosted environment, whatever protocol brought it; runs on the session's thread.

A call is a step of the environment: hooks, counts, reward and end of the episode are those of a call that came as an
action. Here too stands what an agent of a production server is not told. Not for requests and answers as they travel
(``rpc_methods.py`` has OpenEnv's dialect) nor for running a tool (``tool_caller.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError, OpenEnvGymError, ServerError
from openenv_gym.json_text import JSONObject
from openenv_gym.messages import Outcome
from openenv_gym.tools import CallToolAction, CallToolObservation, ListToolsAction, Tool, ToolError, ToolErrorType
from openenv_gym.transition import metadata_of, own_reward, read_flags
from openenv_gym_server.closed_mode import FAILED, as_told
from openenv_gym_server.errors import text_of, user_code
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.reports import report
from openenv_gym_server.tool_results import RAISED, success

__all__ = [
    "EPISODE_OVER",
    "NO_TOOLS",
    "OVER_KEY",
    "NoToolsError",
    "ToolOutcome",
    "begin_episode",
    "call_tool",
    "list_tools",
    "outcome_of_call",
]

EPISODE_OVER = "the episode is over; open a new session"
OVER_KEY = "episode_over"
"""Where an error's data says to programs what ``EPISODE_OVER`` says to agents; no crash of a tool has it."""

NO_TOOLS = "Environment does not support MCP"

MAX_TOLD = 1_000
"""Characters of a failure's text that a production server sends."""


class NoToolsError(ServerError):
    """The environment has no tools."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a call gave: a result or an error, and what it did to the episode.

    Attributes:
        result: ``{"content", "structured_content", "meta", "data", "is_error"}``; None where there is an error.
        error: why there is no result.
        reward: the step's reward, a NaN or an infinity as such; None in production.
        terminated: whether the episode ended by itself; never in production, nor is the next.
        truncated: whether it was cut off.
        refused_as_over: whether the tool was not called since an earlier call has ended the episode, in production.
    """

    result: JSONObject | None
    error: ToolError | None = None
    reward: bool | int | float | None = None
    terminated: bool = False
    truncated: bool = False
    refused_as_over: bool = False


def begin_episode(hosted: HostedEnvironment) -> None:
    """Begin the episode that the server is to begin itself, unless there is one.

    Raises:
        EnvironmentExecutionError: the environment raised.
    """
    if hosted.opening is not None and hosted.episode_id is None:
        hosted.begin(hosted.opening)


def list_tools(hosted: HostedEnvironment) -> list[Tool]:
    """The tools of the environment in its server's mode.

    Raises:
        NoToolsError: it has none.
        EnvironmentExecutionError: it could not tell them.
    """
    if hosted.offers_tools:
        listed = hosted.act(hosted.decoded({"type": "list_tools"}))
    elif (bare := _bare(hosted)) is not None:
        with user_code:
            listed = bare.step(ListToolsAction())
    else:
        raise NoToolsError(NO_TOOLS)
    tools = getattr(listed, "tools", None)
    if not isinstance(tools, list):
        message = f"expected the step that lists tools to give a ListToolsObservation, got {type(listed).__name__}"
        raise EnvironmentExecutionError(message, code="EXECUTION_ERROR")
    with user_code:  # another's classes may lack what is read of them
        return [tool if isinstance(tool, Tool) else _tool(tool) for tool in tools]


def call_tool(
    hosted: HostedEnvironment, name: str, arguments: JSONObject, timeout_s: float | None = None
) -> ToolOutcome:
    """Call a tool by a step of the environment, whose episode is begun first where the server is to begin it.

    Args:
        hosted: the environment.
        name: the tool.
        arguments: its arguments by name.
        timeout_s: limit of the call in seconds, in place of the environment's; a tool's own counts where it is lower.

    Returns:
        The outcome; whatever fails in the tool or the environment is an error in it.

    Raises:
        NoToolsError: the environment has none.
    """
    bare = None if hosted.offers_tools else _bare(hosted)
    if bare is None and not hosted.offers_tools:
        raise NoToolsError(NO_TOOLS)
    if hosted.production and hosted.over:
        return replace(_failed(ToolErrorType.EXECUTION_ERROR, EPISODE_OVER), refused_as_over=True)
    try:
        begin_episode(hosted)
        if bare is not None:
            return _of_bare(hosted, bare, CallToolAction(tool_name=name, arguments=arguments), timeout_s)
        data: JSONObject = {"type": "call_tool", "tool_name": name, "arguments": arguments}
        outcome = hosted.step(data, None if timeout_s is None else {"timeout_s": timeout_s})
    except InvalidActionError as error:
        return _failed(ToolErrorType.INVALID_ARGS, _text_for_agents(hosted, error))
    except EnvironmentExecutionError as error:
        report(error, None, "a call of a tool")
        return _failed(ToolErrorType.EXECUTION_ERROR, _text_for_agents(hosted, error))
    return outcome_of_call(hosted, name, outcome)


def outcome_of_call(hosted: HostedEnvironment, name: str, outcome: Outcome) -> ToolOutcome:
    """What is said of a call, made of the step's own outcome."""
    content = outcome.observation
    if outcome.done:
        hosted.over = True
    failure = _failure(content.get("error"))
    if failure is not None and hosted.production:
        raised = metadata_of(outcome).get(RAISED) is True
        failure.message = FAILED if raised else failure.message[:MAX_TOLD]
    result, failure = _result(hosted, name, content) if failure is None else (None, failure)
    if hosted.production:
        return ToolOutcome(result, failure)
    terminated, truncated = read_flags(outcome)
    reward = own_reward(outcome.reward, metadata_of(outcome))
    return ToolOutcome(result, failure, reward, terminated, truncated)


def _failure(said: Any) -> ToolError | None:
    """The failure in an observation, whose class may be another's; of a kind that has no name here, the tool's own."""
    if not isinstance(said, Mapping) or "error_type" not in said:
        return None
    kind, message = said["error_type"], str(said.get("message") or "the tool failed")
    known = isinstance(kind, str) and kind in list(ToolErrorType)
    return ToolError(error_type=ToolErrorType(kind) if known else ToolErrorType.EXECUTION_ERROR, message=message)


def _result(hosted: HostedEnvironment, name: str, content: JSONObject) -> tuple[JSONObject | None, ToolError | None]:
    """The result in an observation, or why there is none; of one in another shape, its fields are the value."""
    result = content.get("result")
    if isinstance(result, dict) and "content" in result and "data" in result:
        return result, None
    value = result if "tool_name" in content and "result" in content else _fields(content)
    made = success(name, value, production=hosted.production)
    return made.result, made.error


def _fields(content: JSONObject) -> JSONObject:
    return {field: value for field, value in content.items() if field != "metadata"}


def _failed(error_type: ToolErrorType, message: str) -> ToolOutcome:
    return ToolOutcome(None, ToolError(error_type=error_type, message=message))


def _text_for_agents(hosted: HostedEnvironment, error: OpenEnvGymError) -> str:
    text = text_of(as_told(error, production=hosted.production))
    return text[:MAX_TOLD] if hosted.production else text


def _tool(described: Any) -> Tool:
    """A tool as an environment describes it that uses classes of its own, such as OpenEnv's."""
    return Tool(
        name=described.name, description=described.description or "", input_schema=dict(described.input_schema or {})
    )


# --------------------------------------------------------------- environments that merely have a FastMCP server


class _Bare(MCPEnvironment):
    """Has the tools of a FastMCP server that another environment merely has, and nothing else."""

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> NoReturn:
        raise NotImplementedError


def _bare(hosted: HostedEnvironment) -> _Bare | None:
    server = getattr(hosted.env, "mcp_server", None)
    if not callable(getattr(server, "list_tools", None)) or not callable(getattr(server, "call_tool", None)):
        return None
    bare = _bares.get(hosted)
    if bare is None or bare.mcp_server is not server:
        with user_code:
            bare = _bares[hosted] = _Bare(server)
        # On the environment's own loop, since what a tool keeps from one call to the next may be bound to its loop.
        bare.tool_caller.mode, bare.tool_caller.wait_for = hosted.mode, hosted.wait_for
    return bare


_bares: WeakKeyDictionary[HostedEnvironment, _Bare] = WeakKeyDictionary()


def _of_bare(hosted: HostedEnvironment, bare: _Bare, action: CallToolAction, timeout_s: float | None) -> ToolOutcome:
    observation: CallToolObservation = bare.step(action, timeout_s=timeout_s)
    hosted.counted()
    content: JSONObject = {"tool_name": action.tool_name, "result": observation.result}
    if observation.error is not None:
        content["error"] = observation.error.model_dump(mode="json")
    return outcome_of_call(hosted, action.tool_name, Outcome(observation=content))
