"""What answers of ``/mcp`` mean, of this project's servers and of OpenEnv's own."""

import pickle

import pytest

from openenv_gym.errors import (
    CapacityError,
    EnvironmentExecutionError,
    EnvironmentFactoryError,
    ProtocolError,
    ServerError,
    SessionLostError,
    ToolCallError,
)
from openenv_gym.mcp_answers import TOOL_FAILURES, call_failure, read_answer, request_failure, result_of_call
from openenv_gym.tools import ToolErrorType

URL = "http://host/mcp"


def test_the_failures_are_those_of_a_step():
    assert {each.value for each in ToolErrorType} == TOOL_FAILURES


@pytest.mark.parametrize(
    ("payload", "answer"),
    [
        (b'{"jsonrpc":"2.0","id":3,"result":null}', (None, None)),
        (b'{"jsonrpc":"2.0","id":3,"result":{"a":1}}', ({"a": 1}, None)),
        (b'{"jsonrpc":"2.0","id":3,"result":1,"error":null}', (1, None)),
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":1}}', (None, {"code": 1})),
        (b'{"jsonrpc":"2.0","id":3,"error":{"code":1}}', (None, {"code": 1})),
    ],
)
def test_an_answer_is_a_result_or_a_failure(payload, answer):
    assert read_answer(payload, 3, URL) == answer


@pytest.mark.parametrize(
    "payload",
    [
        b'{"jsonrpc":"2.0","id":2,"result":1}',
        b'{"jsonrpc":"2.0","id":null,"result":1}',
        b'{"jsonrpc":"2.0","id":2,"error":{}}',
        b'{"jsonrpc":"2.0","id":3}',
        b'{"jsonrpc":"2.0","id":3.0,"result":1}',
        b'{"jsonrpc":"2.0","id":[],"error":{}}',
        b'{"jsonrpc":"2.0","id":{},"error":{}}',
        b'{"jsonrpc":"2.0","id":3.0,"error":{}}',
        b'{"jsonrpc":"2.0","id":3,"result":1,"error":"x"}',
        b'{"jsonrpc":"1.0","id":3,"result":1}',
        b'[{"jsonrpc":"2.0","id":3,"result":1}]',
        b"<html>",
        b"",
    ],
)
def test_anything_else_is_a_protocol_error_that_names_the_server(payload):
    with pytest.raises(ProtocolError, match=URL):
        read_answer(payload, 3, URL)


@pytest.mark.parametrize(
    ("code", "message", "data", "kind"),
    [
        # This project's servers say it.
        (-32602, "x", {"error_type": "tool_not_found"}, "tool_not_found"),
        (-32603, "x", {"error_type": "timeout"}, "timeout"),
        (-32603, "x", {"error_type": "transport_error"}, "transport_error"),
        # OpenEnv's write it.
        (-32603, "Unknown tool: 'x'", None, "tool_not_found"),
        (-32602, "Tool not found: x", None, "tool_not_found"),
        (-32603, "1 validation error for call[x]\ntext", None, "invalid_args"),
        (-32603, "Error calling tool 'x': 1 validation error for Model", None, "execution_error"),
        (-32603, "Request timed out", None, "timeout"),
        (-32603, "on purpose", {"error_type": 3}, "execution_error"),
        (-32603, "on purpose", {"error_type": []}, "execution_error"),
        (-32603, "on purpose", {"error_type": {}}, "execution_error"),
        (-32602, "Missing 'name' in params", {"error_type": "new"}, "invalid_args"),
        (-32000, "whatever", [], "transport_error"),
        ("odd", None, None, "transport_error"),
    ],
)
def test_a_call_fails_in_one_of_five_ways(code, message, data, kind):
    failure = call_failure("x", {"code": code, "message": message, "data": data})
    assert isinstance(failure, ToolCallError)
    assert (failure.error_type, failure.tool_name, failure.code) == (kind, "x", "EXECUTION_ERROR")
    assert failure.data["message"] == str(message)
    assert "x" in str(failure)
    assert pickle.loads(pickle.dumps(failure)).error_type == kind


def test_a_session_that_the_server_does_not_know_is_lost():
    gone = {"code": -32602, "message": "Unknown session_id: 7", "data": None}
    for failure in (call_failure("x", gone), request_failure("tools/list", gone, URL)):
        assert isinstance(failure, SessionLostError)
        assert failure.reason == "Unknown session_id: 7"


def test_what_a_request_fails_of_is_told():
    def failure(code, data=None):
        return request_failure("a/b", {"code": code, "message": "Said.", "data": data}, URL)

    full = failure(-32000, {"active_sessions": 1, "max_sessions": 1})
    assert isinstance(full, CapacityError)
    assert (full.active_sessions, full.max_sessions, full.code) == (1, 1, "-32000")
    broken = failure(-32000, {"factory_name": "Broken"})
    assert isinstance(broken, EnvironmentFactoryError)
    assert broken.factory_name == "Broken"
    assert type(failure(-32601)) is ServerError
    assert "to know a/b" in str(failure(-32601))
    assert isinstance(failure(-32603), EnvironmentExecutionError)
    assert type(failure(-32600)) is ServerError
    assert failure(-32600).data is None


@pytest.mark.parametrize("result", [None, 3, [1], {"data": 3, "is_error": False}, {"tool_name": "x"}])
def test_a_result_that_is_no_failure_is_given_as_it_is(result):
    assert result_of_call("x", result) == result


@pytest.mark.parametrize(
    ("result", "kind", "words"),
    [
        ({"is_error": True, "content": [{"text": "a"}, {"text": None}, 3, {"text": "b"}]}, "execution_error", "a\nb"),
        ({"isError": True}, "execution_error", "did not say why"),
        ({"tool_name": "x", "result": None, "error": {"error_type": "timeout", "message": "m"}}, "timeout", "m"),
        ({"tool_name": "x", "result": None, "error": {"error_type": "new", "message": "m"}}, "execution_error", "m"),
        ({"tool_name": "x", "result": {"is_error": True, "content": []}, "error": None}, "execution_error", "why"),
    ],
)
def test_a_failure_never_looks_like_a_result(result, kind, words):
    with pytest.raises(ToolCallError, match=words) as caught:
        result_of_call("x", result)
    assert caught.value.error_type == kind


def test_an_observation_gives_its_result():
    assert result_of_call("x", {"tool_name": "x", "result": {"data": 1}, "error": None, "done": False}) == {"data": 1}


def test_an_id_is_a_number_and_no_flag():
    with pytest.raises(ProtocolError):
        read_answer(b'{"jsonrpc":"2.0","id":true,"result":1}', 1, URL)


def test_answers_nested_without_sense_are_read():
    deep = 1
    for _ in range(3000):
        deep = {"tool_name": "x", "result": deep}
    assert result_of_call("x", deep) == 1
    failure = call_failure("x", {"code": 1, "message": deep})
    message = failure.data["message"]
    assert "nested too deeply" in message or message.startswith("{'tool_name': 'x'")
