"""The codec of tool environments: calls of tools beside the actions of the application's own class.

A message is a tool action by its ``type``, and only where the environment is an ``MCPEnvironment`` or the application's
actions are calls of tools. Not for calling any (``tool_caller.py``).
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from openenv_gym.json_text import JSONObject
from openenv_gym.messages import Outcome
from openenv_gym.tools import CallToolAction, CallToolObservation, ListToolsAction
from openenv_gym_server.codec import ModelCodec, outcome_of, validated

__all__ = ["ToolCodec", "called_tool", "calls_tools"]


class ToolCodec(ModelCodec):
    """Tool actions, whatever class the application's actions have; that class for every other message.

    The schema of actions is the given class's, as in OpenEnv.

    Args:
        action_cls: class of the other actions; a subclass of ``CallToolAction`` is the class of calls.
        observation_cls: class of the observations of step.
        state_cls: class of the state, for the schema alone; None is ``State``.
        reset_observation_cls: class of the observations of reset, where it is another.

    Example:
        >>> from openenv_gym.types import Action, Observation
        >>> ToolCodec(Action, Observation).decode_action({"type": "call_tool", "tool_name": "look"}).tool_name
        'look'
    """

    def __init__(
        self,
        action_cls: type[Any],
        observation_cls: type[Any],
        state_cls: type[Any] | None = None,
        reset_observation_cls: type[Any] | None = None,
    ) -> None:
        super().__init__(action_cls, observation_cls, state_cls, reset_observation_cls)
        calls, lists = _class_of_calls(action_cls, CallToolAction), _class_of_calls(action_cls, ListToolsAction)
        self._readers = {
            "call_tool": TypeAdapter(calls).validator.validate_python,
            "list_tools": TypeAdapter(lists).validator.validate_python,
        }
        self._untyped_is_call = calls is action_cls

    def called_tool(self, data: JSONObject) -> str | None:
        """The tool that an action calls; None where it calls none."""
        return called_tool(data) if "type" in data or self._untyped_is_call else None

    def decode_action(self, data: JSONObject) -> object:
        """The action, validated by the class that its ``type`` asks for.

        Raises:
            InvalidActionError: with pydantic's own list of faults.
        """
        kind = data.get("type")
        read = self._readers.get(kind) if isinstance(kind, str) else None
        if read is None:
            return super().decode_action(data)
        return validated(read, data)

    def encode_observation(self, observation: object) -> Outcome:
        """The observation's fields and what travels beside them.

        Raises:
            ValueMappingError: it is no model, dataclass or dict, or something in it has no JSON form.
        """
        if type(observation) is not CallToolObservation:
            return super().encode_observation(observation)
        # Its result is plain JSON already, as a rule, so that a dump of the model would be for nothing.
        error = observation.error
        content: dict[str, Any] = {
            "metadata": observation.metadata,
            "tool_name": observation.tool_name,
            "result": observation.result,
            "error": None if error is None else {"error_type": error.error_type.value, "message": error.message},
        }
        return outcome_of(content, observation.reward, observation.done)


def _class_of_calls(given: type[Any], usual: type[Any]) -> type[Any]:
    return given if isinstance(given, type) and issubclass(given, usual) else usual


def calls_tools(action_cls: type[Any]) -> bool:
    """Whether an application's actions are calls of tools, so that its environment takes these in ``step``."""
    return isinstance(action_cls, type) and issubclass(action_cls, CallToolAction | ListToolsAction)


def called_tool(data: JSONObject) -> str | None:
    """The tool that a message's data calls, or may call where it has no ``type``; None where it calls none."""
    name = data.get("tool_name")
    return name if isinstance(name, str) and data.get("type", "call_tool") == "call_tool" else None
