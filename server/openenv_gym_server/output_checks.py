"""Whether a tool's structured result fits the output schema that a standard client was told of it.

Official clients hold each result to the schema and lose one that does not fit, so a server has to say it first. Needs
the extra ``mcp``, whose SDK brings ``jsonschema``. Not for making schemas (``output_schemas.py``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, validator_for
from mcp import types
from referencing import Registry
from referencing.exceptions import Unresolvable

from openenv_gym.json_text import JSON, JSONObject, decode_json, encode_json

__all__ = ["OutputChecks", "fault_of"]

MAX_CHECKED = 2**18
"""Bytes of the largest result that is checked, which takes about a second; a larger one is let through."""

MAX_QUICK = 2**11
"""Bytes of a result that is checked on the event loop at most."""

_EXPECTED_CHARACTERS = 200


class OutputChecks:
    """The output schemas of one session's tools, as its client was last told them.

    Example:
        >>> checks = OutputChecks()
        >>> number = {"type": "object", "properties": {"result": {"type": "integer"}}}
        >>> checks.learn([types.Tool(name="add", inputSchema={"type": "object"}, outputSchema=number)])
        >>> asyncio.run(checks.fault_of("add", {"result": "three"}))
        "expected type 'integer' at $.result"
    """

    def __init__(self) -> None:
        self._schemas: dict[str, JSONObject | None] = {}

    def __contains__(self, name: str) -> bool:
        """Whether anything is known of the tool."""
        return name in self._schemas

    def learn(self, tools: Iterable[types.Tool]) -> None:
        """Take the schemas of these tools in place of all earlier ones."""
        self._schemas = {tool.name: tool.outputSchema for tool in tools}

    async def fault_of(self, name: str, structured: JSONObject | None) -> str | None:
        """What is wrong with a structured result; None where it fits, or nothing is known or declared of the tool."""
        schema = self._schemas.get(name)
        if schema is None:
            return None
        size = len(encode_json(structured))
        if size > MAX_CHECKED:
            return None
        if size > MAX_QUICK:
            return await asyncio.to_thread(fault_of, schema, structured)
        return fault_of(schema, structured)


def fault_of(schema: JSONObject, value: JSON) -> str | None:
    """What is wrong with a value by its JSON Schema, without the value itself; None where it fits.

    Example:
        >>> fault_of({"type": "object", "required": ["result"]}, {})
        "expected required ['result'] at $"
    """
    try:
        validator = _validator(encode_json(schema))
        fault = next(validator.iter_errors(value), None)
    except (SchemaError, Unresolvable):
        return "its output schema is no JSON Schema that stands for itself"
    except RecursionError:
        return None  # nested too deeply to be checked
    if fault is None:
        return None
    return f"expected {fault.validator} {f'{fault.validator_value!r}'[:_EXPECTED_CHARACTERS]} at {fault.json_path}"


@lru_cache(maxsize=256)
def _validator(schema_text: bytes) -> Validator:
    schema: Any = decode_json(schema_text)
    kind: Any = validator_for(schema, default=Draft202012Validator)
    kind.check_schema(schema)
    # An empty registry: whatever a schema refers to elsewhere is not fetched.
    validator: Validator = kind(schema, registry=Registry())
    return validator
