"""What a tool says of its results: the JSON Schema of their structured content, by the function's return type.

Given only where every value of the type has it, as a result is made of one (``tool_values.py``); a client of MCP
refuses a result that breaks it. Not for a tool's arguments (``tool_functions.py``).
"""

from __future__ import annotations

from typing import Any, get_type_hints

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import PydanticSerializationError

from openenv_gym.errors import ValueMappingError
from openenv_gym.json_text import JSONObject, encode_json
from openenv_gym.tools import WRAPPED

__all__ = ["ToolSchema", "output_schema", "wrapped_schema"]

_SIMPLE = frozenset({"string", "number", "integer", "boolean", "array"})


def output_schema(function: Any) -> JSONObject | None:
    """The schema of what a function gives; None where its return type says too little, or allows None.

    Example:
        >>> def doors() -> int: ...
        >>> output_schema(doors)["properties"]
        {'result': {'type': 'integer'}}
    """
    hint = get_type_hints(function, include_extras=True).get("return")
    if hint is None:
        return None
    try:
        schema = TypeAdapter[Any](hint).json_schema(
            by_alias=False, mode="serialization", schema_generator=_ResultSchema
        )
    except (PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError, TypeError, ValueError):
        return None  # a type that pydantic does not know says nothing
    kinds = _kinds(schema, schema.get("$defs", {}))
    if kinds == {"object"}:
        return {"type": "object"} | schema
    if not kinds or not kinds <= _SIMPLE:
        return None
    definitions = schema.pop("$defs", None)
    wrapped = wrapped_schema(schema)
    return wrapped if definitions is None else wrapped | {"$defs": definitions}


def wrapped_schema(value: JSONObject) -> JSONObject:
    """The schema of a structured result that has such a value as its ``result``."""
    return {"type": "object", "properties": {"result": value}, "required": ["result"], WRAPPED: True}


def _kinds(schema: Any, definitions: dict[str, Any]) -> set[str]:
    """The types of JSON that it allows; ``"any"`` among them where it does not say."""
    if "$ref" in schema:
        return _kinds(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema or "oneOf" in schema:
        return set().union(*(_kinds(each, definitions) for each in schema.get("anyOf") or schema["oneOf"]))
    kind = schema.get("type", "any")
    if kind == "array" and not (schema.get("items") or schema.get("prefixItems")):
        return {"any"}  # a picture in a list is shown, and no part of the structured content
    return set(kind) if isinstance(kind, list) else {kind}


class ToolSchema(GenerateJsonSchema):
    """JSON Schema without titles, which repeat the names, and without a default that JSON does not have."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        """Never."""
        return False

    def bytes_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ARG002
        """They travel as base64."""
        return {"type": "string", "contentEncoding": "base64"}

    def encode_default(self, dft: Any) -> Any:
        """The default in JSON, which has no NaN and no infinities."""
        encoded = super().encode_default(dft)
        try:
            encode_json(encoded)
        except ValueMappingError as error:
            raise PydanticSerializationError(str(error)) from error
        return encoded


class _ResultSchema(ToolSchema):
    """As results are written, with NaN and the infinities as strings."""

    def float_schema(self, schema: Any) -> dict[str, Any]:
        return super().float_schema(schema) | {"type": ["number", "string"]}
