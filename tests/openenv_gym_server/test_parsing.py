"""Tests of ``openenv_gym_server.parsing``; text that is wrong is tested with its answers in ``test_dispatch.py``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openenv_gym import frames
from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError, MessageTooLargeError
from openenv_gym.frames import Kind, Packed
from openenv_gym.messages import REQUEST_TYPES, Close, Mcp, Step, VectorStep
from openenv_gym_server.parsing import Terms, exact_list, malformed, parse, read, tag_of, unpack, value_data

OURS = Terms(extended=True)
STEP = frames.write_frame(Kind.STEP, 5, 2, [1, 0], [b"ab"])


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview])
def test_a_binary_request_is_read_whatever_holds_its_bytes(form: Any) -> None:
    packed = read(form(STEP), OURS)
    assert isinstance(packed, Packed)
    assert (packed.kind, packed.id, packed.count, bytes(packed.body)) == (Kind.STEP, 5, 2, b"ab")
    assert tag_of(packed) == "a binary step"


@pytest.mark.parametrize("terms", [Terms(), Terms(extended=True, production=True)])
def test_binary_frames_are_none_where_the_subprotocol_or_control_is_not(terms: Terms) -> None:
    refused = json.loads(str(read(STEP, terms)))["data"]
    assert refused["code"] == "VALIDATION_ERROR"
    assert "binary frame" in refused["message"]


@pytest.mark.parametrize(
    "payload",
    [b"", b"\1" * 15, b"\2" + STEP[1:], b"\1\7" + STEP[2:], STEP[:20], b"\1\2\xff\xff" + STEP[4:]],
    ids=["empty", "short", "another version", "another kind", "ids cut off", "unknown flags"],
)
def test_a_binary_frame_that_is_none_is_refused(payload: bytes) -> None:
    with pytest.raises(InvalidActionError) as caught:
        unpack(payload, OURS)
    assert caught.value.errors is not None
    assert caught.value.errors[0]["type"] == "binary_frame"


def test_an_outcome_is_no_request() -> None:
    with pytest.raises(InvalidActionError, match="outcome"):
        unpack(frames.write_outcome(1, 1, None, observations=[b""]), OURS)


def test_a_binary_frame_above_the_limit_is_refused_by_size() -> None:
    with pytest.raises(MessageTooLargeError) as caught:
        unpack(STEP, Terms(extended=True, max_message_bytes=len(STEP) - 1))
    assert (caught.value.size, caught.value.limit) == (len(STEP), len(STEP) - 1)
    assert isinstance(unpack(STEP, Terms(extended=True, max_message_bytes=len(STEP))), Packed)


def test_a_text_request_is_read_and_named() -> None:
    request = parse('{"type":"x-vector_step","id":1,"data":{"actions":[{"action":1}],"env_ids":[2]}}', OURS)
    assert isinstance(request, VectorStep)
    assert request.data.env_ids == [2]
    assert tag_of(request) == "x-vector_step"
    assert tag_of(Step(data={})) == "step"


def test_values_in_the_exact_form_are_read_each_at_its_place() -> None:
    assert exact_list([1, {"$": "tuple", "items": [2]}], "data", "values") == [1, (2,)]
    with pytest.raises(InvalidActionError) as caught:
        exact_list([1, {"$": "no such"}], "data", "values")
    assert caught.value.errors is not None
    assert caught.value.errors[0]["loc"] == ["data", "values", 1]


def test_a_value_without_an_exact_form_is_the_environments_failure() -> None:
    assert value_data("result", (1,)).value == {"$": "tuple", "items": [1]}
    with pytest.raises(EnvironmentExecutionError, match="result"):
        value_data("result", object())


def test_what_is_wrong_with_a_binary_frame_has_its_place() -> None:
    error = malformed(["data", 1], "it is odd")
    assert error.errors is not None
    assert (error.errors[0]["loc"], error.errors[0]["msg"]) == (["data", 1], "it is odd")


@pytest.mark.parametrize("kind", [each for each in REQUEST_TYPES.values() if each not in {Mcp, Close}])
def test_production_takes_calls_of_tools_and_a_goodbye_and_nothing_else_that_there_is(kind: type[Any]) -> None:
    terms = Terms(extended=True, production=True)
    tag = kind.__struct_config__.tag
    for text in (f'{{"type":"{tag}"}}', f'{{"type":"{tag}","data":{{}}}}', f'{{"type":"{tag}","data":5,"id":1}}'):
        with pytest.raises(InvalidActionError, match="production mode"):
            parse(text, terms)
    assert type(parse('{"type":"close"}', terms)) is Close
    assert type(parse('{"type":"mcp","data":{}}', terms)) is Mcp
