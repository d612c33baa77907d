"""Messages of the Model Context Protocol on standard streams, a line each, for a server of the official SDK.

The SDK's own transport makes nulls of numbers that JSON has not, and leaves what it cannot read without an answer. Here
a line reaches the server only where it is JSON as everywhere in this project (``json_text``) and a message; any other
is answered by an error, under its id where that can be told. Needs the extra ``mcp``. Not for what a message asks for
(``tool_server.py``).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import BinaryIO, TypeAlias

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from openenv_gym.errors import ProtocolError
from openenv_gym.json_text import JSON, JSONObject, decode_json, encode_json
from openenv_gym.spaces.text import is_scalar_text

__all__ = ["read_line", "standard_streams"]

Received: TypeAlias = "MemoryObjectReceiveStream[SessionMessage | Exception]"
Sent: TypeAlias = "MemoryObjectSendStream[SessionMessage]"

_LONGEST_NUMBER = 18  # digits of an id that is looked for in a line that is no JSON


@contextlib.asynccontextmanager
async def standard_streams(source: BinaryIO, sink: BinaryIO) -> AsyncIterator[tuple[Received, Sent]]:
    """What has come and what is to go, for ``Server.run``; the first ends with ``source``.

    Args:
        source: where lines come from, standard input.
        sink: where they go, standard output.
    """
    to_server, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sent, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    lines = _Lines(sink)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, source, to_server, lines)
        tasks.start_soon(_write, from_server, lines)
        yield received, sent


class _Lines:
    """Writes lines, one after another whoever they are from."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._turn = anyio.Lock()

    async def write(self, line: bytes) -> None:
        async with self._turn:
            await anyio.to_thread.run_sync(self._write, line)

    def _write(self, line: bytes) -> None:
        self._sink.write(line + b"\n")
        self._sink.flush()


async def _read(source: BinaryIO, to_server: MemoryObjectSendStream[SessionMessage | Exception], lines: _Lines) -> None:
    # Closed or broken: the server has ended first.
    with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        async with to_server:
            while line := await anyio.to_thread.run_sync(source.readline):
                message = read_line(line)
                if isinstance(message, types.JSONRPCMessage):
                    await to_server.send(SessionMessage(message))
                elif message is not None:
                    await lines.write(encode_json(message))


async def _write(from_server: MemoryObjectReceiveStream[SessionMessage], lines: _Lines) -> None:
    async with from_server:
        async for each in from_server:
            await lines.write(each.message.model_dump_json(by_alias=True, exclude_none=True).encode())


def read_line(line: bytes) -> types.JSONRPCMessage | JSONObject | None:
    """The message in a line, or the error that answers it; None where the line is blank.

    Example:
        >>> read_line(b'{"jsonrpc": "2.0", "id": 7, "method": "ping"}').root.id
        7
        >>> read_line(b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"x": NaN}}')["id"]
        7
    """
    if not line.strip():
        return None
    try:
        value = decode_json(line)
    except ProtocolError as error:
        return _refusal(_id_of(_leniently(line)), types.PARSE_ERROR, f"Parse error: {error}")
    if isinstance(value, dict) and (type(value.get("id")) in {int, str} or "id" not in value):
        try:
            return types.JSONRPCMessage.model_validate(value)
        except (ValidationError, RecursionError):
            pass
    return _refusal(
        _id_of(value),
        types.INVALID_REQUEST,
        'Invalid Request: expected one JSON-RPC 2.0 message a line, {"jsonrpc": "2.0", "id", "method", "params"}: id '
        "an integer or text, params an object",
    )


def _leniently(line: bytes) -> object:
    """What a line says that is no JSON, as nearly as can be told."""
    try:
        return json.loads(line.decode("utf-8", "replace"), parse_int=_short)
    except (ValueError, RecursionError):
        return None


def _short(digits: str) -> int | None:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else None


def _id_of(message: object) -> int | str | None:
    """The id of a request; None where it has none that an answer could repeat."""
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return None
    name = message.get("id")
    if isinstance(name, str):
        # The replacement of bytes that are no UTF-8 is no part of any id.
        return name if is_scalar_text(name) and "\ufffd" not in name else None
    return name if type(name) is int else None


def _refusal(request_id: JSON, code: int, message: str) -> JSONObject:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}
