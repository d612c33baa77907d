"""The codec of one Gymnasium environment with tools: calls of tools beside ``{"action": value}``.

Not for several environments as one, whose actions are values of the Space alone (``space_rows.py``), nor for what the
tools do (``gym_tools.py``).
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from openenv_gym.json_text import JSONObject
from openenv_gym.messages import Outcome
from openenv_gym.tools import CallToolAction, CallToolObservation, ListToolsAction, ListToolsObservation
from openenv_gym_server.codec import validated
from openenv_gym_server.plain import plain_flag, plain_reward
from openenv_gym_server.space_codec import SpaceCodec

__all__ = ["GymToolCodec"]

_READERS = {
    "call_tool": TypeAdapter(CallToolAction).validator.validate_python,
    "list_tools": TypeAdapter(ListToolsAction).validator.validate_python,
}


class GymToolCodec(SpaceCodec):
    """A ``SpaceCodec`` that reads and writes calls of tools too; its schema is the same.

    A message is such a call by its ``type``, and has no ``action``.

    Example:
        >>> from gymnasium.spaces import Discrete
        >>> codec = GymToolCodec(Discrete(2), Discrete(3), "Demo-v0")
        >>> codec.decode_action({"action": 1})
        np.int64(1)
        >>> codec.decode_action({"type": "call_tool", "tool_name": "observe"}).tool_name
        'observe'
    """

    def decode_action(self, data: JSONObject) -> Any:
        """The action, a sample of the Space; or the call of a tool.

        Raises:
            InvalidActionError: as ``SpaceCodec``; or a call is not as its class wants it.
        """
        if "action" in data:
            return super().decode_action(data)
        kind = data.get("type")
        read = _READERS.get(kind) if isinstance(kind, str) else None
        return super().decode_action(data) if read is None else validated(read, data)

    def encode_observation(self, observation: object) -> Outcome:
        """The outcome of what a step gave, of a call of a tool too.

        Raises:
            ValueMappingError: the observation does not fit its Space; or a reward that an author gave is no number.
        """
        if isinstance(observation, CallToolObservation):
            return _outcome_of_call(observation)
        if isinstance(observation, ListToolsObservation):
            tools = [tool.model_dump(include={"name", "description", "input_schema"}) for tool in observation.tools]
            return Outcome(observation={"tools": tools}, reward=None, done=False)
        return super().encode_observation(observation)


def _outcome_of_call(observation: CallToolObservation) -> Outcome:
    error, metadata = observation.error, observation.metadata
    reward, not_finite = plain_reward(observation.reward)
    if not_finite is not None:
        metadata = {**metadata, "reward": not_finite}
    content: JSONObject = {
        "tool_name": observation.tool_name,
        "result": observation.result,
        "error": None if error is None else {"error_type": error.error_type.value, "message": error.message},
    }
    return Outcome(observation=content, reward=reward, done=plain_flag(observation.done), metadata=metadata)
