"""What an agent's code is to an episode: each tool that it calls is a step, with the reward of one.

Not for the process in which the code runs (``code_act.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol

from openenv_gym.json_text import JSONObject
from openenv_gym.tools import CallToolAction, CallToolObservation, Tool, ToolError, ToolErrorType
from openenv_gym_server.code_act import CodeLimits, CodeOutcome, run_code
from openenv_gym_server.factories import overrides_twin
from openenv_gym_server.plain import plain_flag, plain_reward
from openenv_gym_server.signatures import keywords_of
from openenv_gym_server.tool_results import failure, success

__all__ = ["CODE_TOOL", "CodeRun", "code_observation", "run_steps"]

CODE_TOOL = "execute_code"
"""The tool by which clients give code, where the operator allows it."""

MAX_TOLD = 2_000
"""Characters of what failed code had printed last, which its error repeats."""


class Caller(Protocol):
    """What is asked of an environment's tools."""

    @property
    def production(self) -> bool:
        """Whether the server's mode is production."""

    def limit_s(self, name: str, timeout_s: float | None = None) -> float | None:
        """Seconds that a call of the tool may take."""

    def listed(self, timeout_s: float | None = None) -> Any:
        """The tools."""

    def now(self, value: Any) -> Any:
        """The value, awaited where it can be."""


class Stepped(Protocol):
    """What is asked of an environment."""

    CODE_LIMITS: ClassVar[CodeLimits]
    MAX_RESULT_MB: ClassVar[float | None]

    @property
    def tool_caller(self) -> Caller:
        """Its tools."""

    def step(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
        """Call one."""


class CodeRun(NamedTuple):
    """A piece of code that has run.

    Attributes:
        outcome: how it ended.
        reward: the sum of its steps' rewards.
        done: whether one of them has ended the episode.
    """

    outcome: CodeOutcome
    reward: float
    done: bool


def run_steps(env: Stepped, code: str, limits: CodeLimits | None = None) -> CodeRun:
    """Run the code, each call of a tool through the environment's ``step``.

    Raises:
        EnvironmentExecutionError: no process can be begun.
        BaseException: whatever the environment's own step raises; a tool's failure is no such thing.
    """
    steps = _Steps(env)
    outcome = run_code(code, steps.tools, steps.call, limits or env.CODE_LIMITS)
    return CodeRun(outcome, steps.reward, steps.done)


def code_observation(env: Stepped, code: str, limit_s: float | None) -> CallToolObservation:
    """The observation of a call of the code tool."""
    limits = env.CODE_LIMITS
    if limit_s is not None:
        limits = replace(limits, time_s=min(limits.time_s, limit_s))
    outcome, reward, done = run_steps(env, code, limits)
    if outcome.error is None:
        given: dict[str, Any] = {"result": outcome.result, "output": outcome.output}
        if outcome.output_left_out:
            given["output_left_out"] = outcome.output_left_out
        observation = success(CODE_TOOL, given, env.MAX_RESULT_MB, production=env.tool_caller.production)
    else:
        observation = failure(CODE_TOOL, outcome.error.error_type, outcome.error.message + _had_printed(outcome))
    observation.reward, observation.done = reward, done
    return observation


def _had_printed(outcome: CodeOutcome) -> str:
    """The end of what is kept of the output of code that failed, and how much more there was."""
    if not outcome.output:
        return ""
    missing = {"before": max(len(outcome.output) - MAX_TOLD, 0), "after": outcome.output_left_out}
    said = " and ".join(f"{count} characters {place}" for place, count in missing.items() if count)
    note = f" ({said} this are left out)" if said else ""
    return f"\nIt had printed{note}:\n{outcome.output[-MAX_TOLD:]}"


class _Steps:
    """The steps of one piece of code."""

    def __init__(self, env: Stepped) -> None:
        self._caller = env.tool_caller
        self._step: Callable[..., Any] = getattr(env, "step_async" if overrides_twin(env, "step_async") else "step")
        self._takes_time = keywords_of(self._step).takes("timeout_s")
        listed = self._caller.now(self._caller.listed())
        self.tools: list[Tool] = [tool for tool in listed.tools if tool.name != CODE_TOOL]
        self._names = {tool.name for tool in self.tools}
        self.reward = 0.0
        self.done = False

    def call(self, name: str, arguments: JSONObject, seconds: float) -> CallToolObservation:
        """The observation of one call, within so many seconds."""
        if self.done:
            return failure(name, ToolErrorType.EXECUTION_ERROR, "the episode is over; no tool is called any more")
        if name not in self._names:
            return failure(name, ToolErrorType.TOOL_NOT_FOUND, f"code cannot call the tool {name[:200]!r}")
        own = self._caller.limit_s(name)
        timeout_s = {"timeout_s": seconds if own is None else min(own, seconds)} if self._takes_time else {}
        given = self._caller.now(self._step(CallToolAction(tool_name=name, arguments=arguments), **timeout_s))
        reward, not_finite = plain_reward(getattr(given, "reward", None))
        self.reward += float(not_finite or reward or 0.0)
        self.done = plain_flag(getattr(given, "done", False))
        return given if isinstance(given, CallToolObservation) else self._of_another_class(name, given)

    def _of_another_class(self, name: str, given: Any) -> CallToolObservation:
        """An author's own observation of a call: its error, else its result, else the whole of it."""
        error = getattr(given, "error", None)
        if isinstance(error, ToolError):
            return failure(name, error.error_type, error.message)
        result = getattr(given, "result", None)
        if isinstance(result, dict) and "data" in result:
            result = result["data"]
        return success(name, given if result is None else result, production=self._caller.production)
