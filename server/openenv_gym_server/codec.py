"""Between an environment's Python objects and plain JSON.

``Codec`` is the seam: the server's ``ModelCodec`` for pydantic models and dataclasses, or the environment's own (a
Gymnasium environment has one made from its Spaces). Not for the frames around the JSON (``dispatch.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, cast

from msgspec import UNSET
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, JsonSchemaWarningKind
from pydantic_core import core_schema

from openenv_gym.errors import ValueMappingError
from openenv_gym.json_text import JSONObject
from openenv_gym.messages import Outcome
from openenv_gym.types import State
from openenv_gym_server.errors import invalid_action
from openenv_gym_server.plain import plain_flag, plain_json, plain_reward

__all__ = ["Codec", "ModelCodec", "outcome_of", "validated"]

_OUTSIDE = frozenset({"reward", "done"})
"""Fields of an observation that travel beside it."""


class Codec(Protocol):
    """How an environment's objects become JSON and back.

    A codec whose JSON never holds a float that is a NaN or an infinity may say so with an attribute ``finite = True``;
    answers are then not searched for one.
    """

    def decode_action(self, data: JSONObject) -> object:
        """The action a client sent; nothing of the environment is touched.

        Raises:
            InvalidActionError: ``errors`` lists each fault as ``{"type", "loc", "msg", "input"}``.
        """

    def encode_observation(self, observation: object) -> Outcome:
        """What reset or step returned; a reward that is not finite is null, and a string under metadata's ``reward``.

        Raises:
            ValueMappingError: it has no JSON form; ``path`` says where.
        """

    def encode_state(self, state: object) -> JSONObject:
        """What ``state`` is.

        Raises:
            ValueMappingError: it has no JSON form.
        """

    def schema(self) -> JSONObject:
        """JSON Schemas: ``{"action", "observation", "state", "reset_observation"}``."""


class ModelCodec:
    """The codec of pydantic models and dataclasses; observations may also be dicts.

    Args:
        action_cls: class of the actions.
        observation_cls: class of the observations of step.
        state_cls: class of the state, for the schema alone; None is ``State``.
        reset_observation_cls: class of the observations of reset, where it is another.

    Example:
        >>> from openenv_gym.types import Action, Observation
        >>> class Say(Action):
        ...     message: str
        >>> codec = ModelCodec(Say, Observation)
        >>> codec.decode_action({"message": "hello"}).message
        'hello'
        >>> codec.encode_observation(Observation(reward=float("nan"))).metadata
        {'reward': 'NaN'}
    """

    finite: ClassVar[bool] = True

    def __init__(
        self,
        action_cls: type[Any],
        observation_cls: type[Any],
        state_cls: type[Any] | None = None,
        reset_observation_cls: type[Any] | None = None,
    ) -> None:
        self._action = _adapter(action_cls)
        # The adapter's own method checks options first, which costs as much as a small action itself.
        self._validate = self._action.validator.validate_python
        self._observation_cls = observation_cls
        self._state_cls = state_cls or State
        self._reset_observation_cls = reset_observation_cls or observation_cls

    def decode_action(self, data: JSONObject) -> object:
        """The action, validated by its class.

        Raises:
            InvalidActionError: with pydantic's own list of faults.
        """
        return validated(self._validate, data)

    def encode_observation(self, observation: object) -> Outcome:
        """The observation's fields and what travels beside them.

        Raises:
            ValueMappingError: it is no model, dataclass or dict, or something in it has no JSON form.
        """
        if isinstance(observation, BaseModel):
            content = observation.model_dump(exclude={"reward", "done"}, warnings=False)
            reward, done = getattr(observation, "reward", None), getattr(observation, "done", False)
        else:
            every = _fields_of(observation)
            content = {name: value for name, value in every.items() if name not in _OUTSIDE}
            reward, done = every.get("reward"), every.get("done", False)
        return outcome_of(content, reward, done)

    def encode_state(self, state: object) -> JSONObject:
        """Every field of the state, extra ones included.

        Raises:
            ValueMappingError: it is no model, dataclass or dict, or something in it has no JSON form.
        """
        content = state.model_dump(warnings=False) if isinstance(state, BaseModel) else _fields_of(state)
        return cast("JSONObject", plain_json(content))

    def schema(self) -> JSONObject:
        """The JSON Schemas of the classes."""
        return dict(self._schema)

    @cached_property
    def _schema(self) -> JSONObject:
        return {
            "action": self._action.json_schema(schema_generator=_Schema),
            "observation": _adapter(self._observation_cls).json_schema(schema_generator=_Schema),
            "state": _adapter(self._state_cls).json_schema(schema_generator=_Schema),
            "reset_observation": _adapter(self._reset_observation_cls).json_schema(schema_generator=_Schema),
        }


def validated(read: Callable[[JSONObject], object], data: JSONObject) -> object:
    """What a model's validator makes of the data.

    Raises:
        InvalidActionError: with pydantic's own list of faults.
    """
    try:
        return read(data)
    except ValidationError as error:
        raise invalid_action(error) from error


def outcome_of(content: Mapping[str, Any], reward: object, done: object) -> Outcome:
    """The envelope of an observation's fields; its metadata stands in both places.

    Raises:
        ValueMappingError: something in it has no JSON form.
    """
    encoded = cast("JSONObject", plain_json(content))
    metadata = encoded.get("metadata")
    beside = dict(metadata) if isinstance(metadata, dict) else {}
    plain, not_finite = plain_reward(reward)
    if not_finite is not None:
        beside["reward"] = not_finite
    return Outcome(observation=encoded, reward=plain, done=plain_flag(done), metadata=beside or UNSET)


class _Schema(GenerateJsonSchema):
    """JSON Schema that says nothing of a field that has none (an array, a tensor), rather than failing as a whole."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {  # noqa: RUF012
        "skipped-choice",
        "non-serializable-default",
        "skipped-discriminator",
    }  # pydantic's own declaration is no ClassVar

    def handle_invalid_for_json_schema(self, schema: core_schema.CoreSchema, error_info: str) -> JsonSchemaValue:  # noqa: ARG002
        return {}


def _adapter(cls: type[Any]) -> TypeAdapter[Any]:
    if is_dataclass(cls) and not hasattr(cls, "__pydantic_validator__"):
        # A plain dataclass would drop unknown fields without a word and cannot hold an array.
        cls = pydantic_dataclass(cls, config=ConfigDict(extra="forbid", arbitrary_types_allowed=True))
    return TypeAdapter(cls)


def _fields_of(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise ValueMappingError(
        f"expected a pydantic model, a dataclass or a dict, got {type(value).__module__}.{type(value).__qualname__}",
        path="$",
    )
