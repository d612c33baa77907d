"""What a remote environment looks like from here: its Spaces, their JSON, its render modes.

Made once a session from the server's ``/schema`` and ``/metadata`` documents. Not for talking to the server, but for
one exception: a server without the subprotocol has to be asked for the two documents over HTTP.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal

import gymnasium

from openenv_gym.errors import SettingsError, SpaceMappingError, UnreachableError, ValueMappingError
from openenv_gym.info import encode_exact, encode_info
from openenv_gym.json_text import JSON
from openenv_gym.messages import SUBPROTOCOL, Opened
from openenv_gym.spaces import SchemaMapping, UnicodeText, codec_for, mapping_from_schema
from openenv_gym.spaces.schema import ANNOTATION
from openenv_gym.tool_spaces import call_space, encode_call, is_tool_call, observation_text
from openenv_gym.transports.base import ConnectionSettings

__all__ = ["Interface", "SpaceOverrides", "fetch_documents"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SpaceOverrides:
    """What the caller decides about the Spaces and their values instead of the server's schema.

    Args:
        action_space: replaces the Space of actions.
        observation_space: replaces the Space of observations.
        encode_action: action → the JSON object of the action's fields.
        decode_observation: the JSON object of the observation's fields → a member of ``observation_space``.
        flatten: whether an object with a single field that matters is that field's Space (default) or a Dict. Calls of
            tools and their observations likewise: the Spaces of ``tool_spaces.py``, or Dicts of their fields.
        binary: whether values travel as binary frames, which say the same as JSON. None: where the server has them and
            the arrays of an action and an observation have ``encodings.WORTH_PACKING`` bytes or more.
    """

    action_space: gymnasium.Space[Any] | None = None
    observation_space: gymnasium.Space[Any] | None = None
    encode_action: Callable[[Any], dict[str, Any]] | None = None
    decode_observation: Callable[[dict[str, Any]], Any] | None = None
    flatten: bool = True
    binary: bool | None = None


class Interface:
    """The Spaces of one remote environment, with the conversions between their members and JSON.

    Attributes:
        action_space, observation_space: the Spaces.
        encode_action: a member of ``action_space`` → the JSON object of the action's fields.
        decode_observation: the JSON object of the observation's fields → a member of ``observation_space``.
        spec_fields: what the server knows of its environment's ``EnvSpec``.
        metadata: Gymnasium's metadata of the environment: ``render_modes`` and, where known, ``render_fps``.
        name: what the server calls its environment.
        schema: the server's ``/schema`` document.
        packed_fields: names of the one field of an action and of an observation, where both Spaces are just what the
            server publishes for these fields, so that values can travel as bytes; else None.
    """

    def __init__(
        self,
        schema: Mapping[str, Any],
        description: Mapping[str, Any],
        overrides: SpaceOverrides,
        *,
        extended: bool = False,
    ) -> None:
        self._extended = extended
        self.action_space, self.encode_action = _action(schema, overrides)
        self.observation_space, self.decode_observation = _observation(schema, overrides)
        self.schema = schema
        self._description = description
        self.name = str(description.get("name") or "environment")
        self.packed_fields = _packed_fields(schema, overrides)
        # Another server's key of this name may hold anything.
        known = description.get("gymnasium")
        self._gymnasium: Mapping[str, Any] | None = known if isinstance(known, dict) else None
        self.metadata = _render_metadata(self._gymnasium or {})
        self.spec_fields = _spec_fields(self._gymnasium or {})

    @classmethod
    def of(
        cls, opened: Opened | None, base_url: str, settings: ConnectionSettings, overrides: SpaceOverrides
    ) -> Interface:
        """From what the opening of a session said; where it said nothing, from the server's own documents.

        Raises:
            UnreachableError: the server does not answer there.
            SpaceMappingError: the schema has no Space.
        """
        if opened is not None:
            return cls(opened.schema, opened.metadata, overrides, extended=True)
        return cls(*fetch_documents(base_url, settings), overrides)

    def speaking(self, overrides: SpaceOverrides) -> Interface:
        """The same environment with other Spaces.

        Args:
            overrides: what the caller decides about them.

        Raises:
            SpaceMappingError, SettingsError: as at the making.
        """
        return Interface(self.schema, self._description, overrides, extended=self._extended)

    def describes(self, opened: Opened | None) -> bool:
        """Whether a later session is one of this environment, as far as actions and observations go.

        A server without the subprotocol says nothing when a session opens, and is taken at its word.
        """
        if opened is None:
            return not self._extended
        parts = ("action", "observation", "reset_observation")
        return all(self.schema.get(part) == opened.schema.get(part) for part in parts)

    def check_env_id(self, env_id: str | None, base_url: str) -> None:
        """Make sure that the server serves the environment that was asked for.

        Raises:
            SettingsError: it serves another, or does not say which.
        """
        if env_id is None:
            return
        served = (self._gymnasium or {}).get("env_id")
        wanted = env_id.rpartition(":")[2]
        # An id without a version stands for any of its versions.
        if served is None or wanted not in {served, str(served).rpartition("-v")[0]}:
            raise SettingsError(
                f"expected a server of {env_id!r}, but {base_url} serves {served or self.name!r}", setting="env_id"
            )

    def check_render_mode(self, render_mode: str | None) -> None:
        """Make sure that the environment can render as asked.

        Raises:
            SettingsError: it cannot.
        """
        if render_mode is None:
            return
        if not self._extended:
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

    def reset_options(self, options: Mapping[str, Any]) -> dict[str, JSON]:
        """The options as fields of a reset: nested for a Gymnasium server, its entries as keywords for any other.

        Under the subprotocol they travel in the exact form of ``openenv_gym.info``, else as plain JSON.

        Raises:
            ValueMappingError: an entry has no JSON form.
        """
        if self._extended:
            encoded = {str(key): encode_exact(value) for key, value in options.items()}
        else:
            encoded, _ = encode_info(options)
            lost = [str(key) for key in options if str(key) not in encoded]
            if lost:
                raise ValueMappingError(f"expected options with a JSON form, got {lost}", path=f"$.{lost[0]}")
        return {"options": encoded} if self._gymnasium is not None else encoded


def fetch_documents(base_url: str, settings: ConnectionSettings) -> tuple[dict[str, Any], dict[str, Any]]:
    """A server's ``/schema`` and ``/metadata``.

    Raises:
        UnreachableError: no OpenEnv server answers there.
    """
    from openenv_gym.transports.http import fetch_json  # noqa: PLC0415  (httpx is heavy and seldom needed)

    documents = []
    for path in ("/schema", "/metadata"):
        document = fetch_json(base_url, path, settings)
        if not isinstance(document, dict):
            raise UnreachableError(
                f"expected an OpenEnv server at {base_url}, but its {path} is no JSON object: {str(document)[:100]}",
                url=base_url,
            )
        documents.append(document)
    return documents[0], documents[1]


def _render_metadata(known: Mapping[str, Any]) -> dict[str, Any]:
    modes, fps = known.get("render_modes"), known.get("render_fps")
    metadata: dict[str, Any] = {"render_modes": [str(mode) for mode in modes] if isinstance(modes, list) else []}
    if isinstance(fps, int | float) and not isinstance(fps, bool):
        metadata["render_fps"] = fps
    return metadata


def _spec_fields(known: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {"reward_threshold": int | float, "max_episode_steps": int, "nondeterministic": bool}
    return {name: known[name] for name, kind in kinds.items() if isinstance(known.get(name), kind)}


def _action(
    schema: Mapping[str, Any], overrides: SpaceOverrides
) -> tuple[gymnasium.Space[Any], Callable[[Any], dict[str, Any]]]:
    if overrides.action_space is not None and overrides.encode_action is not None:
        return overrides.action_space, overrides.encode_action
    if overrides.action_space is None and overrides.encode_action is None and _is_of_tools(schema, overrides):
        return call_space(), encode_call
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
    if overrides.observation_space is None and overrides.decode_observation is None and _is_of_tools(schema, overrides):
        return UnicodeText(), observation_text
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


def _is_of_tools(schema: Mapping[str, Any], overrides: SpaceOverrides) -> bool:
    # Who asks for the schema's own fields gets them, of a call too.
    return overrides.flatten and is_tool_call(schema.get("action"))


def _packed_fields(schema: Mapping[str, Any], overrides: SpaceOverrides) -> tuple[str, str] | None:
    if overrides != SpaceOverrides(binary=overrides.binary):
        return None
    fields = []
    for part in ("action", "observation"):
        properties = schema[part].get("properties") if isinstance(schema.get(part), dict) else None
        if not isinstance(properties, dict) or len(properties) != 1:
            return None
        name, field = next(iter(properties.items()))
        if not isinstance(field, dict) or ANNOTATION not in field:
            return None
        fields.append(name)
    return fields[0], fields[1]


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
