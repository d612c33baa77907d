"""Spaces and their values, to JSON and to bytes and back; JSON Schema to Spaces and back.

Not for talking to a peer: nothing here does I/O. ``text.py`` has the Space of Unicode text; ``serialize.py`` writes a
Space as JSON, ``deserialize.py`` reads it; ``values.py`` takes its samples to JSON, ``buffers.py`` to bytes,
``batch_buffers.py`` several of them at once; ``schema.py`` describes a Space as JSON Schema, and ``mapping.py`` finds
one for a schema that comes without.
"""

from openenv_gym.spaces.batch_buffers import BatchCodec
from openenv_gym.spaces.buffers import BufferCodec, pack, unpack
from openenv_gym.spaces.deserialize import space_from_json
from openenv_gym.spaces.mapping import SchemaMapping, mapping_from_schema
from openenv_gym.spaces.schema import schema_from_space
from openenv_gym.spaces.serialize import space_to_json
from openenv_gym.spaces.text import DEFAULT_MAX_LENGTH, UnicodeText
from openenv_gym.spaces.values import ValueCodec, codec_for

__all__ = [
    "DEFAULT_MAX_LENGTH",
    "BatchCodec",
    "BufferCodec",
    "SchemaMapping",
    "UnicodeText",
    "ValueCodec",
    "codec_for",
    "mapping_from_schema",
    "pack",
    "schema_from_space",
    "space_from_json",
    "space_to_json",
    "unpack",
]
