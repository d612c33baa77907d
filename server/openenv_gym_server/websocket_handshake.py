"""The opening handshake of a WebSocket as ASGI has it: the scope of a request, and answers that are no WebSocket.

Not for the request's own validity, which ``websockets`` judges, nor for the connection (``websocket_protocol.py``).
"""

from __future__ import annotations

import asyncio
import email.utils
import http
from collections.abc import Iterable
from typing import Any, TypeAlias
from urllib.parse import unquote

import uvicorn
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

__all__ = ["HeaderFields", "response", "scope_of"]

HeaderFields: TypeAlias = "Iterable[tuple[bytes, bytes]]"
"""Names and values, as ASGI has them."""

_PHRASES = {status.value: status.phrase for status in http.HTTPStatus}


def scope_of(
    request: Request, config: uvicorn.Config, transport: asyncio.Transport, app_state: dict[str, Any]
) -> dict[str, Any]:
    """The scope that an application is called with, as uvicorn's own protocols make it.

    Args:
        request: what the client sent.
        config: of the server; its ``root_path`` stands before the path.
        transport: the connection, which knows both addresses.
        app_state: what the application's lifespan has left.
    """
    path, _, query = request.path.partition("?")
    root = config.root_path
    offered = ",".join(request.headers.get_all("Sec-WebSocket-Protocol"))
    return {
        "type": "websocket",
        "asgi": {"version": config.asgi_version, "spec_version": "2.4"},
        "http_version": "1.1",
        "scheme": "wss" if is_ssl(transport) else "ws",
        "server": get_local_addr(transport),
        "client": get_remote_addr(transport),
        "root_path": root,
        "path": root + unquote(path),
        "raw_path": (root + path).encode("ascii"),
        "query_string": query.encode("ascii"),
        # Bytes that are not ASCII are kept as they are by every release of websockets, each in its own way.
        "headers": [
            (name.lower().encode("ascii"), value.encode("latin-1", "surrogateescape"))
            for name, value in request.headers.raw_items()
        ],
        "subprotocols": [name.strip() for name in offered.split(",") if name.strip()],
        "state": app_state.copy(),
        "extensions": {"websocket.http.response": {}},
    }


def response(status: int, headers: HeaderFields = (), body: bytes = b"") -> bytes:
    r"""An HTTP response that ends the connection.

    Example:
        >>> response(403).split(b"\r\n")[0]
        b'HTTP/1.1 403 Forbidden'
    """
    fields = Headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
    fields.setdefault("Date", email.utils.formatdate(usegmt=True))
    fields.setdefault("Connection", "close")
    fields.setdefault("Content-Length", str(len(body)))
    fields.setdefault("Content-Type", "text/plain; charset=utf-8")
    return Response(int(status), _PHRASES.get(int(status), ""), fields, body).serialize()
