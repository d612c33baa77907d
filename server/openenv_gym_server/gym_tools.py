"""The tools of a Gymnasium environment: ``act``, ``observe``, ``render``, and one for each action with a name.

They play the same environment as ``{"action": …}`` does; a call is an action of ``GymEnvironment.step``. Not for how
calls and results travel (``gym_tool_codec.py``), nor for how an agent is told of them (``gym_tool_texts.py``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Protocol

from openenv_gym.errors import InvalidActionError, SettingsError, ValueMappingError
from openenv_gym.json_text import JSON, JSONObject
from openenv_gym.spaces import codec_for
from openenv_gym.tools import (
    CallToolAction,
    CallToolObservation,
    DescribedTool,
    ListToolsAction,
    ListToolsObservation,
    ToolErrorType,
)
from openenv_gym_server.errors import UnsendableError, text_of
from openenv_gym_server.gym_tool_texts import Described, about_act, about_named, about_observe, value_text
from openenv_gym_server.legacy import AnyEnv
from openenv_gym_server.output_schemas import wrapped_schema
from openenv_gym_server.png import image_content, is_pixels
from openenv_gym_server.reports import report
from openenv_gym_server.space_codec import GymObservation, SpaceCodec
from openenv_gym_server.space_tools import arguments_schema, is_picture, words_for
from openenv_gym_server.tool_functions import check_tool_name
from openenv_gym_server.tool_results import RAISED, failure, made, result_of, unsendable
from openenv_gym_server.tool_values import text_block, with_notes

__all__ = ["GymTools", "Played", "named_actions"]

MAX_FRAMES = 16
"""Frames of one rendering that a result shows, the last ones."""

_ACT, _OBSERVE, _RENDER = "act", "observe", "render"
_WITHOUT_A_PICTURE = {None, "human"}
"""Render modes in which there is nothing to send: a window would be on the server's machine."""

_PLAYS: JSONObject = {
    "readOnlyHint": False,
    "destructiveHint": False,
    "idempotentHint": False,
    "openWorldHint": False,
}
_LOOKS: JSONObject = {"readOnlyHint": True, "openWorldHint": False}
_NOTHING: JSONObject = {"type": "object", "properties": {}, "additionalProperties": False}


class Played(Described, Protocol):
    """What is asked of the environment whose tools they are."""

    render_mode: str | None
    last: GymObservation | None

    @property
    def codec(self) -> SpaceCodec:
        """How its actions and observations are written."""

    def take(self, action: Any) -> GymObservation:
        """Take an action, a sample of the action Space."""

    def render(self) -> object:
        """Its current rendering."""


def named_actions(named: Mapping[str, object], codec: SpaceCodec, env: AnyEnv) -> dict[str, JSON]:
    """The JSON of each action that has a name.

    Args:
        named: actions of the Space, or their JSON, by name.
        codec: the environment's.
        env: the environment.

    Raises:
        SettingsError: a name cannot be a tool's, or is another's; or an action does not lie in the Space.
    """
    actions: dict[str, JSON] = {}
    for name, action in named.items():
        try:
            check_tool_name(name)
            actions[name] = codec_for(env.action_space).encode(action)
            codec.decode_action({"action": actions[name]})
        except ValueError as error:
            expected = f"expected named_actions (--named-actions) to name actions of {codec.env_id}"
            raise SettingsError(f"{expected}, got {name!r:.100}: {error}", setting="named_actions") from error
        if name in {_ACT, _OBSERVE, _RENDER}:
            message = f"expected named_actions (--named-actions) with names of their own, got {name!r}, which is a tool"
            raise SettingsError(message, setting="named_actions")
    return actions


