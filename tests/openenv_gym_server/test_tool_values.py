"""What a tool gave, taken apart."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import pytest
from fastmcp.utilities.types import Audio, File, Image
from mcp.types import TextContent
from PIL import Image as Pillow

from openenv_gym.errors import ValueMappingError
from openenv_gym_server.tool_values import text_block, tool_value

FRAME = np.random.default_rng(1).integers(0, 256, (16, 17, 3), dtype=np.uint8)
PICTURE = Pillow.fromarray(FRAME)


def pixels(block: Any) -> Any:
    assert (block["type"], block["mimeType"]) == ("image", "image/png")
    return np.asarray(Pillow.open(io.BytesIO(base64.b64decode(block["data"]))))


def png() -> bytes:
    file = io.BytesIO()
    PICTURE.save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize("value", [PICTURE, Image(data=png(), format="png")])
def test_a_picture_is_an_image_of_the_content_and_the_data(value: Any) -> None:
    given = tool_value(value)
    assert np.array_equal(pixels(given.content[0]), FRAME)
    assert given.content[0] | {"data": ""} == {
        "type": "image",
        "data": "",
        "mimeType": "image/png",
        "annotations": None,
        "meta": None,
    }
    assert given.data == {"type": "image", "data": given.content[0]["data"], "mimeType": "image/png"}
    assert (given.structured, given.wrapped) == (None, False)
    assert given.size > len(str(given.content[0]["data"]))


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "F", "YCbCr", "I;16"])
def test_a_pillow_image_of_any_mode_is_shown(mode: str) -> None:
    assert pixels(tool_value(Pillow.new(mode, (3, 2))).content[0]).shape[:2] == (2, 3)


@pytest.mark.parametrize(
    "value",
    [
        np.zeros((3, 3, 3), np.uint8),
        np.zeros((19, 19, 3), np.uint8),
        np.zeros((84, 84, 4), np.uint8),
        np.zeros((84, 84), np.uint8),
        np.zeros((84, 84, 2), np.uint8),
        np.zeros((84, 84, 3), np.float32),
        np.zeros((0, 84, 3), np.uint8),
    ],
)
def test_an_array_is_its_numbers_whatever_its_shape(value: Any) -> None:
    given = tool_value(value)
    assert given.data == value.tolist()
    assert [block["type"] for block in given.content] == ["text"]
    assert given.structured == {"result": given.data}
    within = tool_value({"board": value, "frame": PICTURE})
    assert isinstance(within.data, dict)
    assert within.data["board"] == value.tolist()
    assert [block["type"] for block in within.content] == ["text", "image"]


def test_items_of_a_list_are_shown_in_their_order() -> None:
    given = tool_value(("before", PICTURE, {"a": 1}, None, TextContent(type="text", text="after")))
    assert [block["type"] for block in given.content] == ["text", "image", "text", "text"]
    assert [block.get("text") for block in given.content] == ["before", None, '{"a":1}', "after"]
    assert isinstance(given.data, list)
    assert given.data[0] == "before"
    assert given.data[1]["type"] == "image"  # type: ignore[call-overload, index]
    assert given.data[2:] == [{"a": 1}, None, "after"]
    assert given.structured is None


def test_pictures_of_a_dict_are_shown_beside_the_rest() -> None:
    given = tool_value({"frame": PICTURE, "score": 3})
    assert given.content[0] == text_block('{"score":3}')
    assert np.array_equal(pixels(given.content[1]), FRAME)
    assert given.structured == {"score": 3}
    assert isinstance(given.data, dict)
    assert set(given.data) == {"frame", "score"}
    alone = tool_value({"frame": PICTURE})
    assert [block["type"] for block in alone.content] == ["image"]
    assert alone.structured == {}


def test_sounds_files_and_blocks_are_content() -> None:
    assert tool_value(Audio(data=b"abc", format="wav")).content[0]["type"] == "audio"
    assert tool_value(File(data=b"abc", format="pdf")).content[0]["type"] == "resource"
    block = tool_value(TextContent(type="text", text="hello"))
    assert (block.data, block.content) == ("hello", [text_block("hello")])


def test_other_things_of_those_packages_are_values() -> None:
    from fastmcp.tools.base import ToolResult
    from mcp.types import Tool

    assert tool_value(Tool(name="look", inputSchema={})).data["name"] == "look"  # type: ignore[call-overload, index]
    with pytest.raises(ValueMappingError):
        tool_value(Pillow)
    with pytest.raises(ValueMappingError):
        tool_value([PICTURE, object()])
    with pytest.raises(ValueMappingError):
        tool_value({"frame": PICTURE, "score": object()})
    assert tool_value(ToolResult(content="a").content).content == [text_block("a")]


def test_nothing_has_no_content_and_no_size() -> None:
    assert tool_value(None) == (None, [], None, False, 0)
