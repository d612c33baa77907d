"""Lines on standard streams: what reaches the server, and what is answered instead."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import pytest
from mcp import types
from mcp.shared.message import SessionMessage

from openenv_gym.cli.standard_streams import read_line, standard_streams


def call(arguments: bytes, request_id: bytes = b"7") -> bytes:
    return b'{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"x","arguments":%s}}\n' % (
        request_id,
        arguments,
    )


def refusal(line: bytes) -> tuple[int, Any]:
    answer = read_line(line)
    assert isinstance(answer, dict)
    assert answer["jsonrpc"] == "2.0"
    assert isinstance(answer["error"], dict)
    return answer["error"]["code"], answer["id"]


@pytest.mark.parametrize(
    "arguments",
    [
        b'{"price":[1,NaN]}',
        b'{"price":1e999}',
        b'{"price":-Infinity}',
        b'{"s":"a\xffb"}',
        b'{"s":"\\ud800"}',
        b'{"n":' + b"1" * 5000 + b"}",
    ],
)
@pytest.mark.parametrize(("request_id", "told"), [(b"7", 7), (b'"a"', "a")])
def test_a_request_that_is_no_json_is_refused_under_its_id(arguments: bytes, request_id: bytes, told: Any) -> None:
    assert refusal(call(arguments, request_id)) == (types.PARSE_ERROR, told)


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense\n",
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}',
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
        b'{"jsonrpc":"2.0","id":' + b"1" * 5000 + b',"method":"ping"}',
        b'{"jsonrpc":"2.0","id":7,"result":NaN}',
        b'{"jsonrpc":"2.0","id":true,"method":"ping","params":NaN}',
    ],
)
def test_what_is_no_json_and_tells_no_id_is_refused_under_none(line: bytes) -> None:
    assert refusal(line) == (types.PARSE_ERROR, None)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"null", None),
        (b"[]", None),
        (call(b"{}", b"1.5"), None),
        (call(b"{}", b"null"), None),
        (call(b"{}", b"true"), None),
        (call(b"{}", b"[]"), None),
        (b'{"id":7,"method":"ping"}', 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}', 7),
        (b'{"jsonrpc":"2.0","id":7,"method":3}', None),
    ],
)
def test_json_that_is_no_message_is_refused_under_its_id(line: bytes, told: Any) -> None:
    assert refusal(line) == (types.INVALID_REQUEST, told)


@pytest.mark.parametrize("line", [b"\n", b" \r\n"])
def test_a_blank_line_is_nothing(line: bytes) -> None:
    assert read_line(line) is None


def test_what_is_read_is_exactly_what_was_written() -> None:
    arguments = {
        "big": 2**200,
        "zero": -0.0,
        "text": "\u2028 é",
        "none": None,
        "deep": json.loads("[" * 300 + "]" * 300),
    }
    message = read_line(call(json.dumps(arguments).encode()))
    assert isinstance(message, types.JSONRPCMessage)
    assert isinstance(message.root, types.JSONRPCRequest)
    assert repr(message.root.params) == repr({"name": "x", "arguments": arguments})
    assert isinstance(read_line(b'{"jsonrpc":"2.0","method":"notifications/initialized"}'), types.JSONRPCMessage)


def test_good_lines_reach_the_server_and_every_answer_is_a_line() -> None:
    source = io.BytesIO(b"nonsense\n" + call(b"{}") + b"\n" + call(b'{"x":NaN}', b"8") + call(b"{}", b"9").strip())
    sink = io.BytesIO()

    async def main() -> list[Any]:
        async with standard_streams(source, sink) as (received, sent), sent:
            seen = []
            async with received:
                async for each in received:
                    assert isinstance(each, SessionMessage)
                    assert isinstance(each.message.root, types.JSONRPCRequest)
                    seen.append(each.message.root.id)
                    answer = types.JSONRPCResponse(jsonrpc="2.0", id=each.message.root.id, result={"a": 1})
                    await sent.send(SessionMessage(types.JSONRPCMessage(answer)))
            return seen

    assert asyncio.run(main()) == [7, 9]
    lines = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert {(line["id"], line.get("error", {}).get("code")) for line in lines} == {
        (None, types.PARSE_ERROR),
        (7, None),
        (8, types.PARSE_ERROR),
        (9, None),
    }


def test_the_end_of_the_server_is_no_failure() -> None:
    async def main() -> None:
        async with standard_streams(io.BytesIO(call(b"{}") * 3), io.BytesIO()) as (received, sent):
            await received.receive()
            received.close()
            sent.close()

    asyncio.run(main())
