"""The blocking shell over the in-memory transport."""

import threading

import pytest

from openenv_gym import messages
from openenv_gym.errors import (
    CapacityError,
    InvalidActionError,
    MessageTooLargeError,
    ProtocolError,
    RequestTimeoutError,
    SessionLostError,
    SessionStateError,
)
from openenv_gym.json_text import decode_json, encode_json
from openenv_gym.session import SessionState
from openenv_gym.shell import Shell
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.memory import memory_pair


class Server:
    """A scripted server: every connection gets its own counter, so that a fresh environment shows."""

    def __init__(self, *, subprotocol=messages.SUBPROTOCOL, replace=None, **limits):
        self.subprotocol = subprotocol
        self.replace = replace or {}
        self.limits = limits
        self.connections = []
        self.addresses = []

    def connect(self, base_url, settings, *, path, subprotocols):
        assert path == "/ws"
        steps = [0]
        transport, server = memory_pair(
            lambda frame: self.answer(frame, steps), subprotocol=self.subprotocol, **self.limits
        )
        self.connections.append((transport, server))
        self.addresses.append(base_url)
        return transport

    def answer(self, frame, steps):
        request = decode_json(frame.payload)
        kind = request["type"]
        if kind == "close":
            self.end.close()
            return None
        if kind in self.replace:
            answer = self.replace[kind]
            return answer() if callable(answer) else answer
        steps[0] = {"step": steps[0] + 1, "reset": 0}.get(kind, steps[0])
        data = {
            "x-open": {"session_id": "s", "schema": {"action": {}}, "metadata": {}},
            "state": {"step_count": steps[0]},
        }.get(kind, {"observation": {"n": steps[0]}, "reward": None, "done": False})
        answer = {"type": "observation" if kind in {"reset", "step"} else kind, "data": data}
        return encode_json(answer | ({"id": request["id"]} if "id" in request else {}))

    @property
    def transport(self):
        return self.connections[-1][0]

    @property
    def end(self):
        return self.connections[-1][1]


def shell_on(server, **open_settings):
    shell = Shell("http://host", ConnectionSettings(), messages.OpenSettings(**open_settings), connect=server.connect)
    shell.open()
    return shell


def error_frame(code, **facts):
    return encode_json({"type": "error", "data": {"message": "no", "code": code, **facts}})


def test_a_session_under_the_subprotocol_is_opened_with_its_settings():
    server = Server()
    shell = shell_on(server, render_mode="ansi", env_kwargs={"size": 3})
    assert decode_json(server.end.received[0].payload) == {
        "type": "x-open",
        "id": 1,
        "data": {"render_mode": "ansi", "env_kwargs": {"size": 3}},
    }
    assert shell.opened.schema == {"action": {}}
    assert shell.session.state is SessionState.OPEN


def test_a_stock_server_gets_openenv_frames_alone():
    server = Server(subprotocol=None)
    shell = shell_on(server)
    shell.request(messages.Reset, 1.0)
    assert shell.opened is None
    assert [frame.payload for frame in server.end.received] == [b'{"type":"reset"}']


def test_a_request_and_its_answer_belong_together():
    shell = shell_on(Server())
    shell.request(messages.Reset, 1.0)
    assert shell.request(messages.Step, 1.0, data={}).data.observation == {"n": 1}
    assert shell.request(messages.State, 1.0).data == {"step_count": 1}


def test_after_a_timeout_no_late_answer_is_taken_and_only_a_new_session_goes_on():
    server = Server()
    shell = shell_on(server)
    shell.request(messages.Reset, 1.0)
    server.end.stall()
    with pytest.raises(RequestTimeoutError) as caught:
        shell.request(messages.Step, 0.5, data={})
    assert caught.value.timeout_s == 0.5
    server.end.resume()
    for _ in range(2):
        with pytest.raises(SessionLostError):
            shell.request(messages.Step, 1.0, data={})
    shell.reopen()
    with pytest.raises(SessionStateError):
        shell.request(messages.Step, 1.0, data={})
    assert shell.request(messages.Reset, 1.0).data.observation == {"n": 0}
    assert len(server.connections) == 2


def test_a_dropped_connection_is_a_lost_session():
    server = Server()
    shell = shell_on(server)
    shell.request(messages.Reset, 1.0)
    server.end.cut()
    with pytest.raises(SessionLostError):
        shell.request(messages.Step, 1.0, data={})
    assert shell.session.state is SessionState.BROKEN


def test_a_new_session_may_be_at_a_new_address():
    server = Server()
    shell = shell_on(server)
    shell.reopen("http://elsewhere")
    assert server.addresses == ["http://host", "http://elsewhere"]
    assert shell.base_url == "http://elsewhere"


def test_a_message_above_the_limit_is_refused_and_the_session_goes_on():
    server = Server(max_message_bytes=300)
    shell = shell_on(server)
    shell.request(messages.Reset, 1.0)
    with pytest.raises(MessageTooLargeError) as caught:
        shell.request(messages.Step, 1.0, data={"text": "x" * 300})
    assert caught.value.setting == "max_message_size_mb"
    assert shell.request(messages.Step, 1.0, data={}).data.observation == {"n": 1}


def test_an_answer_above_the_limit_loses_the_session():
    big = encode_json({"type": "observation", "data": {"observation": {"text": "x" * 400}}})
    server = Server(replace={"step": big}, max_message_bytes=300)
    shell = shell_on(server)
    shell.request(messages.Reset, 1.0)
    with pytest.raises(MessageTooLargeError):
        shell.request(messages.Step, 1.0, data={})
    assert shell.session.state is SessionState.BROKEN


