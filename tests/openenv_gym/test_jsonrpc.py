"""Tests of ``openenv_gym.jsonrpc``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openenv.core.env_server import mcp_types as reference
from pydantic import ValidationError

from openenv_gym import jsonrpc
from openenv_gym.jsonrpc import JsonRpcErrorCode, JsonRpcRequest, JsonRpcResponse


@pytest.mark.parametrize("name", ["JsonRpcErrorCode", "McpMethod"])
def test_codes_and_methods_are_those_of_the_reference(name: str) -> None:
    assert {one.name: one.value for one in getattr(jsonrpc, name)} == {
        one.name: one.value for one in getattr(reference, name)
    }


@pytest.mark.parametrize("code", list(JsonRpcErrorCode))
@pytest.mark.parametrize("message", [None, "broken"])
def test_an_error_is_written_as_the_reference_writes_it(code: JsonRpcErrorCode, message: str | None) -> None:
    mine = JsonRpcResponse.error_response(code, message, {"a": 1}, request_id="x")
    theirs = reference.JsonRpcResponse.error_response(
        reference.JsonRpcErrorCode(code.value), message, {"a": 1}, request_id="x"
    )
    assert json.loads(mine.model_dump_json()) == json.loads(theirs.model_dump_json())


@pytest.mark.parametrize("result", [None, {"tools": []}, 0])
def test_a_result_is_written_without_an_error(result: Any) -> None:
    assert JsonRpcResponse.success(result, 7).model_dump() == {"jsonrpc": "2.0", "id": 7, "result": result}


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"jsonrpc": "1.0", "method": "a"},
        {"jsonrpc": "2.0", "method": "a", "params": [1]},
        {"jsonrpc": "2.0", "more": 1},
    ],
)
def test_a_request_that_is_none_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        JsonRpcRequest.model_validate(data)


def test_a_request_has_no_arguments_unless_it_is_given_them() -> None:
    assert JsonRpcRequest.model_validate({"jsonrpc": "2.0", "method": "tools/list"}).params == {}
