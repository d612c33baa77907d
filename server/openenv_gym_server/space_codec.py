"""Actions and observations of a Gymnasium environment as OpenEnv JSON and as binary frames.

An action is ``{"action": value}``, an observation ``{"obs": value}``; reward and done stand in the envelope, and the
whole 5-tuple in its metadata. Each value has the JSON form of its Space. Not for making or stepping the environment
(``gym_environment.py``), nor for how a value of a Space is written (``openenv_gym.spaces``).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import gymnasium

from openenv_gym.errors import InvalidActionError, ValueMappingError
from openenv_gym.exact import Writer
from openenv_gym.frames import write_outcome
from openenv_gym.info import encode_info
from openenv_gym.json_text import JSON, JSONObject
from openenv_gym.messages import Outcome
from openenv_gym.spaces import BufferCodec, codec_for, schema_from_space
from openenv_gym.spaces.atoms import spell_float
from openenv_gym.transition import NOTES_KEY
from openenv_gym_server.errors import MAX_FAULTS, fault, invalid_message

__all__ = ["GymObservation", "SpaceCodec"]


@dataclass(slots=True)
class GymObservation:
    """What a Gymnasium environment's reset or step gave.

    Args:
        obs: a sample of the observation Space, as the environment returned it.
        reward: None after reset, else a Python float.
        terminated: the episode ended by the task itself.
        truncated: the episode was cut off from outside.
        info: the environment's own info.
        warnings: what the caller should hear once, such as a seed that was not taken.
        early: it is one of the first of its episode, whose dtype is compared with the Space's.
    """

    obs: Any
    reward: float | None = None
    terminated: bool = False
    truncated: bool = False
    info: Mapping[Any, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    early: bool = False


_ACTION = "$.action"
"""The path of an action's value in its message."""


class SpaceCodec:
    """The JSON of one environment's actions, observations and state.

    Args:
        action_space: the Space an action must lie in.
        observation_space: the Space observations are written by.
        env_id: the environment's id, for titles.

    Raises:
        SpaceMappingError: one of the Spaces has no JSON form.

    Example:
        >>> from gymnasium.spaces import Box, Discrete
        >>> codec = SpaceCodec(Discrete(2), Box(-1, 1, (2,)), "Demo-v0")
        >>> codec.decode_action({"action": 1})
        np.int64(1)
        >>> codec.encode_observation(GymObservation([0.0, 0.5], reward=1.0)).observation
        {'obs': [0.0, 0.5]}
    """

    finite: ClassVar[bool] = True

    def __init__(
        self, action_space: gymnasium.Space[Any], observation_space: gymnasium.Space[Any], env_id: str
    ) -> None:
        self.env_id = env_id
        self._action = codec_for(action_space)
        self._observation = codec_for(observation_space)
        self._action_buffer = BufferCodec(action_space)
        self._observation_buffer = BufferCodec(observation_space)
        self._decode_member = self._action.decode_member
        self._encode = self._observation.encode
        self._dtype_noted = False
        self._schema: JSONObject = {
            "action": _object_schema("Action", f"An action of {env_id}.", "action", action_space),
            "observation": _object_schema("Observation", f"An observation of {env_id}.", "obs", observation_space),
            "state": _state_schema(env_id),
            "reset_observation": None,
        }

    def decode_action(self, data: JSONObject) -> Any:
        """The action, with its Space's dtype and shape.

        Besides ``action`` only OpenEnv's own ``metadata`` object is accepted, and ignored.

        Raises:
            InvalidActionError: a field is missing or unknown, or the value does not lie in the Space; ``errors``
                has the path of each fault.
        """
        if len(data) != 1 or "action" not in data:
            _check_fields(data)
        try:
            return self._decode_member(data["action"], _ACTION)
        except ValueMappingError as error:
            raise _invalid_action(data["action"], error) from error

    def encode_observation(self, observation: object) -> Outcome:
        """The outcome of a :class:`GymObservation`.

        Raises:
            ValueMappingError: the observation does not fit its Space; ``path`` says where.
        """
        assert isinstance(observation, GymObservation)
        terminated, truncated = observation.terminated, observation.truncated
        metadata: JSONObject = {"terminated": terminated, "truncated": truncated}
        if observation.info:
            metadata["info"], exact = encode_info(observation.info)
            if exact is not None:
                metadata["x-gymnasium-info"] = exact
        else:
            metadata["info"] = {}
        reward = observation.reward
        if reward is not None and not math.isfinite(reward):
            metadata["reward"] = spell_float(reward)
            reward = None
        value = self._encode(observation.obs, "$.obs")
        warnings = self._notes(observation)
        if warnings:
            metadata[NOTES_KEY] = list(warnings)
        return Outcome(observation={"obs": value}, reward=reward, done=terminated or truncated, metadata=metadata)

    def unpack_action(self, body: memoryview) -> Any:
        """The action in the body of a binary step, with its Space's dtype and shape.

        Raises:
            InvalidActionError: the bytes are none of the Space, or the value does not lie in it; ``errors`` is what
                the same action as JSON would have got.
        """
        try:
            action = self._action_buffer.unpack(body)
        except ValueMappingError as error:
            raise invalid_message(fault("space_mismatch", ["action"], error.message, None)) from error
        try:
            self._action.require_member(action, _ACTION)
        except ValueMappingError as error:
            raise _invalid_action(self._action.encode(action), error) from error
        return action

    def pack_observation(self, observation: object, request_id: int, notes: Sequence[str] = ()) -> bytes:
        """The binary outcome of a :class:`GymObservation`; it says what ``encode_observation`` says.

        Args:
            observation: what reset or step gave.
            request_id: the id of the request.
            notes: what the caller should hear besides.

        Raises:
            ValueMappingError: the observation does not fit its Space; ``path`` says where.
        """
        assert isinstance(observation, GymObservation)
        reward = observation.reward
        stepped = None if reward is None else ([reward], [observation.terminated], [observation.truncated])
        info = Writer(opaque=True).write(dict(observation.info)) if observation.info else None
        try:
            parts = self._observation_buffer.pack_parts(observation.obs)
        except ValueMappingError:
            parts = self._observation_buffer.pack_parts(self._observation.cast(observation.obs, "$.obs"))
        return write_outcome(
            request_id,
            1,
            None,
            observations=parts,
            stepped=stepped,
            info=info,
            notes=(*self._notes(observation), *notes),
        )

    def _notes(self, observation: GymObservation) -> tuple[str, ...]:
        if observation.early and not self._dtype_noted:
            return observation.warnings + self._dtype_note(observation.obs)
        return observation.warnings

    def encode_state(self, state: object) -> JSONObject:
        """The state as it is: :class:`GymEnvironment` keeps it as a JSON object."""
        assert isinstance(state, dict)
        return state

    def schema(self) -> JSONObject:
        """JSON Schemas of action, observation and state; a value's schema carries the Space itself."""
        return self._schema

    def _dtype_note(self, sample: Any) -> tuple[str, ...]:
        """A sentence, once a session, where an observation is cast to its Space's dtype."""
        note = self._observation.dtype_note(sample)
        if note is None:
            return ()
        self._dtype_noted = True
        return (f"the observation of {self.env_id} was cast: it is {note}",)


