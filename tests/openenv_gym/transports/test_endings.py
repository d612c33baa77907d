"""Every ending of a session says what happened and what to do."""

from __future__ import annotations

import errno
from typing import cast

import pytest
from websockets.client import ClientProtocol
from websockets.exceptions import PayloadTooBig
from websockets.exceptions import ProtocolError as WebSocketProtocolError
from websockets.frames import Close
from websockets.uri import parse_uri

from openenv_gym.errors import MessageTooLargeError, OpenEnvGymError, ProtocolError, SessionLostError
from openenv_gym.transports.endings import (
    busy,
    closed_by_server,
    foreign_failure,
    lost,
    peer_ended,
    timed_out,
    too_large,
)


def ended(protocol: object, error: OSError | None = None) -> OpenEnvGymError:
    return peer_ended(cast("ClientProtocol", protocol), error, limit=1000, unfinished=10, sent=5)


@pytest.fixture
def protocol() -> ClientProtocol:
    return ClientProtocol(parse_uri("ws://host/ws"))


def test_a_cut_says_what_the_network_said(protocol: ClientProtocol) -> None:
    protocol.parser_exc = EOFError()
    assert "the server ended it" in str(ended(protocol))
    assert "Connection reset" in str(ended(protocol, OSError(errno.ECONNRESET, "Connection reset by peer")))


def test_a_message_above_the_limit_counts_what_came_before(protocol: ClientProtocol) -> None:
    protocol.parser_exc = PayloadTooBig(2000, 990)
    failure = ended(protocol)
    assert isinstance(failure, MessageTooLargeError)
    assert (failure.size, failure.limit) == (2010, 1000)


def test_a_message_of_unknown_size_is_too_large_all_the_same(protocol: ClientProtocol) -> None:
    protocol.parser_exc = PayloadTooBig(None, 990)
    assert isinstance(ended(protocol), MessageTooLargeError)


def test_a_fault_of_the_peer_is_a_protocol_error(protocol: ClientProtocol) -> None:
    protocol.parser_exc = ValueError("reserved bits must be 0")
    failure = ended(protocol)
    assert isinstance(failure, ProtocolError)
    assert failure.received == "reserved bits must be 0"


@pytest.mark.parametrize("failure", [RuntimeError("x"), MemoryError(), TimeoutError(), EOFError()])
def test_what_the_parser_caught_without_its_being_the_peers_is_foreign(
    protocol: ClientProtocol, failure: Exception
) -> None:
    protocol.parser_exc = failure
    assert foreign_failure(protocol) is failure


@pytest.mark.parametrize(
    "failure", [None, WebSocketProtocolError("x"), PayloadTooBig(2, 1), UnicodeDecodeError("utf-8", b"", 0, 1, "x")]
)
def test_a_fault_of_the_peer_is_not_foreign(protocol: ClientProtocol, failure: Exception | None) -> None:
    protocol.parser_exc = failure
    assert foreign_failure(protocol) is None


def test_the_end_of_the_stream_is_not_foreign(protocol: ClientProtocol) -> None:
    protocol.parser_exc = EOFError()
    protocol.reader.feed_eof()
    assert foreign_failure(protocol) is None


def test_a_close_frame_outranks_what_the_network_said(protocol: ClientProtocol) -> None:
    protocol.close_rcvd = Close(4000, "enough")
    failure = ended(protocol, OSError("broken"))
    assert isinstance(failure, SessionLostError)
    assert failure.reason == "the server closed the connection with code 4000: enough"


def test_code_1009_is_a_matter_of_size() -> None:
    failure = closed_by_server(1009, "frame exceeds limit", sent=5)
    assert isinstance(failure, MessageTooLargeError)
    assert "frame exceeds limit" in str(failure)
    assert failure.size == 5


def test_every_ending_says_what_to_do() -> None:
    assert "reset()" in str(lost("gone"))
    assert "step_timeout_s" in str(timed_out(3.0))
    assert "max_message_size_mb" in str(too_large(2, 1, "outgoing"))
    assert "lock" in str(busy("send"))
