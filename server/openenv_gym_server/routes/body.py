"""Reading the body of an HTTP request: within the limit, as JSON, as its model wants it.

Routes read their bodies themselves, so that the limit holds while a body comes in, whatever its headers say. Not for
what a body means (the routes) nor for frames (``dispatch.py``).
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from openenv_gym.errors import MessageTooLargeError, ProtocolError
from openenv_gym.json_text import JSON, decode_json
from openenv_gym_server.errors import fault, invalid_action, invalid_message

__all__ = ["checked", "decoded", "documented", "received"]

ModelT = TypeVar("ModelT", bound=BaseModel)


async def received(request: Request, limit: int) -> bytes:
    """A body, received within the limit.

    Raises:
        MessageTooLargeError: it is above the limit.
        ClientDisconnect: it did not come to its end.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise MessageTooLargeError(
                f"expected a body of at most {limit} bytes; the server's setting is max_message_size_mb "
                "(--max-message-size-mb)",
                size=len(body),
                limit=limit,
                setting="max_message_size_mb",
            )
    return bytes(body)


def decoded(body: bytes, *, required: bool = True) -> JSON:
    """The JSON of a body; None where there is none and need not be one.

    Raises:
        InvalidActionError: it is not JSON.
    """
    if not body:
        if required:
            raise invalid_message(fault("missing", ["body"], "Field required", None))
        return None
    try:
        return decode_json(body)
    except ProtocolError as error:
        place = re.search(r"\(byte (\d+)\)", str(error))
        entry = fault("json_invalid", ["body", int(place[1]) if place else 0], "JSON decode error", {})
        raise invalid_message(entry | {"ctx": {"error": str(error)}}) from error


def checked(model: type[ModelT], data: JSON) -> ModelT:
    """The model of a body.

    Raises:
        InvalidActionError: each fault's path begins with ``body``.
    """
    if not isinstance(data, dict):
        # Of pydantic's kinds this is the one that the reference answers with.
        message = "Input should be a valid dictionary or object to extract fields from"
        raise invalid_message(fault("model_attributes_type", ["body"], message, data))
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise invalid_action(error, ("body",)) from error


def documented(model: type[BaseModel], answer: Any, *, required: bool = True) -> dict[str, Any]:
    """What OpenAPI says of a route that reads its body itself: keywords of the route's decorator.

    Args:
        model: the body.
        answer: the type of the answer with status 200.
        required: whether there must be a body.
    """
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {
        "responses": {200: {"model": answer}},
        "openapi_extra": {"requestBody": {"content": content, "required": required}},
    }
