"""Actions and observations as JSON, outside any server: for an author's own tests and tools.

The same conversions that a server makes for pydantic models and dataclasses (``codec.py``). A server never comes here.
"""

from __future__ import annotations

from typing import TypeVar, cast

import msgspec

from openenv_gym.json_text import JSONObject
from openenv_gym.tools import CallToolAction, ListToolsAction
from openenv_gym.types import Action, Observation
from openenv_gym_server.codec import ModelCodec
from openenv_gym_server.tool_codec import ToolCodec

__all__ = ["deserialize_action", "serialize_observation"]

ActT = TypeVar("ActT")

_MAY_BE_TOOLS: frozenset[type[object]] = frozenset({Action, CallToolAction, ListToolsAction})


def deserialize_action(action_data: JSONObject, action_cls: type[ActT]) -> ActT:
    """The action in a client's JSON.

    Where ``action_cls`` is ``Action`` itself or an action of tools, ``type`` says which action of tools it is.

    Raises:
        InvalidActionError: it is not as the class wants it; ``errors`` lists each fault.

    Example:
        >>> deserialize_action({"type": "list_tools"}, Action).type
        'list_tools'
    """
    codec = ToolCodec if action_cls in _MAY_BE_TOOLS else ModelCodec
    return cast("ActT", codec(action_cls, Observation).decode_action(action_data))


def serialize_observation(observation: object) -> JSONObject:
    """An observation in OpenEnv's envelope: ``observation``, ``reward``, ``done``, and ``metadata`` if there is any.

    Raises:
        ValueMappingError: it is no model, dataclass or dict, or something in it has no JSON form.

    Example:
        >>> serialize_observation(Observation(reward=1.0, done=True))
        {'observation': {'metadata': {}}, 'reward': 1.0, 'done': True}
    """
    return cast("JSONObject", msgspec.to_builtins(ModelCodec(Action, Observation).encode_observation(observation)))