def _object_schema(title: str, description: str, name: str, space: gymnasium.Space[Any]) -> JSONObject:
    return {
        "type": "object",
        "title": title,
        "description": description,
        "properties": {name: schema_from_space(space)},
        "required": [name],
        "additionalProperties": False,
    }


def _state_schema(env_id: str) -> JSONObject:
    return {
        "type": "object",
        "title": "State",
        "description": f"The state of {env_id}.",
        "properties": {
            "episode_id": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "step_count": {"type": "integer", "minimum": 0, "default": 0},
            "env_id": {"type": "string", "const": env_id},
        },
        "required": ["episode_id", "step_count", "env_id"],
        "additionalProperties": True,
    }


def _check_fields(data: JSONObject) -> None:
    faults = [] if "action" in data else [fault("missing", ["action"], "Field required", data)]
    for name, value in itertools.islice(data.items(), MAX_FAULTS):
        if name == "metadata" and not isinstance(value, dict):
            faults.append(fault("dict_type", [name], "Input should be a valid dictionary", value))
        elif name not in {"action", "metadata"}:
            faults.append(fault("extra_forbidden", [name], "Extra inputs are not permitted", value))
    if faults:
        raise invalid_message(*faults[:MAX_FAULTS])


def _invalid_action(value: JSON, error: ValueMappingError) -> InvalidActionError:
    steps, culprit = _walk(value, (error.path or _ACTION).removeprefix(_ACTION))
    return invalid_message(fault("space_mismatch", ["action", *steps], error.message, culprit))


_INDEX = re.compile(r"\[(\d+)\]")


def _walk(value: JSON, path: str) -> tuple[list[str | int], JSON]:
    """The keys and indices of a JSON path such as ``.arm[2]``, and what stands there in the value.

    The value is asked for its keys, since a key may hold dots and brackets itself.
    """
    steps: list[str | int] = []
    while path:
        index = _INDEX.match(path)
        if isinstance(value, list) and index is not None and int(index[1]) < len(value):
            steps.append(int(index[1]))
            value, path = value[int(index[1])], path[index.end() :]
        elif isinstance(value, dict) and (keys := [key for key in value if path.startswith(f".{key}")]):
            key = max(keys, key=len)
            steps.append(key)
            value, path = value[key], path[len(key) + 1 :]
        else:
            break
    return steps, value
