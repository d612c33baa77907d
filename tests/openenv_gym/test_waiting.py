"""Waiting for the first of many sessions, in memory and over sockets."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from websockets.sync.server import ServerConnection, serve

from openenv_gym import messages
from openenv_gym.errors import ProtocolError, SessionLostError
from openenv_gym.shell import Shell
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.readiness import Readiness
from openenv_gym.waiting import Lookout, close_all, wait_any
from tests.openenv_gym.sleepy import release
from tests.openenv_gym.test_shell import Server, shell_on
from tests.sockets import until


def stepping(number: int) -> tuple[list[Server], list[Shell]]:
    servers = [Server() for _ in range(number)]
    shells = [shell_on(server) for server in servers]
    for server, shell in zip(servers, shells, strict=True):
        shell.request(messages.Reset, 1.0)
        server.end.stall()
        shell.begin(messages.Step, data={})
    return servers, shells


def test_those_that_are_answered_come_in_the_given_order() -> None:
    servers, shells = stepping(4)
    servers[3].end.resume()
    servers[1].end.resume()
    assert wait_any(shells, 5.0) == [shells[1], shells[3]]


def test_none_comes_where_the_time_runs_out_and_nothing_is_lost() -> None:
    servers, shells = stepping(2)
    assert wait_any(shells, 0.02) == []
    assert wait_any(shells, 0) == []
    servers[0].end.resume()
    assert wait_any(shells, 0) == [shells[0]]
    shells[0].finish(1.0)
    servers[1].end.resume()
    assert wait_any(shells[1:], None) == [shells[1]]
    shells[1].finish(1.0)


def test_of_no_sessions_none_is_waited_for() -> None:
    assert wait_any([], None) == []


def test_an_answer_that_comes_later_ends_the_waiting() -> None:
    servers, shells = stepping(2)
    timer = threading.Timer(0.05, servers[1].end.resume)
    timer.start()
    assert wait_any(shells, 10.0) == [shells[1]]
    timer.join()


def test_a_session_that_ended_does_not_hold_the_others() -> None:
    servers, shells = stepping(2)
    servers[1].end.cut()
    assert wait_any(shells, 10.0) == [shells[1]]
    with pytest.raises(SessionLostError):
        shells[1].finish(1.0)
    assert wait_any(shells, 10.0) == [shells[1]]


@pytest.fixture
def sessions(sleepy: str):
    shells = [Shell(sleepy, ConnectionSettings(), messages.OpenSettings()) for _ in range(2)]
    for shell in shells:
        shell.open()
        shell.request(messages.Reset, 10.0)
    yield shells
    for shell in shells:
        shell.close()


def test_over_sockets_the_quick_one_is_not_held_by_the_slow_one(sessions: list[Shell]) -> None:
    slow, quick = sessions
    release.clear()
    slow.begin(messages.Step, data={"action": 1})
    quick.begin(messages.Step, data={"action": 0})
    assert wait_any(sessions, 10.0) == [quick]
    quick.finish(10.0)
    assert wait_any([slow], 0) == []
    release.set()
    assert wait_any([slow], 10.0) == [slow]
    slow.finish(10.0)
    release.clear()


def test_an_answer_that_the_keeper_has_read_is_found(sessions: list[Shell]) -> None:
    first, second = sessions
    for shell in sessions:
        shell.begin(messages.Step, data={"action": 0})
    assert Readiness(second).wait(10.0)
    for _ in range(2):  # the first visit after a call is a short one
        second._transport.tend()
    assert wait_any([second], 10.0) == [second]
    first.finish(10.0)
    second.finish(10.0)


def test_a_closed_session_is_at_its_end(sessions: list[Shell]) -> None:
    sessions[0].close()
    assert wait_any(sessions, 10.0) == sessions[:1]


@pytest.fixture
def plain_url() -> Iterator[str]:
    """A server without the subprotocol, which answers as often as the message says."""
    answer = json.dumps({"type": "observation", "data": {"observation": {}, "reward": None, "done": False}})

    def talk(connection: ServerConnection) -> None:
        for text in connection:
            for _ in range(json.loads(text).get("data", {}).get("answers", 1)):
                connection.send(answer)

    with serve(talk, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join(10.0)


def test_one_look_finds_who_has_said_what_nobody_asked_for(plain_url: str) -> None:
    shells = [Shell(plain_url, ConnectionSettings(), messages.OpenSettings()) for _ in range(3)]
    for shell, answers in zip(shells, (1, 2, 1), strict=True):
        shell.open()
        shell.request(messages.Reset, 10.0, data={"answers": answers})
    lookout = Lookout(shells)
    until(lambda: lookout.heard_of() == [shells[1]])
    lookout.note_silence(shells)
    assert [shell.silent for shell in shells] == [True, False, True]
    shells[0].begin(messages.Step, data={})
    assert not shells[0].silent
    with pytest.raises(ProtocolError):
        shells[1].begin(messages.Step, data={})
    lookout.note_silence(shells[1:])
    assert not shells[1].silent
    close_all(shells, 5.0)
