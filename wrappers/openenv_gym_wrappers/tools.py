"""``MCPTools``: an environment whose actions are calls of its tools, in simulation and in production.

Not for the Spaces of calls (``tool_spaces.py``) nor for what an answer says (``tool_calls.py``).
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Mapping
from typing import Any, Literal

import gymnasium
from gymnasium.spaces import Dict, Space
from gymnasium.utils import RecordConstructorArgs

from openenv_gym.env import RemoteEnv
from openenv_gym.errors import OpenEnvGymError, SettingsError, ValueMappingError
from openenv_gym.interface import SpaceOverrides
from openenv_gym.spaces import UnicodeText
from openenv_gym_wrappers.tool_calls import answer_parts, answer_text, call_fields, read_call, tool_error
from openenv_gym_wrappers.tool_spaces import CallSpaces, CallText

__all__ = ["MCPTools"]

_ACTIONS = ("calls", "text")
_OBSERVATIONS = ("text", "json")


class MCPTools(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Plays a remote environment by its tools: one step is one call.

    In simulation a call is a step of the episode: it counts, is rewarded, and may end the episode. In production the
    calls go to ``/mcp``: a reset opens a fresh session, whose episode the server begins (a seed is not sent, and said
    so once; options are an error), the reward is 0.0 and no episode ends.

    A call that gave nothing never looks like success: ``info["tool_error"]`` is then ``{"error_type", "message"}``,
    where ``error_type`` is ``"execution_error"`` (the tool raised), ``"tool_not_found"``, ``"invalid_args"``,
    ``"timeout"`` or ``"transport_error"``. ``info`` has no such key otherwise. After a reset ``info["tools"]`` has the
    tools.

    It wraps a ``RemoteEnv``, whatever Gymnasium's own wrappers are between, as long as they leave the Spaces alone. The
    Spaces and the mode of that environment itself are changed: below this wrapper they are the same. Another
    ``MCPTools`` around this one takes its place.

    Args:
        env: the environment; of one that was not reset yet, simulation begins an episode to list its tools.
        mode: "simulation" or "production"; the environment's session is then closed, and another opened by the same
            address. None: the mode that it is in.
        action_space: "calls": a ``OneOf`` of one ``Dict`` of arguments a tool, in the order of ``tools``. "text": a
            call as text, ``{"name": …, "arguments": {…}}``, as a language model writes it; a text that is no call is an
            ``"invalid_args"`` outcome, of which the server is told nothing.
        observations: "text": what an agent reads. "json": a ``Dict`` of texts: ``tool_name``, ``text``, ``data`` (the
            plain value as JSON), ``error_type``.

    Raises:
        SettingsError: there is no remote environment below, it has no tools, or a wrapper between has other Spaces.

    Example:
        >>> import gymnasium, openenv_gym
        >>> env = MCPTools(gymnasium.make("openenv/echo-v0"))
        >>> env.tool_names
        ['echo_message', 'echo_with_length']
        >>> _ = env.reset()
        >>> observation, reward, terminated, truncated, info = env.step(("echo_message", {"message": "Hello!"}))
        >>> observation, round(reward, 3)
        ('Hello!', 0.6)
        >>> env.close()
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        *,
        mode: str | None = None,
        action_space: Literal["calls", "text"] = "calls",
        observations: Literal["text", "json"] = "text",
    ) -> None:
        RecordConstructorArgs.__init__(self, mode=mode, action_space=action_space, observations=observations)
        while isinstance(env, MCPTools):
            env = env.env
        gymnasium.Wrapper.__init__(self, env)
        _require("action_space", action_space, _ACTIONS)
        _require("observations", observations, _OBSERVATIONS)
        remote = env.unwrapped
        if not isinstance(remote, RemoteEnv):
            raise SettingsError(
                f"expected an environment of openenv_gym, such as gymnasium.make('openenv/echo-v0'), got {remote}",
                setting="env",
            )
        for name in ("action_space", "observation_space"):
            if getattr(env, name) is not getattr(remote, name):
                raise SettingsError(f"a wrapper below has another {name}: put MCPTools below it", setting="env")
        self._remote = remote
        self._text = action_space == "text"
        self._answer, space = _reading(observations)
        before = remote.mode
        if mode is not None:
            remote.set_mode(mode)
        try:
            self._tools = remote.list_tools()
            remote.speak(self._overrides(space))
        except BaseException:
            with contextlib.suppress(OpenEnvGymError):  # what is wrong with the tools says more
                remote.set_mode(before)
            raise

    def _overrides(self, observation_space: Space[Any]) -> SpaceOverrides:
        calls = CallSpaces(self._tools)
        return SpaceOverrides(
            action_space=CallText(self._tools) if self._text else calls.space,
            observation_space=observation_space,
            encode_action=_written if self._text else lambda action: call_fields(calls.encode(action)),
            decode_observation=self._answer,
        )

    @property
    def mode(self) -> str:
        """Whose the session is: a trainer's ("simulation") or an agent's ("production")."""
        return self._remote.mode

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools that the action Space was made of, each ``{"name", "description", "input_schema"}``."""
        return copy.deepcopy(self._tools)

    @property
    def tool_names(self) -> list[str]:
        """Their names, in the order of the action Space."""
        return [tool["name"] for tool in self._tools]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: as for the environment; in production it is not sent.
            options: as for the environment; in production there are none.

        Returns:
            The first observation, which in production is empty, and the info with the tools as ``"tools"``.

        Raises:
            ModeError: options in production.
        """
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, {"tools": self.tools, **info}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Call a tool.

        Args:
            action: a member of ``action_space``; with "calls" a tool may also be named, and arguments that it does not
                require be left out.

        Returns:
            observation, reward, terminated, truncated, info; ``info["tool_error"]`` says why a call gave nothing.

        Raises:
            ValueMappingError: the action is no member; nothing was sent.
            SessionLostError: the session is lost; call ``reset()``.
        """
        if self._text:
            try:
                read_call(action)
            except ValueMappingError as error:
                return self._refused(str(error))
        observation, reward, terminated, truncated, info = self.env.step(action)
        answer = self._remote.last_result
        failure = None if answer is None else tool_error(answer.observation)
        if failure is not None:
            info = {**info, "tool_error": failure}
        return observation, float(reward), terminated, truncated, info

    def _refused(self, message: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        error = {"error_type": "invalid_args", "message": message}
        fields = {"tool_name": "", "result": None, "error": error}
        return self._answer(fields), 0.0, False, False, {"tool_error": error}

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _wrapped, (type(self), self.env, dict(self._saved_kwargs))


def _wrapped(kind: type[MCPTools], env: gymnasium.Env[Any, Any], arguments: Mapping[str, Any]) -> MCPTools:
    return kind(env, **arguments)


def _require(setting: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise SettingsError(f"expected {setting} to be one of {list(known)}, got {value!r}", setting=setting)


def _reading(observations: str) -> tuple[Callable[[dict[str, Any]], Any], Space[Any]]:
    if observations == "text":
        return answer_text, UnicodeText()
    keys = ("tool_name", "text", "data", "error_type")
    return answer_parts, Dict([(key, UnicodeText()) for key in keys])


def _written(text: Any) -> dict[str, Any]:
    return call_fields(read_call(text))
