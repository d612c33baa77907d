"""How an open session ends, as errors: a close of the peer, a cut, a timeout, a message above a limit.

Shared by every transport so that a session reads the same story over each. Not for a connection that never came about
(``failures``).
"""

from __future__ import annotations

from websockets.client import ClientProtocol
from websockets.exceptions import PayloadTooBig
from websockets.exceptions import ProtocolError as WebSocketProtocolError
from websockets.frames import CloseCode

from openenv_gym.errors import (
    MessageTooLargeError,
    OpenEnvGymError,
    ProtocolError,
    RequestTimeoutError,
    SessionLostError,
    SessionStateError,
)

__all__ = ["busy", "closed_by_server", "foreign_failure", "lost", "peer_ended", "timed_out", "too_large"]


def foreign_failure(protocol: ClientProtocol) -> BaseException | None:
    """What was raised in the protocol's parser without being its own: by a signal handler, or for want of memory.

    The parser keeps every exception as if it were a fault of the peer.
    """
    fault = protocol.parser_exc
    if isinstance(fault, EOFError):
        return None if protocol.reader.eof else fault
    own = fault is None or isinstance(fault, WebSocketProtocolError | PayloadTooBig | UnicodeDecodeError)
    return None if own else fault


def peer_ended(
    protocol: ClientProtocol, error: OSError | None, *, limit: int, unfinished: int, sent: int
) -> OpenEnvGymError:
    """Why the protocol is no longer open, by what it has seen.

    Args:
        protocol: the protocol, no longer open.
        error: what the socket said, if anything.
        limit: most bytes a message may have.
        unfinished: bytes received of a message that was not complete.
        sent: bytes of the last message sent.
    """
    fault = protocol.parser_exc
    if isinstance(fault, PayloadTooBig):
        size = None if fault.size is None else fault.size + unfinished
        return too_large(size, limit, "incoming")
    if protocol.close_rcvd is not None:
        return closed_by_server(int(protocol.close_rcvd.code), protocol.close_rcvd.reason, sent=sent)
    if fault is not None and not isinstance(fault, EOFError):
        return ProtocolError(f"the server does not keep to RFC 6455: {fault}", received=str(fault)[:200])
    why = f"the network said: {error.strerror or error}" if error is not None else "the server ended it"
    return lost(f"the connection was cut without a closing handshake ({why})")


def closed_by_server(code: int, text: str, *, sent: int) -> OpenEnvGymError:
    """The server's close frame."""
    said = f": {text}" if text else ""
    if code == CloseCode.MESSAGE_TOO_BIG:
        return MessageTooLargeError(
            f"the server closed the connection with code 1009 (message too big){said}. The last message sent has "
            f"{sent} bytes, above the limit of the server; raise max_message_size_mb there "
            "(a server under plain uvicorn: --ws-max-size, 16 MiB by default). The session is lost",
            size=sent,
            setting="max_message_size_mb",
        )
    shown = "without a code" if code == CloseCode.NO_STATUS_RCVD else f"with code {code}"
    return lost(f"the server closed the connection {shown}{said}")


def lost(reason: str) -> SessionLostError:
    """The session is over."""
    return SessionLostError(f"the session is lost, reset() opens another: {reason}", reason=reason)


def timed_out(timeout_s: float) -> RequestTimeoutError:
    """No whole message came, or went, in time."""
    return RequestTimeoutError(
        f"expected the server to answer within {timeout_s:g} s, it did not; the session is lost, reset() opens "
        "another. If the environment may take longer, raise step_timeout_s or reset_timeout_s, of an OpenEnv client "
        "message_timeout_s (None: no limit)",
        timeout_s=timeout_s,
    )


def too_large(size: int | None, limit: int | None, direction: str) -> MessageTooLargeError:
    """An ``outgoing`` or ``incoming`` message is above this client's limit."""
    hint = (
        "nothing was sent; raise max_message_size_mb (the server has a limit of its own)"
        if direction == "outgoing"
        else "the session is lost; raise max_message_size_mb, or have the environment send less"
    )
    return MessageTooLargeError(
        f"the {direction} message has {'too many' if size is None else size} bytes, above this client's limit "
        f"of {limit}: {hint}",
        size=size,
        limit=limit,
        setting="max_message_size_mb",
    )


def busy(call: str) -> SessionStateError:
    """A call came in the middle of another."""
    return SessionStateError(
        f"{call}() was called while another call is in flight; a session serves one call at a time, "
        "so give each thread a session of its own or hold a lock around each request",
        expected="idle",
        state="in a call",
    )