class GymTools:
    """The tools of a Gymnasium environment, which is handed over with each call.

    Args:
        named: the JSON of each action that has a tool of its own, by the tool's name.

    Example:
        >>> from openenv_gym_server.gym_environment import GymEnvironment
        >>> environment, tools = GymEnvironment("FrozenLake-v1", is_slippery=False), GymTools({"right": 2})
        >>> [tool.name for tool in tools.listed(environment).tools]
        ['act', 'right', 'observe']
        >>> first = environment.reset(seed=0)
        >>> tools.called(environment, CallToolAction(tool_name="right")).result["data"]
        1
        >>> environment.close()
    """

    def __init__(self, named: Mapping[str, JSON] | None = None) -> None:
        self._named = dict(named or {})

    def step(self, env: Played, action: CallToolAction | ListToolsAction) -> CallToolObservation | ListToolsObservation:
        """List the tools or call one."""
        return self.called(env, action) if isinstance(action, CallToolAction) else self.listed(env)

    # ----------------------------------------------------------------------------------------------------- calling

    def called(self, env: Played, action: CallToolAction) -> CallToolObservation:
        """The observation of a call, which says of the episode what the last step said; a failed one too."""
        name = action.tool_name
        raised = False
        try:
            observation = self._given(env, name, action.arguments)
        except InvalidActionError as error:
            observation = failure(name, ToolErrorType.INVALID_ARGS, _faults_text(error))
        except Exception as error:  # noqa: BLE001 - whatever the environment raises is the tool's failure to be told
            report(error, None, f"the tool {name!r}")
            raised = not isinstance(error, UnsendableError)  # whose words are the server's
            message = f"Error calling tool {name!r}: {text_of(error)}"
            observation = failure(name, ToolErrorType.EXECUTION_ERROR, message)
        if not observation.metadata:
            last = env.last or GymObservation(None)
            observation.done = last.terminated or last.truncated
            flags = {"terminated": last.terminated, "truncated": last.truncated, "info": {}}
            observation.metadata = {**flags, RAISED: True} if raised else flags
        return observation

    def _given(self, env: Played, name: str, arguments: JSONObject) -> CallToolObservation:
        if name == _ACT:
            return self._taken(env, name, _only_action(arguments))
        if name not in self._named and name not in self._names(env):
            return failure(name, ToolErrorType.TOOL_NOT_FOUND, self._unknown(env, name))
        if arguments:
            message = f"expected no arguments, got {sorted(arguments)!r:.200}"
            return failure(name, ToolErrorType.INVALID_ARGS, message)
        if name in self._named:
            return self._taken(env, name, {"action": self._named[name]})
        return _observed(env) if name == _OBSERVE else _rendered(env)

    def _taken(self, env: Played, name: str, data: JSONObject) -> CallToolObservation:
        action = env.codec.decode_action(data)
        return _seen(env, name, env.take(action))

    def _names(self, env: Played) -> list[str]:
        names = [_ACT, *self._named, _OBSERVE]
        return names if env.render_mode in _WITHOUT_A_PICTURE else [*names, _RENDER]

    def _unknown(self, env: Played, name: str) -> str:
        message = f"Unknown tool: {name[:200]!r}; the tools are {self._names(env)}"
        if name != _RENDER:
            return message
        return f"{message}, since {env.env_id} is served without a picture (--env-kwarg render_mode=rgb_array has one)"

    # ----------------------------------------------------------------------------------------------------- telling

    def listed(self, env: Played) -> ListToolsObservation:
        """The tools; ``render`` where the environment renders something to send."""
        schema: Any = env.codec.schema()
        seen = wrapped_schema(schema["observation"]["properties"]["obs"])
        words = words_for(env.gymnasium_env.action_space)
        action = schema["action"]["properties"]["action"]
        arguments = arguments_schema("action", action, f"{words[:1].upper()}{words[1:]}.")
        tools = [
            _tool(_ACT, about_act(env, self._named), arguments, seen),
            *(_tool(name, about_named(env, name, self._named[name]), _NOTHING, seen) for name in self._named),
            _tool(_OBSERVE, about_observe(env), _NOTHING, seen),
        ]
        if _RENDER in self._names(env):
            tools.append(_tool(_RENDER, f"See {env.env_id} as it is now, drawn ({env.render_mode}).", _NOTHING, None))
        return ListToolsObservation(tools=list(tools))


def _tool(name: str, description: str, arguments: JSONObject, result: JSONObject | None) -> DescribedTool:
    return DescribedTool(
        name=name,
        title=name.replace("_", " ").capitalize(),
        description=description,
        input_schema=arguments,
        output_schema=result,
        annotations=_LOOKS if name in {_OBSERVE, _RENDER} else _PLAYS,
    )


# --------------------------------------------------------------------------------------------------------- results


def _only_action(arguments: JSONObject) -> JSONObject:
    """The arguments of ``act``, which the codec reads.

    Raises:
        InvalidActionError: there is another argument, which the codec would let pass as a message's.
    """
    if "metadata" in arguments:
        message = f'expected the argument "action" alone, got {sorted(arguments)!r:.200}'
        raise InvalidActionError(message, code="VALIDATION_ERROR")
    return arguments


def _faults_text(error: InvalidActionError) -> str:
    """Each fault of the arguments, in one line."""
    faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors or ()]
    return "; ".join(faults) or text_of(error)


def _observed(env: Played) -> CallToolObservation:
    if env.last is None:
        message = "there is nothing to observe: no episode has begun; reset the environment first"
        return failure(_OBSERVE, ToolErrorType.EXECUTION_ERROR, message)
    return _seen(env, _OBSERVE, dataclasses.replace(env.last, reward=None, warnings=(), early=False))


def _seen(env: Played, name: str, observation: GymObservation) -> CallToolObservation:
    """The observation of a call that gives an observation of the Space; with the step's reward, flags and info."""
    try:
        outcome = env.codec.encode_observation(observation)
    except ValueMappingError as error:
        lost = unsendable(name, str(error))
        lost.reward, lost.done = observation.reward, observation.terminated or observation.truncated
        lost.metadata = {"terminated": observation.terminated, "truncated": observation.truncated, "info": {}}
        return lost
    value = outcome.observation["obs"]
    shown = _shown(observation.obs) if is_picture(env.gymnasium_env.observation_space) else []
    content = shown or [text_block(value_text(value))]
    result = result_of(content, {"result": value}, value, wrapped=True)
    return CallToolObservation(
        tool_name=name, result=result, reward=outcome.reward, done=outcome.done, metadata=outcome.metadata or {}
    )


def _rendered(env: Played) -> CallToolObservation:
    frames = env.render()
    images = _shown(*frames[-MAX_FRAMES:]) if isinstance(frames, list | tuple) else _shown(frames)
    if not images:
        return made(_RENDER, frames)  # a text, as in the mode "ansi"; or whatever else can be JSON
    result = result_of(images, None, images[0] if len(images) == 1 else images)
    return CallToolObservation(tool_name=_RENDER, result=result)


def _shown(*frames: object) -> list[JSON]:
    """The images of frames; empty where one is none."""
    return [with_notes(image_content(frame)) for frame in frames] if all(map(is_pixels, frames)) else []
