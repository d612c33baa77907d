"""JSON-RPC 2.0 as OpenEnv speaks it: the frames inside ``mcp`` messages. Importing this module loads pydantic.

Not for OpenEnv's own messages (``messages.py``). Source: the JSON-RPC 2.0 specification, and ``openenv`` 0.10.0 for the
names.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_serializer

__all__ = ["JsonRpcError", "JsonRpcErrorCode", "JsonRpcRequest", "JsonRpcResponse", "McpMethod"]


class JsonRpcErrorCode(IntEnum):
    """Codes of errors; all but the last are the specification's own."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    SERVER_ERROR = -32000


_MESSAGES = {
    JsonRpcErrorCode.PARSE_ERROR: "Parse error",
    JsonRpcErrorCode.INVALID_REQUEST: "Invalid Request",
    JsonRpcErrorCode.METHOD_NOT_FOUND: "Method not found",
    JsonRpcErrorCode.INVALID_PARAMS: "Invalid params",
    JsonRpcErrorCode.INTERNAL_ERROR: "Internal error",
    JsonRpcErrorCode.SERVER_ERROR: "Server error",
}
"""The specification's own words, letter case included."""


class McpMethod(StrEnum):
    """Methods for tools."""

    TOOLS_LIST = "tools/list"
    TOOLS_CALL = "tools/call"


class JsonRpcError(BaseModel):
    """What went wrong with a request.

    Example:
        >>> JsonRpcError.from_code(JsonRpcErrorCode.PARSE_ERROR).message
        'Parse error'
    """

    model_config = ConfigDict(extra="forbid")

    code: int = Field(description="Which error it is")
    message: str = Field(description="The error in a sentence")
    data: Any = Field(default=None, description="Whatever else there is to say")

    @classmethod
    def from_code(cls, code: JsonRpcErrorCode, message: str | None = None, data: Any = None) -> JsonRpcError:
        """The error with that code; without a message, with the specification's words for the code."""
        return cls(code=int(code), message=message or _MESSAGES[code], data=data)


class JsonRpcRequest(BaseModel):
    """A call of a method by name; without ``id`` nobody waits for an answer."""

    model_config = ConfigDict(extra="forbid")

    jsonrpc: Literal["2.0"] = Field(description="Version of the protocol")
    method: str = Field(description="Name of the method")
    params: dict[str, Any] = Field(default_factory=dict, description="Its arguments by name")
    id: str | int | None = Field(default=None, description="What the answer repeats")


class JsonRpcResponse(BaseModel):
    """The answer to a request: as JSON it has ``result`` or ``error``, never both.

    Example:
        >>> JsonRpcResponse.success({"tools": []}, request_id=1).model_dump()
        {'jsonrpc': '2.0', 'id': 1, 'result': {'tools': []}}
    """

    model_config = ConfigDict(extra="forbid")

    jsonrpc: Literal["2.0"] = Field(default="2.0", description="Version of the protocol")
    result: Any = Field(default=None, description="What the method gave")
    error: JsonRpcError | None = Field(default=None, description="Why it gave nothing")
    id: str | int | None = Field(default=None, description="The request's own")

    @classmethod
    def success(cls, result: Any, request_id: str | int | None = None) -> JsonRpcResponse:
        """The answer with a result."""
        return cls(result=result, id=request_id)

    @classmethod
    def error_response(
        cls,
        code: JsonRpcErrorCode,
        message: str | None = None,
        data: Any = None,
        request_id: str | int | None = None,
    ) -> JsonRpcResponse:
        """The answer with an error."""
        return cls(error=JsonRpcError.from_code(code, message, data), id=request_id)

    @model_serializer
    def _one_of_two(self) -> dict[str, Any]:
        outcome = {"result": self.result} if self.error is None else {"error": self.error.model_dump()}
        return {"jsonrpc": self.jsonrpc, "id": self.id, **outcome}
