"""The classes an application was made with, and how the objects of its environments become JSON by them.

Not for a codec of an environment's own, which goes before it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from openenv_gym.types import State
from openenv_gym_server.codec import ModelCodec
from openenv_gym_server.declared_models import declared_state
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.tool_codec import ToolCodec, calls_tools

__all__ = ["Models", "codec_by_models"]


@dataclasses.dataclass(frozen=True, slots=True)
class Models:
    """The classes an application was made with.

    Attributes:
        action: class of the actions.
        observation: class of step's observations.
        state: class of the state; None or ``State`` lets the environment's own say.
        reset_observation: class of reset's observations, where it is another.
    """

    action: type[Any]
    observation: type[Any]
    state: type[Any] | None = None
    reset_observation: type[Any] | None = None


def codec_by_models(env: Any, models: Models) -> ModelCodec:
    """What reads and writes the environment's objects."""
    state = models.state
    if state is None or state is State:
        state = declared_state(type(env)) or state
    codec = ToolCodec if isinstance(env, MCPEnvironment) or calls_tools(models.action) else ModelCodec
    return codec(models.action, models.observation, state, models.reset_observation)
