"""A Space for a JSON Schema that comes without one, and the conversion between the two.

For servers that publish plain JSON Schema, as OpenEnv's do. Where a value's schema has the annotation
``x-gymnasium-space``, that Space is taken and nothing is guessed. Not for writing schemas (``schema.py``).

===============================================  ================================================================
string                                           ``UnicodeText`` (lengths kept; format, pattern, encoding are not)
enum, const                                      ``Discrete`` over the values
boolean                                          ``Discrete(2)``: false, true
integer with both bounds                         ``Discrete(start=…)``; an int64 ``Box(())`` above
                                                 ``MAX_DISCRETE`` values
integer                                          int64 ``Box(())``
number                                           float64 ``Box(())``; an exclusive bound is the next float inside
null                                             ``Discrete(1)``
array of fixed length and numbers, nested        ``Box`` of int64 or float64, with the bounds of each element
array with ``prefixItems`` alone                 ``Box`` if all are numbers of one kind, else ``Tuple``
any other array                                  ``Sequence``
object with properties                           ``Dict`` in declared order
object without, ``{}``, ``true``                 ``UnicodeText`` that holds JSON text
nullable                                         ``OneOf([Discrete(1), value])``: index 0 is null
anyOf, oneOf, a list of types                    ``OneOf`` (null first); numbers of several kinds are one number,
                                                 listed values one ``Discrete``
===============================================  ================================================================

What is written may also be said more plainly than the Space has it, where only one thing can be meant (``fields.py``).

The Space may allow more than the schema, where the schema says ``pattern``, ``multipleOf``, ``uniqueItems``, ``not``
or the like; the server then has the last word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from gymnasium.spaces import Box, Discrete, Sequence, Space, Tuple

from openenv_gym.errors import SpaceMappingError
from openenv_gym.json_text import JSON, JSONObject
from openenv_gym.spaces.bounds import length_of, number_box
from openenv_gym.spaces.codec import ValueCodec
from openenv_gym.spaces.deserialize import bounded_box, bytes_of_box, space_from_json
from openenv_gym.spaces.fields import BooleanCodec, EnumCodec, FieldCodec, FieldsCodec, JsonTextCodec, UnionCodec
from openenv_gym.spaces.limits import BYTES_PER_SAMPLED, Budget
from openenv_gym.spaces.resolve import Place, alternatives, resolve
from openenv_gym.spaces.schema import ANNOTATION
from openenv_gym.spaces.text import DEFAULT_MAX_LENGTH, UnicodeText
from openenv_gym.spaces.values import SequenceCodec, TupleCodec, codec_for

__all__ = ["SchemaMapping", "mapping_from_schema"]

MAX_DISCRETE = 65_536
"""Values a bounded integer may have and still be a ``Discrete``; above it is a ``Box``, which lists nothing."""

ENVELOPE = frozenset(("metadata", "done", "reward"))
"""Fields of an action or observation that never are part of its Space."""


class Encode(Protocol):
    """Sample to JSON; ``path`` is the value's place, for the error."""

    def __call__(self, sample: Any, path: str = "$") -> JSON:
        """The JSON of a sample."""


class Decode(Protocol):
    """JSON to sample; ``path`` is the value's place, for the error."""

    def __call__(self, value: JSON, path: str = "$") -> Any:
        """The sample of a JSON value."""


@dataclass(frozen=True, slots=True)
class SchemaMapping:
    """A Space, and the conversion between its samples and the JSON its schema asks for.

    Attributes:
        space: the Space.
        encode: sample to JSON; raises ``ValueMappingError``.
        decode: JSON to sample, bounds not checked; raises ``ValueMappingError``.
        decode_member: JSON to a sample inside the Space; raises ``ValueMappingError``.
        field: the one field whose Space this is; None where the Space is that of the whole object.
    """

    space: Space[Any]
    encode: Encode
    decode: Decode
    decode_member: Decode
    field: str | None = None


def mapping_from_schema(
    schema: JSONObject,
    *,
    flatten: bool = True,
    role: Literal["action", "observation"] = "action",
    path: str = "$",
    budget: Budget | None = None,
) -> SchemaMapping:
    """The Space of a whole action or observation object, and the conversion.

    ``metadata``, ``done`` and ``reward`` are left out. An observation with one field left, and an action with one
    required field (or else one field), is that field's Space: what is sent is ``{"field": …}``, and all else keeps its
    default. Of what is received, unknown fields are passed over; absent ones have their default or are an error.

    Args:
        schema: the JSON Schema, with its ``$defs``.
        flatten: whether an object with one field is that field's Space; else it is a ``Dict`` of it.
        role: an action may leave out what is not required; an observation may not.
        path: the place of the schema, for errors.
        budget: what the Spaces may take together, where this is one schema of several.

    Raises:
        SpaceMappingError: a part has no Space; ``path`` says which.

    Example:
        >>> from openenv_gym.spaces import mapping_from_schema
        >>> field = {"type": "integer", "minimum": 0, "maximum": 3}
        >>> schema = {"type": "object", "properties": {"move": field}, "required": ["move"]}
        >>> mapping = mapping_from_schema(schema)
        >>> mapping.space, mapping.encode(2), mapping.decode({"move": 1})
        (Discrete(4), {'move': 2}, np.int64(1))
    """
    root = Place(schema if isinstance(schema, dict) else {}, path, budget=budget or Budget())
    try:
        whole, place = resolve(schema, root)
        codec = _top(whole, place, flatten=flatten, required_only=role == "action")
    except SpaceMappingError:
        raise
    except (ArithmeticError, MemoryError, RecursionError, TypeError, ValueError) as error:
        # A peer may write anything at all.
        raise root.fault(
            f"expected a JSON Schema with Spaces of an ordinary size and depth ({error!r:.200})"
        ) from error
    field = codec.field if isinstance(codec, FieldCodec) else None
    return SchemaMapping(codec.space, codec.encode, codec.decode, codec.decode_member, field)


