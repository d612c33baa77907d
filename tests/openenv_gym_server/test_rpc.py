"""Tests of ``openenv_gym_server.rpc``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openenv_gym.errors import (
    CapacityError,
    EnvironmentExecutionError,
    EnvironmentFactoryError,
    InvalidActionError,
    MessageTooLargeError,
    OpenEnvGymError,
    ProtocolError,
)
from openenv_gym.jsonrpc import JsonRpcErrorCode
from openenv_gym_server.errors import SessionNotFoundError
from openenv_gym_server.rpc import MAX_BATCH, Call, Refusal, answer_to_error, encoded, failure, parse, success


def test_a_request_is_read_with_its_params_and_its_id() -> None:
    text = '{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"look"}}'
    assert parse(text) == Call("tools/call", {"name": "look"}, "a")
    assert parse(text.encode()) == Call("tools/call", {"name": "look"}, "a")


def test_params_may_be_left_out() -> None:
    assert parse('{"jsonrpc":"2.0","id":1,"method":"tools/list"}') == Call("tools/list", {}, 1)


def test_only_a_request_without_id_is_a_notification() -> None:
    assert parse('{"jsonrpc":"2.0","method":"x"}') == Call("x", {}, None, notification=True)
    assert parse('{"jsonrpc":"2.0","id":null,"method":"x"}') == Call("x", {}, None)


@pytest.mark.parametrize("text", ["", "{", "nonsense", "NaN", '"text"', "5", "null", "[" * 100_000, b"\xff"])
def test_what_is_no_object_is_a_parse_error(text: str | bytes) -> None:
    assert error_of(parse(text))["code"] == -32700


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"jsonrpc": "1.0"}, "jsonrpc"),
        ({"jsonrpc": None}, "jsonrpc"),
        ({"method": 5}, "method"),
        ({"params": None}, "params"),
        ({"params": [1]}, "params"),
        ({"id": True}, "id"),
        ({"id": 1.5}, "id"),
        ({"id": []}, "id"),
        ({"more": 1, "z": 2}, "more"),
    ],
)
def test_a_faulty_envelope_is_an_invalid_request_whose_answer_has_no_id(change: dict[str, Any], named: str) -> None:
    refused = parse(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"} | change))
    assert error_of(refused)["code"] == -32600
    assert error_of(refused)["message"].startswith(f"Invalid request: {named}: ")
    assert isinstance(refused, Refusal)
    assert refused.answer["id"] is None


def test_a_batch_is_read_one_by_one() -> None:
    read = parse('[{"jsonrpc":"2.0","id":1,"method":"a"},5,{"jsonrpc":"2.0","method":"b"}]')
    assert isinstance(read, list)
    assert read[0] == Call("a", {}, 1)
    assert error_of(read[1])["code"] == -32600
    assert read[2] == Call("b", {}, None, notification=True)


@pytest.mark.parametrize("size", [0, MAX_BATCH + 1])
def test_an_empty_and_an_endless_batch_are_refused_whole(size: int) -> None:
    refused = error_of(parse(json.dumps([1] * size)))
    assert refused["code"] == -32600
    assert str(MAX_BATCH) in refused["message"]


def test_an_answer_has_either_a_result_or_an_error() -> None:
    assert success(3, {"tools": []}) == {"jsonrpc": "2.0", "id": 3, "result": {"tools": []}}
    from_failure = failure("a", JsonRpcErrorCode.INTERNAL_ERROR, "x")
    assert from_failure == {"jsonrpc": "2.0", "id": "a", "error": {"code": -32603, "message": "x", "data": None}}


@pytest.mark.parametrize(
    ("error", "code", "data"),
    [
        (CapacityError("full", active_sessions=2, max_sessions=2), -32000, {"active_sessions": 2, "max_sessions": 2}),
        (EnvironmentFactoryError("broken", factory_name="Rooms"), -32000, {"factory_name": "Rooms"}),
        (MessageTooLargeError("large", size=9, limit=5), -32600, {"size": 9, "limit": 5}),
        (ProtocolError("still initializing"), -32600, None),
        (InvalidActionError("bad"), -32602, None),
        (SessionNotFoundError("Unknown session_id: x", session_id="x"), -32602, None),
        (EnvironmentExecutionError("it broke"), -32603, None),
    ],
)
def test_every_error_has_its_code(error: OpenEnvGymError, code: int, data: Any) -> None:
    answer = answer_to_error(7, error)
    assert answer == {"jsonrpc": "2.0", "id": 7, "error": {"code": code, "message": str(error), "data": data}}


def error_of(read: Call | Refusal | list[Call | Refusal]) -> dict[str, Any]:
    assert isinstance(read, Refusal)
    error = read.answer["error"]
    assert isinstance(error, dict)
    return error


def test_an_answer_without_json_is_a_failure_of_the_same_call_also_within_a_message() -> None:
    answer = success("a", {"data": float("nan")})
    for text, found in (
        (encoded(answer), lambda document: document),
        (encoded(answer, lambda each: {"data": each}), lambda document: document["data"]),
    ):
        failed = found(json.loads(text))
        assert (failed["id"], failed["error"]["code"]) == ("a", -32603)
        assert "result.data" in failed["error"]["message"]
