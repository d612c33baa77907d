"""What a tool gave, taken apart: the plain value, what an agent is shown of it, and the object for programs.

What says that it is a picture is shown as one: an image of Pillow, an ``Image``, ``Audio`` or ``File`` of FastMCP, a
content block of the ``mcp`` package; by itself, or as an item of a list or dict. Everything else is plain JSON
(``plain.py``), an array always its numbers, whatever its shape: a board may look like pixels. None of those packages is
imported for it. Not for what surrounds a result (``tool_results.py``).
"""

from __future__ import annotations

import base64
import io
from typing import Any, NamedTuple

from openenv_gym.json_text import JSON, JSONObject, encode_json
from openenv_gym_server.plain import plain_json

__all__ = ["ToolValue", "text_block", "tool_value", "with_notes"]

_NOTHING_TO_SEE = frozenset({str, int, float, bool, bytes, type(None)})
_BLOCKS = frozenset({"text", "image", "audio", "resource", "resource_link"})


class ToolValue(NamedTuple):
    """A tool's value.

    Attributes:
        data: all of it in plain JSON; a picture is its block.
        content: what an agent is shown, as blocks: text, images, …
        structured: the object for programs, without the pictures; None where there is nothing else.
        wrapped: whether the object was made for a value that is none.
        size: bytes of its text and pictures.
    """

    data: JSON
    content: list[JSONObject]
    structured: JSONObject | None
    wrapped: bool
    size: int


def tool_value(value: object) -> ToolValue:
    """The value taken apart; None has no content.

    Raises:
        ValueMappingError: something in it has no JSON form.

    Example:
        >>> tool_value({"doors": 2}).content[0]["text"]
        '{"doors":2}'
        >>> tool_value([1, 2]).structured
        {'result': [1, 2]}
    """
    if type(value) not in _NOTHING_TO_SEE:
        block = _block_of(value)
        if block is not None:
            return _made_of([block], _data_of(block))
        if isinstance(value, list | tuple) and (blocks := _blocks_in(value)):
            return _of_list(value, blocks)
        if type(value) is dict and (blocks := _blocks_in(list(value.values()))):
            return _of_dict(value, blocks)
    return _plain_value(value)


def _plain_value(value: object) -> ToolValue:
    plain = plain_json(value)
    if plain is None:
        return ToolValue(None, [], None, wrapped=False, size=0)
    text = encode_json(plain)
    is_object = isinstance(plain, dict)
    shown = plain if isinstance(plain, str) else text.decode()
    structured: JSONObject = plain if isinstance(plain, dict) else {"result": plain}
    return ToolValue(plain, [text_block(shown)], structured, not is_object, len(text))


def _of_list(value: list[Any] | tuple[Any, ...], blocks: dict[int, JSONObject]) -> ToolValue:
    content: list[JSONObject] = []
    data: list[JSON] = []
    for index, item in enumerate(value):
        if index in blocks:
            content.append(blocks[index])
            data.append(_data_of(blocks[index]))
        else:
            part = _plain_value(item)
            content += part.content
            data.append(part.data)
    return _made_of(content, data)


def _of_dict(value: dict[Any, Any], blocks: dict[int, JSONObject]) -> ToolValue:
    rest = _plain_value({name: item for index, (name, item) in enumerate(value.items()) if index not in blocks})
    pictures = {str(name): blocks[index] for index, name in enumerate(value) if index in blocks}
    told = rest.content if rest.data else []
    data: dict[str, JSON] = {name: _data_of(block) for name, block in pictures.items()}
    plain = rest.data if isinstance(rest.data, dict) else {}
    return _made_of([*told, *pictures.values()], plain | data)._replace(structured=plain)


def _made_of(content: list[JSONObject], data: JSON) -> ToolValue:
    return ToolValue(data, content, None, wrapped=False, size=len(encode_json(content)))


def text_block(text: str) -> JSONObject:
    """A text that an agent is shown."""
    return with_notes({"type": "text", "text": text})


def _data_of(block: JSONObject) -> JSON:
    """What a program has of a block: a text's text, else the block itself."""
    if block["type"] == "text":
        return block["text"]
    return {name: item for name, item in block.items() if item is not None}


def _blocks_in(items: list[Any] | tuple[Any, ...]) -> dict[int, JSONObject]:
    if _NOTHING_TO_SEE.issuperset(map(type, items)):
        return {}
    found = ((index, _block_of(item)) for index, item in enumerate(items) if type(item) not in _NOTHING_TO_SEE)
    return {index: block for index, block in found if block is not None}


def _block_of(value: Any) -> JSONObject | None:
    package = type(value).__module__.partition(".")[0]
    if package == "PIL":
        return _pillow_block(value) if callable(getattr(value, "save", None)) else None
    if package == "fastmcp":
        makes = [name for name in _FASTMCP if hasattr(value, name)]
        return _model_block(getattr(value, makes[0])()) if makes else None
    return _model_block(value) if package in {"mcp", "mcp_types"} else None


_FASTMCP = ("to_image_content", "to_audio_content", "to_resource_content")


def _model_block(value: Any) -> JSONObject | None:
    if getattr(value, "type", None) not in _BLOCKS or not callable(getattr(value, "model_dump", None)):
        return None
    return with_notes(value.model_dump(mode="json"))


def _pillow_block(image: Any) -> JSONObject:
    file = io.BytesIO()
    shown = image if image.mode in {"1", "L", "LA", "P", "RGB", "RGBA", "I;16"} else image.convert("RGB")
    shown.save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    return with_notes({"type": "image", "data": data, "mimeType": "image/png"})


def with_notes(block: JSONObject) -> JSONObject:
    """A block with the notes that it may have, in their place whether there are any or not."""
    return {"annotations": None, "meta": None} | block