def _top(schema: JSONObject, place: Place, *, flatten: bool, required_only: bool) -> ValueCodec:
    properties = schema.get("properties")
    if ANNOTATION in schema or not isinstance(properties, dict):
        return _codec(schema, place)
    fields = {key: value for key, value in properties.items() if key not in ENVELOPE}
    required = [key for key in _required(schema, place) if key in fields]
    only = required if required_only and len(required) == 1 else list(fields)
    if flatten and len(only) == 1:
        parts, defaults = _parts({only[0]: fields[only[0]]}, place)
        return FieldCodec(only[0], parts[only[0]], defaults)
    return _object({**schema, "properties": fields, "required": list[JSON](required)}, place)


def _required(schema: JSONObject, place: Place) -> list[str]:
    names = schema.get("required", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise place.down("required").fault("expected a list of names")
    return [name for name in names if isinstance(name, str)]


def _codec(schema: JSON, place: Place) -> ValueCodec:
    """The codec of any schema."""
    plain, place = resolve(schema, place)
    if ANNOTATION in plain:
        there = f"{place.path}.{ANNOTATION}"
        return codec_for(space_from_json(plain[ANNOTATION], there, budget=place.budget))
    listed = _listed(plain, place)
    if listed is not None:
        return EnumCodec(listed)
    branches = alternatives(plain, place)
    if branches is not None:
        return _union(branches)
    kind = _kind(plain)
    translate = _TRANSLATORS.get(kind) if isinstance(kind, str) else None
    if translate is None:
        raise place.fault(f"expected one of the types {sorted(map(str, _TRANSLATORS))}, got {kind!r}")
    return translate(plain, place)


def _listed(schema: JSONObject, place: Place) -> list[JSON] | None:
    """The values of an enumeration."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    if "enum" in schema and (not isinstance(values, list) or not values):
        raise place.down("enum").fault("expected a list of values")
    if schema.get("type") == "null":
        return [None]
    return values if isinstance(values, list) else None


def _kind(schema: JSONObject) -> JSON:
    """The type, or what the other keywords say of it."""
    if "type" in schema:
        return schema["type"]
    for keywords, kind in _HINTS:
        if any(keyword in schema for keyword in keywords):
            return kind
    return "any"


_HINTS = (
    (("properties", "additionalProperties", "required"), "object"),
    (("items", "prefixItems", "minItems", "maxItems"), "array"),
    (("minLength", "maxLength", "pattern", "format"), "string"),
    (("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), "number"),
)


def _union(branches: list[tuple[JSONObject, Place]]) -> ValueCodec:
    nullable = any(_listed(schema, place) == [None] for schema, place in branches)
    values = [(schema, place) for schema, place in branches if _listed(schema, place) != [None]]
    codecs = _merged(values) if values else []
    if nullable:
        codecs = [EnumCodec([None]), *codecs]
    return codecs[0] if len(codecs) == 1 else UnionCodec(codecs)


def _merged(branches: list[tuple[JSONObject, Place]]) -> list[ValueCodec]:
    """The codecs of alternatives, none of them null; those that are one thing become one."""
    listed = [_listed(schema, place) for schema, place in branches]
    if all(values is not None for values in listed):
        return [EnumCodec([value for values in listed for value in values or []])]
    kinds = {str(schema.get("type")) for schema, _ in branches}
    plain = not any(ANNOTATION in schema or values for (schema, _), values in zip(branches, listed, strict=True))
    if plain and len(branches) > 1 and kinds <= {"boolean", "integer", "number"}:
        place = branches[0][1]
        if kinds == {"boolean"}:
            return [_codec({"type": "boolean"}, place)]
        number = _codec({"type": "number" if "number" in kinds else "integer"}, place)
        return [BooleanCodec(number) if "boolean" in kinds else number]
    return [_codec(schema, place) for schema, place in branches]


def _string(schema: JSONObject, place: Place) -> ValueCodec:
    shortest = length_of(schema, "minLength", place) or 0
    longest = length_of(schema, "maxLength", place)
    if longest is None:
        longest = max(DEFAULT_MAX_LENGTH, shortest)
    # Every sample is as long.
    place.budget.take(shortest * BYTES_PER_SAMPLED, place.path)
    if shortest > longest:
        raise place.fault(f"expected minLength up to maxLength, got {shortest} and {longest}")
    return codec_for(UnicodeText(longest, min_length=shortest))


def _integer(schema: JSONObject, place: Place) -> ValueCodec:
    box = number_box(schema, place)
    lowest, highest = int(box.low), int(box.high)
    bounded = bool(box.bounded_below) and bool(box.bounded_above)
    if bounded and highest - lowest < MAX_DISCRETE:
        return codec_for(Discrete(highest - lowest + 1, start=lowest))
    return codec_for(box)


def _number(schema: JSONObject, place: Place) -> ValueCodec:
    return codec_for(number_box(schema, place))


def _array(schema: JSONObject, place: Place) -> ValueCodec:
    box = _numeric(schema, place)
    if box is not None:
        return codec_for(box)
    prefix = _prefix(schema)
    if prefix is None:
        part = _codec(schema.get("items", True), place.down("items"))
        return SequenceCodec(Sequence(part.space), part)
    if _fixed(schema, place) != len(prefix):
        raise place.fault(f"expected an array that ends after its {len(prefix)} prefixItems")
    parts = [_codec(item, place.down(f"prefixItems[{index}]")) for index, item in enumerate(prefix)]
    return TupleCodec(Tuple([part.space for part in parts]), parts)


def _prefix(schema: JSONObject) -> list[JSON] | None:
    """The schemas by position; ``items`` had them before draft 2020-12."""
    prefix = schema.get("prefixItems", schema.get("items"))
    if prefix is False:
        return []
    return prefix if isinstance(prefix, list) else None


def _fixed(schema: JSONObject, place: Place) -> int | None:
    """The only length the array may have."""
    least, most = length_of(schema, "minItems", place), length_of(schema, "maxItems", place)
    prefix = _prefix(schema)
    ended = schema.get("additionalItems" if isinstance(schema.get("items"), list) else "items") is False
    if prefix is not None and ended:
        # Without minItems an array may be shorter; the encoder never makes one.
        most = len(prefix) if most is None else min(most, len(prefix))
        least = most if least is None else least
    return least if least == most else None


def _numeric(schema: JSON, place: Place) -> Box | None:
    """The ``Box`` of a number, an integer, or a fixed-length array of them; None where the schema is anything else."""
    plain, place = resolve(schema, place)
    if ANNOTATION in plain or _listed(plain, place) is not None or alternatives(plain, place) is not None:
        return None
    kind = _kind(plain)
    if kind in ("integer", "number"):
        return number_box(plain, place)
    length = _fixed(plain, place) if kind == "array" else None
    if length is None:
        return None
    prefix = _prefix(plain)
    if prefix is None:
        element = _numeric(plain.get("items", True), place.down("items"))
        return None if element is None else _stacked([element], length, place)
    elements = [_numeric(item, place.down(f"prefixItems[{index}]")) for index, item in enumerate(prefix)]
    boxes = [element for element in elements if element is not None]
    alike = len({(box.shape, box.dtype) for box in boxes}) == 1 and len(boxes) == len(elements) == length
    return _stacked(boxes, length, place) if alike else None


def _stacked(boxes: list[Box], length: int, place: Place) -> Box:
    """One ``Box`` of several alike, or of one repeated."""
    shape = (length, *boxes[0].shape)
    place.budget.take(bytes_of_box(shape, boxes[0].dtype), place.path)
    sides = (
        [box.low for box in boxes],
        [box.high for box in boxes],
        [~box.bounded_below for box in boxes],
        [~box.bounded_above for box in boxes],
    )
    # One element stands for all where it is repeated.
    low, high, below, above = (np.stack(side) for side in sides)
    return bounded_box(low, high, below, above, shape)


def _object(schema: JSONObject, place: Place) -> ValueCodec:
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        raise place.down("properties").fault("expected an object of schemas")
    if not properties and schema.get("additionalProperties") is not False:
        return JsonTextCodec(objects=True)
    required = _required(schema, place)
    for name in required:
        if name not in properties:
            raise place.down("required").fault(f"expected properties to have the required {name!r}")
    return FieldsCodec(*_parts(properties, place), required)


def _parts(properties: JSONObject, place: Place) -> tuple[dict[str, ValueCodec], JSONObject]:
    """The codec of each property, and the defaults they have."""
    there = place.down("properties")
    parts = {key: _codec(value, replace(there, path=f"{there.path}.{key}")) for key, value in properties.items()}
    defaults = {
        key: value["default"] for key, value in properties.items() if isinstance(value, dict) and "default" in value
    }
    return parts, defaults


def _boolean(_: JSONObject, __: Place) -> ValueCodec:
    return EnumCodec([False, True])


def _any(_: JSONObject, __: Place) -> ValueCodec:
    return JsonTextCodec(objects=False)


_TRANSLATORS: dict[Any, Callable[[JSONObject, Place], ValueCodec]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _array,
    "object": _object,
    "any": _any,
}