def test_a_refused_action_leaves_the_connection_open():
    server = Server(replace={"step": error_frame("VALIDATION_ERROR")})
    shell = shell_on(server)
    shell.request(messages.Reset, 1.0)
    with pytest.raises(InvalidActionError):
        shell.request(messages.Step, 1.0, data={})
    assert not server.transport.closed


def test_an_answer_of_another_kind_closes_the_connection():
    server = Server(replace={"step": encode_json({"type": "state", "data": {}})})
    shell = shell_on(server)
    shell.request(messages.Reset, 1.0)
    with pytest.raises(ProtocolError):
        shell.request(messages.Step, 1.0, data={})
    assert server.transport.closed


def test_a_full_server_leaves_no_connection_behind():
    server = Server(replace={"x-open": error_frame("CAPACITY_REACHED", active_sessions=1, max_sessions=1)})
    with pytest.raises(CapacityError) as caught:
        shell_on(server)
    assert caught.value.max_sessions == 1
    assert server.transport.closed


def test_an_interrupt_while_waiting_loses_the_session(monkeypatch):
    server = Server()
    shell = shell_on(server)
    shell.request(messages.Reset, 1.0)

    def interrupt(timeout_s):
        raise KeyboardInterrupt

    monkeypatch.setattr(server.transport, "receive", interrupt)
    with pytest.raises(KeyboardInterrupt):
        shell.request(messages.Step, 1.0, data={})
    with pytest.raises(SessionLostError) as caught:
        shell.request(messages.Step, 1.0, data={})
    assert caught.value.reason == "KeyboardInterrupt"


def test_closing_says_goodbye_once():
    server = Server()
    shell = shell_on(server)
    shell.close()
    shell.close()
    assert decode_json(server.end.received[-1].payload) == {"type": "close", "id": 2}
    assert len(server.end.received) == 2
    assert server.transport.closed


def test_closing_after_a_loss_sends_nothing_more():
    server = Server()
    shell = shell_on(server)
    server.end.cut()
    shell.close()
    assert len(server.end.received) == 1


def test_a_frame_too_many_is_never_taken_for_the_next_answer():
    doubled = encode_json({"type": "observation", "data": {"observation": {"n": 1}}})
    server = Server(subprotocol=None, replace={"step": [doubled, doubled]})
    shell = shell_on(server)
    shell.request(messages.Reset, 1.0)
    assert shell.request(messages.Step, 1.0, data={}).data.observation == {"n": 1}
    with pytest.raises(ProtocolError):
        shell.request(messages.State, 1.0)
    with pytest.raises(SessionLostError):
        shell.request(messages.State, 1.0)


def test_a_second_thread_is_refused_and_the_first_is_not_disturbed():
    server = Server()
    shell = shell_on(server)
    shell.request(messages.Reset, 1.0)
    entered, results = threading.Event(), []
    server.replace["step"] = lambda: entered.set() or []

    def first():
        results.append(shell.request(messages.Step, 20.0, data={}).data.observation)

    thread = threading.Thread(target=first)
    thread.start()
    assert entered.wait(5)
    with pytest.raises(SessionStateError) as caught:
        shell.request(messages.State, 1.0)
    assert caught.value.expected == "no call under way"
    server.end.send(encode_json({"type": "observation", "data": {"observation": {"n": 7}}, "id": 3}))
    thread.join(5)
    assert results == [{"n": 7}]


@pytest.mark.parametrize("where", ["send", "receive"])
def test_an_interrupt_anywhere_in_a_call_loses_the_session_and_a_new_one_goes_on(monkeypatch, where):
    server = Server()
    shell = shell_on(server)
    shell.request(messages.Reset, 1.0)
    monkeypatch.setattr(server.transport, where, raise_interrupt)
    with pytest.raises(KeyboardInterrupt):
        shell.request(messages.Step, 1.0, data={})
    assert not shell.alive
    shell.reopen()
    assert shell.request(messages.Reset, 1.0).data.observation == {"n": 0}


def test_an_interrupt_after_the_answer_came_loses_the_session_too(monkeypatch):
    shell = shell_on(Server())
    shell.request(messages.Reset, 1.0)
    monkeypatch.setattr(shell.session, "receive", raise_interrupt)
    with pytest.raises(KeyboardInterrupt):
        shell.request(messages.Step, 1.0, data={})
    assert not shell.alive


def test_a_call_out_of_a_signal_handler_ends_both_and_says_so(monkeypatch):
    server = Server()
    shell = shell_on(server)
    shell.request(messages.Reset, 1.0)

    def interrupted(timeout_s):
        with pytest.raises(SessionLostError):
            shell.request(messages.State, 1.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(server.transport, "receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        shell.request(messages.Step, 1.0, data={})
    shell.reopen()
    shell.request(messages.Reset, 1.0)


def test_a_server_that_closes_over_a_message_it_finds_too_large_loses_the_session(monkeypatch):
    server = Server()
    shell = shell_on(server)
    shell.request(messages.Reset, 1.0)

    def refused(payload, *, text=True):
        server.end.close(1009)
        raise MessageTooLargeError("the server's limit", setting="max_message_size_mb")

    monkeypatch.setattr(server.transport, "send", refused)
    with pytest.raises(MessageTooLargeError):
        shell.request(messages.Step, 1.0, data={})
    assert not shell.alive


def raise_interrupt(*arguments, **keywords):
    raise KeyboardInterrupt
