"""What a server with tools owes by the Model Context Protocol, revision 2025-11-25: one line a requirement.

The tests are in ``test_standard_mcp.py``, each marked with the requirements that it is the test of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["REQUIREMENTS", "TESTED", "covers"]

F = TypeVar("F", bound=Callable[..., Any])

REQUIREMENTS = {
    # Base protocol
    "base.id": "An answer has the id of its request.",
    "base.one-of": "An answer has a result or an error, never both.",
    "base.codes": "An error has an integer code and a message.",
    "base.notification": "A notification has no answer.",
    "base.unknown-method": "A method that there is not is answered by -32601.",
    "base.malformed": "A message that is no JSON or no JSON-RPC is refused, and the server lives.",
    # Lifecycle
    "lifecycle.initialize": "initialize is answered by a version, the capabilities, and the server's name and version.",
    "lifecycle.same-version": "A version that the server speaks is answered by the same.",
    "lifecycle.other-version": "Any other is answered by the latest that the server speaks.",
    "lifecycle.first": "Before initialize no tool is listed or called.",
    "lifecycle.capabilities": "Only what was declared is offered: no prompts, no resources.",
    # Streamable HTTP
    "http.one-endpoint": "One path takes POST, GET and DELETE.",
    "http.origin": "A request whose Origin is not allowed is answered by 403.",
    "http.host": "A Host that a rebound name could have is refused on loopback.",
    "http.accepted": "A notification or an answer is accepted by 202 without a body.",
    "http.stream": "A request is answered by an event stream or a JSON object; the stream ends after the answer.",
    "http.get": "GET opens an event stream, and no answer is sent on it.",
    "http.one-stream": "Each message is sent on one stream only.",
    "http.session-id": "The session's id comes with the answer to initialize: visible ASCII, never the same twice.",
    "http.no-session": "A request without the id is answered by 400.",
    "http.terminated": "After its end, a session's id is answered by 404.",
    "http.delete": "DELETE ends the session and frees what it had.",
    "http.version-absent": "Without a version's header the server assumes one and serves.",
    "http.version-unknown": "An unknown version's header is answered by 400.",
    "http.disconnection": "A client that goes away has not cancelled its request.",
    "http.accept": "A client that does not accept both forms of answer is refused by 406.",
    # Utilities
    "ping": "ping is answered at once by an empty result, also while a tool runs.",
    "cancel.frees": "A cancelled call that waits for its turn is never made.",
    "cancel.unknown": "Cancelling what is not running is ignored.",
    "progress.token": "Progress is told of requests that asked for it, by their token, and of no others.",
    "progress.increases": "Progress increases, and ends with the answer.",
    # Tools
    "tools.capability": "A server with tools declares the capability.",
    "tools.list": "Each tool has a unique name, a description, and a schema of its arguments, an object.",
    "tools.cursor": "An unknown cursor is answered by -32602.",
    "tools.call": "A call is answered by content.",
    "tools.text": "A structured result's value is in a block of text too.",
    "tools.output-schema": "A structured result is as the tool's output schema says.",
    "tools.image": "An image is base64 with its media type.",
    "tools.annotations": "A tool's annotations are told.",
    "tools.unknown": "A call of a tool that there is not is answered by -32602.",
    "tools.malformed": "A call without a name is answered by an error of the protocol.",
    "tools.invalid": "Arguments against the schema are a failed call, which the agent can read, and not run.",
    "tools.failed": "A tool that raises is a failed call, which the agent can read.",
    "tools.timeout": "A tool that takes too long is a failed call.",
    "tools.access": "Without the operator's token nothing is served.",
    "tools.rate": "A full server says so, and serves those it has.",
    # Standard streams
    "stdio.lines": "Each message is one line; nothing else is on standard output.",
    "stdio.end": "The server ends with its input.",
}

TESTED: dict[str, list[str]] = {}


def covers(*names: str) -> Callable[[F], F]:
    """Mark a test as one of those requirements."""

    def mark(function: F) -> F:
        for name in names:
            TESTED.setdefault(name, []).append(function.__name__)
        return function

    return mark
