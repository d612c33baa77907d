"""Requests that are made in one call and answered in a later one, and binary requests, over the in-memory transport."""

import pytest

from openenv_gym import messages
from openenv_gym.errors import ProtocolError, RequestTimeoutError, SessionLostError, SessionStateError
from openenv_gym.frames import Kind, write_frame
from openenv_gym.json_text import encode_json
from openenv_gym.shell import Shell
from openenv_gym.transports.base import ConnectionSettings, Frame
from tests.openenv_gym.test_shell import Server, raise_interrupt, shell_on


def test_what_was_begun_is_finished_later_and_takes_no_other_request_meanwhile():
    shell = shell_on(Server())
    shell.request(messages.Reset, 1.0)
    assert not shell.in_flight
    shell.begin(messages.Step, data={})
    assert shell.in_flight
    for refused in (lambda: shell.request(messages.State, 1.0), lambda: shell.begin(messages.State)):
        with pytest.raises(SessionStateError) as caught:
            refused()
        assert caught.value.expected == "no request under way"
    assert shell.finish(1.0).data.observation == {"n": 1}
    assert not shell.in_flight
    assert shell.request(messages.State, 1.0).data == {"step_count": 1}


def test_nothing_is_finished_that_was_not_begun():
    shell = shell_on(Server())
    with pytest.raises(SessionStateError) as caught:
        shell.finish(1.0)
    assert caught.value.expected == "pending"
    assert shell.alive
    shell.abandon("enough")
    with pytest.raises(SessionLostError):
        shell.finish(1.0)


def test_an_answer_is_known_without_waiting():
    server = Server()
    shell = shell_on(server)
    shell.request(messages.Reset, 1.0)
    assert not shell.answered()
    server.end.stall()
    shell.begin(messages.Step, data={})
    assert not shell.answered()
    assert not shell.ready
    server.end.resume()
    assert shell.ready
    assert shell.answered()
    assert shell.finish(1.0).data.observation == {"n": 1}
    assert shell.fileno() == -1


def test_the_end_of_the_session_is_an_answer_too():
    server = Server()
    shell = shell_on(server)
    shell.request(messages.Reset, 1.0)
    server.end.stall()
    shell.begin(messages.Step, data={})
    server.end.cut()
    assert shell.answered()
    with pytest.raises(SessionLostError):
        shell.finish(1.0)
    assert shell.answered()
    assert not shell.alive


def test_a_connection_that_fails_while_it_is_looked_at_is_lost_and_finish_says_why(monkeypatch):
    server = Server()
    shell = shell_on(server)
    shell.request(messages.Reset, 1.0)
    shell.begin(messages.Step, data={})

    def fails(self):
        raise ProtocolError("no frame", received="7")

    monkeypatch.setattr(type(server.transport), "arrived", property(fails))
    assert shell.answered()
    with pytest.raises(SessionLostError) as caught:
        shell.finish(1.0)
    assert caught.value.reason == "no frame"


def test_a_look_in_the_middle_of_anothers_call_is_refused(monkeypatch):
    server = Server()
    shell = shell_on(server)
    shell.request(messages.Reset, 1.0)
    shell.begin(messages.Step, data={})

    def busy(self):
        raise SessionStateError("busy")

    monkeypatch.setattr(type(server.transport), "pending", property(busy))
    with pytest.raises(SessionStateError):
        shell.answered()
    assert shell.alive


@pytest.mark.parametrize("where", ["send", "receive"])
def test_an_interrupt_while_beginning_or_finishing_loses_the_session(monkeypatch, where):
    server = Server()
    shell = shell_on(server)
    shell.request(messages.Reset, 1.0)
    monkeypatch.setattr(server.transport, where, raise_interrupt)

    def begin_and_finish():
        shell.begin(messages.Step, data={})
        shell.finish(1.0)

    with pytest.raises(KeyboardInterrupt):
        begin_and_finish()
    assert not shell.alive
    shell.reopen()
    assert shell.request(messages.Reset, 1.0).data.observation == {"n": 0}


def test_a_timeout_of_what_was_begun_loses_the_session():
    server = Server()
    shell = shell_on(server)
    shell.request(messages.Reset, 1.0)
    server.end.stall()
    shell.begin(messages.Step, data={})
    with pytest.raises(RequestTimeoutError):
        shell.finish(5.0)
    assert not shell.alive


def test_binary_requests_go_as_binary_frames_and_are_answered_by_such():
    opened = {"type": "x-open", "id": 1, "data": {"session_id": "s", "schema": {}, "metadata": {}, "binary": True}}
    server = Server()
    server.answer = lambda frame, steps: (
        encode_json(opened) if frame.text else Frame(write_frame(Kind.OUTCOME, frame.payload[8], 1, None, []), False)
    )
    shell = shell_on(server)

    def build(request_id):
        return write_frame(Kind.RESET, request_id, 1, None, [])

    assert shell.request_packed(messages.Reset, 1.0, build).id == 2
    shell.begin_packed(messages.Step, build)
    assert shell.finish(1.0).packed.kind is Kind.OUTCOME
    assert [frame.text for frame in server.end.received] == [True, False, False]


def test_a_session_that_was_never_opened_is_at_its_end():
    shell = Shell("http://host", ConnectionSettings(), messages.OpenSettings(), connect=Server().connect)
    assert (shell.answered(), shell.ready, shell.fileno()) == (True, True, -1)
