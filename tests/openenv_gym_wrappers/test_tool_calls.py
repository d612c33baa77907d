"""Calls as text, answers as text and by their parts, failures."""

import pytest

from openenv_gym.errors import ValueMappingError
from openenv_gym_wrappers.tool_calls import (
    ToolCall,
    answer_parts,
    answer_text,
    call_fields,
    call_text,
    read_call,
    tool_error,
)

NORTH = ToolCall("look", {"direction": "north"})


def answer(data=None, *, error=None, content=None, **more):
    result = {"content": content or [], "structured_content": None, "meta": None, "data": data, "is_error": False}
    return {"tool_name": "look", "result": None if error else {**result, **more}, "error": error}


def test_a_call_survives_its_text():
    assert read_call(call_text(NORTH)) == NORTH
    assert call_fields(NORTH) == {"type": "call_tool", "tool_name": "look", "arguments": {"direction": "north"}}


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "look", "arguments": {"direction": "north"}}',
        '{"tool_name": "look", "arguments": {"direction": "north"}, "type": "call_tool"}',
        '{"name": "look", "arguments": "{\\"direction\\": \\"north\\"}"}',
    ],
)
def test_a_call_may_be_written_as_several_make_it(text):
    assert read_call(text) == NORTH


def test_a_call_without_arguments_has_none():
    assert read_call('{"name": "wait"}') == ToolCall("wait", {})
    assert read_call('{"name": "wait", "arguments": null}') == ToolCall("wait", {})


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("look north", "$"),
        ("[]", "$"),
        (b"{}", "$"),
        ("{}", "$.name"),
        ('{"name": 3}', "$.name"),
        ('{"name": "look", "arguments": [1]}', "$.arguments"),
        ('{"name": "look", "arguments": "north"}', "$.arguments"),
    ],
)
def test_a_text_that_is_no_call_says_where_and_how_one_is_written(text, path):
    with pytest.raises(ValueMappingError, match="is written") as caught:
        read_call(text)
    assert caught.value.path == path


def test_a_success_has_no_error():
    assert tool_error(answer("a door")) is None
    assert tool_error({"echoed_message": "ready"}) is None


@pytest.mark.parametrize("kind", ["execution_error", "invalid_args", "transport_error", "tool_not_found", "timeout"])
def test_each_failure_is_told_by_its_type(kind):
    failed = answer(error={"error_type": kind, "message": "no"})
    assert tool_error(failed) == {"error_type": kind, "message": "no"}
    assert answer_text(failed) == "no"
    assert answer_parts(failed) == {"tool_name": "look", "text": "no", "data": "null", "error_type": kind}


@pytest.mark.parametrize("flag", ["is_error", "isError"])
def test_a_result_that_calls_itself_an_error_is_one(flag):
    failed = answer(content=[{"type": "text", "text": "it fell"}], **{"is_error": False, flag: True})
    assert tool_error(failed) == {"error_type": "execution_error", "message": "it fell"}


def test_an_error_without_words_still_is_one():
    assert tool_error(answer(error={"error": 1})) == {"error_type": "execution_error", "message": ""}


@pytest.mark.parametrize(
    ("data", "content", "text", "json"),
    [
        ("a door", None, "a door", '"a door"'),
        (None, None, "", "null"),
        ({"doors": 2}, None, '{"doors":2}', '{"doors":2}'),
        (3, [{"type": "text", "text": "three"}, {"type": "text", "text": "doors"}], "three\ndoors", "3"),
        (None, [{"type": "image", "mimeType": "image/png", "data": "…"}], "[image/png]", "null"),
        (None, ["odd"], "[something]", "null"),
    ],
)
def test_an_answer_is_what_an_agent_reads(data, content, text, json):
    fields = answer(data, content=content)
    assert answer_text(fields) == text
    assert answer_parts(fields) == {"tool_name": "look", "text": text, "data": json, "error_type": ""}


def test_a_result_of_another_make_is_its_own_value():
    fields = {"tool_name": "look", "result": ["a", "door"], "error": None}
    assert answer_text(fields) == '["a","door"]'
    assert answer_parts(fields)["data"] == '["a","door"]'


def test_structured_content_stands_in_for_data():
    assert answer_parts(answer(structured_content={"result": 3}))["data"] == '{"result":3}'


def test_a_first_observation_is_its_one_text_or_its_json():
    assert answer_text({"echoed_message": "ready", "metadata": {"a": 1}, "reward": 0.0}) == "ready"
    assert answer_text({"room": "hall", "doors": 2}) == '{"room":"hall","doors":2}'
    assert answer_text({"metadata": {"message": "ready"}}) == '{"metadata":{"message":"ready"}}'
    parts = {"tool_name": "", "text": "ready", "data": '{"said":"ready"}', "error_type": ""}
    assert answer_parts({"said": "ready"}) == parts
