"""Tests of ``openenv_gym.tool_wire``."""

from __future__ import annotations

import math
from typing import Any

import jsonschema
import pytest
from mcp import McpError, types

from openenv_gym.tool_wire import ERROR_TYPE, failed_call, mcp_result, mcp_tool, refuse
from openenv_gym.tools import DescribedTool, Tool, ToolError

REWARD = {"reward": 1.5, "terminated": True, "truncated": False}


def described(**more: Any) -> DescribedTool:
    return DescribedTool(name="look", description="Look around.", input_schema={}, **more)


def test_a_tool_is_told_with_all_that_is_known_of_it() -> None:
    own = {"type": "object", "properties": {"doors": {"type": "integer"}}}
    tool = described(title="Look", output_schema=own, annotations={"readOnlyHint": True}, meta={"kind": "eyes"})
    told = mcp_tool(tool, rewarded=False).model_dump(by_alias=True, exclude_none=True)
    assert told == {
        "name": "look",
        "title": "Look",
        "description": "Look around.",
        "inputSchema": {"type": "object"},
        "outputSchema": own,
        "annotations": {"readOnlyHint": True},
        "_meta": {"kind": "eyes"},
    }


def test_a_plain_tool_has_no_output_schema_in_production_and_the_rewards_in_simulation() -> None:
    tool = Tool(name="look", description="", input_schema={"properties": {}})
    assert mcp_tool(tool, rewarded=False).outputSchema is None
    schema = mcp_tool(tool, rewarded=True).outputSchema
    jsonschema.validate({"result": "anything", **REWARD}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"result": "anything"}, schema)


@pytest.mark.parametrize(
    ("own", "good", "bad"),
    [
        (
            {"type": "object", "properties": {"result": {"type": "integer"}}, "x-fastmcp-wrap-result": True},
            {"result": 5},
            {"result": "five"},
        ),
        # Without the note, the value is itself an object with a "result".
        (
            {"type": "object", "properties": {"result": {"type": "integer"}}},
            {"result": {"result": 5}},
            {"result": {"result": "five"}},
        ),
        (
            {"$defs": {"door": {"type": "string"}}, "additionalProperties": {"$ref": "#/$defs/door"}},
            {"result": {"north": "open"}},
            {"result": {"north": 1}},
        ),
    ],
)
def test_a_rewarded_tools_schema_holds_the_value_to_the_tools_own(own: Any, good: Any, bad: Any) -> None:
    schema = mcp_tool(described(output_schema=own), rewarded=True).outputSchema
    jsonschema.validate({**good, **REWARD}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**bad, **REWARD}, schema)


@pytest.mark.parametrize(
    "own",
    [
        {"properties": {"next": {"$ref": "#"}}},
        {"anyOf": [{"$ref": "#/properties/next"}]},
        {"properties": {"result": True}, "x-fastmcp-wrap-result": True},
    ],
)
def test_a_schema_that_cannot_be_moved_is_left_out(own: Any) -> None:
    schema = mcp_tool(described(output_schema=own), rewarded=True).outputSchema
    jsonschema.validate({"result": 1, **REWARD}, schema)


def result_of(value: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": str(value), "annotations": None, "meta": None}]
    return {"content": content, "structured_content": {"result": value}, "meta": None, "data": value, "is_error": False}


def test_a_result_has_the_reward_beside_the_value_in_simulation_alone() -> None:
    given = mcp_result(result_of(3), None, REWARD)
    assert given.structuredContent == {"result": 3, **REWARD}
    assert given.meta == {"fastmcp": {"wrap_result": True}}
    assert "1.5" not in given.content[0].text
    assert mcp_result(result_of(3), None, None).structuredContent == {"result": 3}
    assert mcp_result(None, None, None).content == []


@pytest.mark.parametrize(
    ("reward", "told"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity"), (2.0, 2.0)]
)
def test_a_reward_that_json_cannot_say_is_a_string(reward: float, told: object) -> None:
    given = mcp_result(result_of(3), None, {**REWARD, "reward": reward})
    assert given.structuredContent["reward"] == told
    jsonschema.validate(given.structuredContent, mcp_tool(described(), rewarded=True).outputSchema)


def test_blocks_are_in_the_protocols_spelling_and_unknown_ones_are_text() -> None:
    image = {"type": "image", "data": "aGk=", "mime_type": "image/png", "annotations": None, "meta": {"a": 1}}
    given = mcp_result({"content": [image, {"type": "smell", "of": "roses"}, "bare"]}, None, None)
    assert given.content[0] == types.ImageContent(type="image", data="aGk=", mimeType="image/png", _meta={"a": 1})
    assert [each.text for each in given.content[1:]] == ['{"type":"smell","of":"roses"}', '"bare"']


def test_a_result_that_says_so_is_a_failed_one() -> None:
    assert mcp_result({"content": [], "is_error": True}, None, None).isError is True


@pytest.mark.parametrize("kind", ["execution_error", "invalid_args", "transport_error", "timeout"])
def test_a_failure_is_a_result_to_read_with_its_kind(kind: str) -> None:
    error = ToolError(error_type=kind, message="the door is stuck")
    given = mcp_result(None, error, REWARD)
    assert (given.isError, given.content[0].text) == (True, "the door is stuck")
    assert given.meta == {ERROR_TYPE: kind}
    assert given.structuredContent == {
        "result": None,
        "error": {"error_type": kind, "message": "the door is stuck"},
        **REWARD,
    }
    assert failed_call(error, None).structuredContent is None


def test_an_unknown_tool_is_an_error_of_the_protocol() -> None:
    with pytest.raises(McpError, match="no such door") as caught:
        mcp_result(None, ToolError(error_type="tool_not_found", message="no such door"), None)
    assert caught.value.error.code == -32602


def test_a_refusal_has_code_message_and_data() -> None:
    with pytest.raises(McpError) as caught:
        refuse(-32000, "full", {"max_sessions": 1})
    assert caught.value.error == types.ErrorData(code=-32000, message="full", data={"max_sessions": 1})
