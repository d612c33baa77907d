"""What a remote environment looks like from here: its Spaces, their JSON, its render modes.

Made once a session from the server's ``/schema`` and ``/metadata`` documents. Not for talking to the server, but for
one exception: a server without the subprotocol has to be asked for the two documents over HTTP.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal

import gymnasium

from openenv_gym.errors import SettingsError, SpaceMappingError, ValueMappingError
from openenv_gym.info import encode_exact, encode_info
from openenv_gym.messages import JSON, SUBPROTOCOL
from openenv_gym.spaces import SchemaMapping, codec_for, mapping_from_schema
from openenv_gym.transports.base import ConnectionSettings

__all__ = ["Interface", "SpaceOverrides"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SpaceOverrides:
    """What the caller decides about the Spaces instead of the server's schema.

    Args:
        action_space: replaces the Space of actions.
        observation_space: replaces the Space of observations.
        encode_action: action → the JSON object of the action's fields.
        decode_observation: the JSON object of the observation's fields → a member of ``observation_space``.
        flatten: whether an object with a single field that matters is that field's Space (default) or a Dict.
    """

    action_space: gymnasium.Space[Any] | None = None
    observation_space: gymnasium.Space[Any] | None = None
    encode_action: Callable[[Any], dict[str, Any]] | None = None
    decode_observation: Callable[[dict[str, Any]], Any] | None = None
    flatten: bool = True

    @classmethod
    def split(cls, settings: Mapping[str, Any]) -> tuple[SpaceOverrides, dict[str, Any]]:
        """The overrides among the settings, and the settings that are left."""
        names = {field.name for field in dataclasses.fields(cls)}
        mine = {name: value for name, value in settings.items() if name in names}
        return cls(**mine), {name: value for name, value in settings.items() if name not in names}


class Interface:
    """The Spaces of one remote environment, with the conversions between their members and JSON.

    Attributes:
        action_space, observation_space: the Spaces.
        encode_action: a member of ``action_space`` → the JSON object of the action's fields.
        decode_observation: the JSON object of the observation's fields → a member of ``observation_space``.
        metadata: Gymnasium's metadata of the environment: ``render_modes`` and, where known, ``render_fps``.
        name: what the server calls its environment.
    """

    def __init__(self, schema: Mapping[str, Any], description: Mapping[str, Any], overrides: SpaceOverrides) -> None:
        self.action_space, self.encode_action = _action(schema, overrides)
        self.observation_space, self.decode_observation = _observation(schema, overrides)
        self._schema = schema
        self._gymnasium: Mapping[str, Any] | None = description.get("gymnasium")
        self.name = str(description.get("name") or "environment")
        known = self._gymnasium or {}
        self.metadata: dict[str, Any] = {"render_modes": list(known.get("render_modes") or ())}
        if known.get("render_fps") is not None:
            self.metadata["render_fps"] = known["render_fps"]

    @classmethod
    def from_documents(
        cls, schema: Mapping[str, Any], description: Mapping[str, Any], overrides: SpaceOverrides
    ) -> Interface:
        """From the ``/schema`` and ``/metadata`` documents.

        Raises:
            SpaceMappingError: the schema has no Space.
        """
        return cls(schema, description, overrides)

    @classmethod
    def fetch(cls, base_url: str, settings: ConnectionSettings, overrides: SpaceOverrides) -> Interface:
        """From the server itself, over HTTP.

        Raises:
            UnreachableError: the server does not answer there.
            SpaceMappingError: the schema has no Space.
        """
        from openenv_gym.transports.http import fetch_json  # noqa: PLC0415  (httpx is heavy and seldom needed)

        documents = []
        for path in ("/schema", "/metadata"):
            document = fetch_json(base_url, path, settings)
            if not isinstance(document, dict):
                raise SpaceMappingError(
                    f"expected a JSON object at {base_url}{path}, got {type(document).__name__}", path="$"
                )
            documents.append(document)
        return cls(documents[0], documents[1], overrides)

    def describes(self, schema: Mapping[str, Any]) -> bool:
        """Whether the document is the one this was made from, as far as actions and observations go."""
        parts = ("action", "observation", "reset_observation")
        return all(self._schema.get(part) == schema.get(part) for part in parts)

    def check_env_id(self, env_id: str | None, base_url: str) -> None:
        """Make sure that the server serves the environment that was asked for.

        Raises:
            SettingsError: it serves another, or does not say which.
        """
        if env_id is None:
            return
        served = (self._gymnasium or {}).get("env_id")
        wanted = env_id.rpartition(":")[2]
        # An id without a version stands for its newest.
        if served is None or wanted not in {served, str(served).rpartition("-v")[0]}:
            raise SettingsError(
                f"expected a server of {env_id!r}, but {base_url} serves {served or self.name!r}", setting="env_id"
            )

    def check_render_mode(self, render_mode: str | None, *, remote: bool) -> None:
        """Make sure that the environment can render as asked.

        Raises:
            SettingsError: it cannot.
        """
        if render_mode is None:
            return
        if not remote:
            raise SettingsError(
                f"render_mode={render_mode!r} needs a server that speaks {SUBPROTOCOL}: OpenEnv itself cannot render",
                setting="render_mode",
            )
        offered = self.metadata["render_modes"]
        needed = "rgb_array" if render_mode == "human" else render_mode
        if needed not in offered and needed.removesuffix("_list") not in offered:
            raise SettingsError(
                f"expected a render_mode among {offered}, got {render_mode!r}"
                + (': "human" shows the frames of "rgb_array"' if render_mode == "human" else ""),
                setting="render_mode",
            )

    def reset_options(self, options: Mapping[str, Any], *, exact: bool) -> dict[str, JSON]:
        """The options as fields of a reset: nested for a Gymnasium server, its entries as keywords for any other.

        Args:
            options: what the caller gave.
            exact: whether the server reads the exact form of ``openenv_gym.info``; any other gets plain JSON.

        Raises:
            ValueMappingError: an entry has no JSON form.
        """
        if exact:
            encoded = {str(key): encode_exact(value) for key, value in options.items()}
        else:
            encoded, _ = encode_info(options)
            lost = [str(key) for key in options if str(key) not in encoded]
            if lost:
                raise ValueMappingError(f"expected options with a JSON form, got {lost}", path=f"$.{lost[0]}")
        return {"options": encoded} if self._gymnasium is not None else encoded


def _action(
    schema: Mapping[str, Any], overrides: SpaceOverrides
) -> tuple[gymnasium.Space[Any], Callable[[Any], dict[str, Any]]]:
    if overrides.action_space is not None and overrides.encode_action is not None:
        return overrides.action_space, overrides.encode_action
    mapping = _mapping(schema, "action", overrides)
    if overrides.encode_action is not None:
        return mapping.space, overrides.encode_action
    if overrides.action_space is None:
        return mapping.space, mapping.encode  # type: ignore[return-value]  # an object's schema encodes to an object
    space, field, codec = overrides.action_space, mapping.field, codec_for(overrides.action_space)
    if field is not None:
        return space, lambda action: {field: codec.encode(action)}
    if isinstance(space, gymnasium.spaces.Dict):
        return space, codec.encode  # type: ignore[return-value]
    raise SettingsError(
        "action_space replaces an action of several fields: give encode_action too, or a Dict of these fields",
        setting="action_space",
    )


def _observation(
    schema: Mapping[str, Any], overrides: SpaceOverrides
) -> tuple[gymnasium.Space[Any], Callable[[dict[str, Any]], Any]]:
    if overrides.observation_space is not None and overrides.decode_observation is not None:
        return overrides.observation_space, overrides.decode_observation
    mapping = _mapping(schema, "observation", overrides)
    if overrides.decode_observation is not None:
        return mapping.space, overrides.decode_observation
    if overrides.observation_space is None:
        _require_same_reset(schema, mapping, overrides)
        return mapping.space, mapping.decode
    space, field, codec = overrides.observation_space, mapping.field, codec_for(overrides.observation_space)
    if field is not None:
        return space, lambda fields: codec.decode(fields.get(field), f"$.{field}")
    if isinstance(space, gymnasium.spaces.Dict):
        wanted = set(space.spaces)
        return space, lambda fields: codec.decode({key: value for key, value in fields.items() if key in wanted})
    raise SettingsError(
        "observation_space replaces an observation of several fields: "
        "give decode_observation too, or a Dict of these fields",
        setting="observation_space",
    )


_Part = Literal["action", "observation", "reset_observation"]


def _mapping(schema: Mapping[str, Any], part: _Part, overrides: SpaceOverrides) -> SchemaMapping:
    document = schema.get(part)
    if not isinstance(document, dict):
        raise SpaceMappingError(
            f"expected the JSON Schema of the {part} in /schema, got {document!r}", path=f"$.{part}"
        )
    role: Literal["action", "observation"] = "action" if part == "action" else "observation"
    return mapping_from_schema(document, flatten=overrides.flatten, role=role, path=f"$.{part}")


def _require_same_reset(schema: Mapping[str, Any], mapping: SchemaMapping, overrides: SpaceOverrides) -> None:
    """A reset that answers in another shape than a step has no single Space: the caller must say how to read both."""
    if not isinstance(schema.get("reset_observation"), dict):
        return
    first = _mapping(schema, "reset_observation", overrides)
    if first.space != mapping.space or first.field != mapping.field:
        raise SpaceMappingError(
            f"expected reset to answer as step does ({mapping.space}), but it answers {first.space}: "
            "give observation_space and decode_observation",
            path="$.reset_observation",
        )
