"""Waiting for several sessions, each with its own deadline."""

import multiprocessing
import threading
import time

import pytest

from openenv_gym import messages, vector_waiting
from openenv_gym.errors import RequestTimeoutError, VectorTimeoutError
from openenv_gym.shell import Shell
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.vector_waiting import (
    answer_deadline,
    arrived,
    deadline_in,
    finish_all,
    finish_in_time,
    finish_one,
)
from openenv_gym.waiting import Lookout, close_all, wait_any
from tests.openenv_gym.talking import gate, gates, serve_talk


class Asking:
    """A session that says a word, and ``again`` more words after its answers."""

    def __init__(self, shell, *, again=0):
        self.shell = shell
        self.deadline = None
        self.again = again
        shell.request(messages.Reset, 10.0)

    def say(self, word):
        self.shell.begin(messages.Step, data={"message": word})
        return self

    def finish(self, timeout_s):
        reply = self.shell.finish(timeout_s)
        if self.again:
            self.again -= 1
            self.say("again")
            return None
        return reply.data.observation["text"]


@pytest.fixture(params=["ours", "stock"])
def sessions(request):
    with serve_talk(request.param) as url:
        shells = [Shell(url, ConnectionSettings(), messages.OpenSettings()) for _ in range(3)]
        for shell in shells:
            shell.open()
        yield [Asking(shell) for shell in shells]
        close_all(shells, 5.0)


def test_answers_are_in_the_order_of_the_sessions(sessions):
    with gate("order"):
        sessions[0].say("wait order")
        sessions[1].say("b")
        sessions[2].say("c")
        assert arrived(sessions, None)[0] is not sessions[0]
        gates["order"].set()
        assert finish_all(sessions, None) == ["wait order", "b", "c"]


def test_a_further_request_is_waited_for_too(sessions):
    sessions[1].again = 2
    assert finish_all([session.say("a") for session in sessions], None) == ["a", "again", "a"]
    assert finish_all([sessions[1].say("alone")], None) == ["alone"]


def test_who_is_late_is_told_and_not_waited_for(sessions):
    with gate("late"):
        for session in sessions:
            session.say("wait late")
        sessions[1].deadline = deadline_in(0.05)
        assert arrived(sessions, None) == [sessions[1]]
        with pytest.raises(VectorTimeoutError) as caught:
            finish_one(sessions[1], None)
        assert isinstance(caught.value, RequestTimeoutError)
        assert isinstance(caught.value, multiprocessing.TimeoutError)
        assert caught.value.timeout_s is not None


def test_nobody_is_told_where_the_time_is_over_and_nobody_is_late(sessions):
    with gate("over"):
        for session in sessions:
            session.say("wait over")
        assert arrived(sessions, time.monotonic() + 0.05) == []
        assert arrived(sessions, 0.0) == []
        with pytest.raises(VectorTimeoutError):
            finish_all(sessions[:1], time.monotonic() - 1)


def test_all_have_to_be_there_in_time(sessions):
    with gate("all"):
        sessions[0].say("a")
        sessions[1].say("wait all")
        with pytest.raises(VectorTimeoutError):
            finish_all(sessions[:2], time.monotonic() + 0.1)


def test_without_a_limit_there_is_no_deadline():
    assert deadline_in(None) is None
    assert deadline_in(5.0) > time.monotonic()


def test_several_that_are_late_are_not_waited_for(sessions):
    with gate("several"):
        for session in sessions:
            session.say("wait several")
            session.deadline = deadline_in(60.0)
        begun = time.monotonic()
        with pytest.raises(VectorTimeoutError):
            finish_all(sessions, time.monotonic() + 0.1)
        assert time.monotonic() - begun < 5


@pytest.mark.parametrize("reset", [True, False])
def test_an_answer_that_is_late_is_told_the_limit_and_the_setting_of_it(reset):
    settings = ConnectionSettings(**{f"{'reset' if reset else 'step'}_timeout_s": 0.25})
    until = answer_deadline(settings, reset=reset)

    def late(timeout_s):
        raise RequestTimeoutError(f"expected an answer within {timeout_s:g} s", timeout_s=timeout_s)

    name = f"{'reset' if reset else 'step'}_timeout_s"
    for deadline, told in ((until, f"{name}=0.25 s"), (until.at(0.0), f"{name}=0.25 s"), (deadline_in(0.5), "0.5 s")):
        with pytest.raises(VectorTimeoutError) as caught:
            finish_in_time(late, deadline)
        assert str(caught.value) == f"expected an answer within {told}"
        assert caught.value.timeout_s == deadline.timeout_s
    with pytest.raises(VectorTimeoutError):
        finish_in_time(late, time.monotonic())


def lookout(sessions):
    return Lookout([session.shell for session in sessions])


def test_in_lockstep_the_last_is_waited_for_and_the_others_are_there_by_then(sessions, monkeypatch):
    waited = []

    def wait(shells, timeout_s):
        waited.append(list(shells))
        return wait_any(shells, timeout_s)

    monkeypatch.setattr(vector_waiting, "wait_any", wait)
    for session, word in zip(sessions, "abc", strict=True):
        session.say(word)
    for session in sessions[:2]:
        assert wait_any([session.shell], 10.0)
    assert finish_all(sessions, None, lookout(sessions), 10.0) == ["a", "b", "c"]
    assert waited == [[sessions[2].shell]]


def test_patience_with_the_last_ends_and_all_are_heard(sessions):
    with gate("last"):
        sessions[0].say("a")
        sessions[1].say("b")
        sessions[2].say("wait last")
        timer = threading.Timer(0.05, gates["last"].set)
        timer.start()
        assert finish_all(sessions, None, lookout(sessions), 0.01) == ["a", "b", "wait last"]
        timer.join()


def test_patience_ends_with_the_time_that_there_is(sessions):
    with gate("last"):
        for session in sessions:
            session.say("wait last")
        begun = time.monotonic()
        with pytest.raises(VectorTimeoutError):
            finish_all(sessions, time.monotonic() + 0.05, lookout(sessions), 60.0)
        assert time.monotonic() - begun < 30.0
