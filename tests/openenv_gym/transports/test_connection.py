"""The state machine of a connection; what drives it is tested in ``test_blocking*`` and ``test_aio``."""

import pytest

from openenv_gym.errors import MessageTooLargeError, SessionLostError, SessionStateError
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.turns import Turn


def test_a_call_yields_its_waits_and_finds_its_message(echoing):
    assert list(echoing.sending(b"hello", True)) == []
    for left in echoing.receiving(5.0):
        assert 0 < left <= 5.0
        assert echoing.wait(left)
    assert echoing.message().payload == b"hello"


def test_nothing_is_written_or_ready_between_calls(echoing):
    assert not echoing.writing
    assert not echoing.ready
    assert not echoing.wait(0)


def test_a_turn_is_one_calls_and_a_refusal_says_why_there_is_none(echoing):
    turn = Turn()
    assert echoing.take(turn)
    assert not echoing.take(Turn())
    assert isinstance(echoing.refusal("send"), SessionStateError)
    echoing.note_loss("the test says so")
    assert isinstance(echoing.refusal("send"), SessionLostError)
    echoing.leave(turn)


def test_a_call_that_fails_ends_the_connection_only_in_its_own_turn(echoing):
    turn = Turn()
    echoing.fail(turn, "send")
    assert not echoing.closed
    assert echoing.take(turn)
    echoing.fail(turn, "send")
    assert echoing.closed
    echoing.leave(turn)
    assert list(echoing.saying_goodbye()) == []


def test_a_message_above_the_limit_is_refused_before_anything_else(serve_websocket, open_transport):
    transport = open_transport(serve_websocket(), ConnectionSettings(max_message_size_mb=10 / 2**20))
    with pytest.raises(MessageTooLargeError):
        transport.check_size(b"x" * 11)
    transport.check_size(b"x" * 10)
