"""Tests of ``openenv_gym_server.first_come``: sessions that answer first come, first served."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from starlette.testclient import TestClient

from openenv_gym import frames
from openenv_gym.frames import Kind, Wait, read_frame, read_outcome, write_frame, write_waiting_step
from openenv_gym.messages import SUBPROTOCOL
from openenv_gym_server.gym_app import create_gym_app
from openenv_gym_server.session import Session
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.vector_hosting import HostedVector
from openenv_gym_server.worker import Worker
from tests.openenv_gym.talking import OurTalk, gate, gates
from tests.sockets import ask, client_of

ALL = ServerSettings(max_concurrent_envs=8)


@contextmanager
def talking(settings: ServerSettings = ALL, **opening: Any) -> Iterator[Any]:
    with (
        client_of(OurTalk, settings) as client,
        client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket,
    ):
        socket.opened = ask(socket, {"type": "x-open", "data": {"num_envs": 3, "vectorization": "threads", **opening}})
        socket.client = client
        ask(socket, {"type": "x-vector_reset", "data": {}})
        yield socket


def step(socket: Any, said: dict[int, str], at_least: int, **data: Any) -> dict[str, Any]:
    actions = [{"message": message} for message in said.values()]
    data |= {"actions": actions, "env_ids": list(said), "at_least": at_least}
    return ask(socket, {"type": "x-vector_step", "data": data})["data"]


def texts(answer: dict[str, Any]) -> list[str]:
    return [each["text"] for each in answer["observations"]]


def test_whoever_is_done_is_answered() -> None:
    with talking() as socket, gate("one"):
        assert socket.opened["data"]["first_come"] is True
        answer = step(socket, {2: "wait one", 0: "a"}, 1)
        assert (answer["env_ids"], texts(answer), answer["rewards"]) == ([0], ["a"], [0.5])
        empty = step(socket, {}, 0)
        assert empty == {"observations": [], "env_ids": [], "rewards": [], "terminations": [], "truncations": []}
        assert step(socket, {1: "b"}, 1)["env_ids"] == [1]
        assert step(socket, {}, 1, within_s=0.01)["env_ids"] == []
        gates["one"].set()
        assert texts(step(socket, {}, 1)) == ["wait one"]
        assert ask(socket, {"type": "state"})["data"]["step_counts"] == [1, 1, 1]


@pytest.mark.parametrize(
    ("said", "data", "loc"),
    [
        ({2: "b"}, {"at_least": 1}, ["data", "env_ids", 0]),
        ({0: "b"}, {"at_least": 3}, ["data", "at_least"]),
        ({0: "b"}, {"at_least": -1}, ["data", "at_least"]),
        ({0: "b"}, {"at_least": 1, "within_s": -1}, ["data", "within_s"]),
        ({0: "b"}, {"at_least": 1, "within_s": 1e300}, ["data", "within_s"]),
        ({9: "b"}, {"at_least": 1}, ["data", "env_ids", 0]),
        ({0: 5}, {"at_least": 1}, ["data", "actions", 0, "message"]),
    ],
)
def test_what_cannot_be_waited_for_is_refused_and_nothing_begins(said: Any, data: Any, loc: list[Any]) -> None:
    with talking() as socket, gate("one"):
        step(socket, {2: "wait one"}, 0)
        refused = step(socket, said, **data)
        assert (refused["code"], refused["errors"][0]["loc"]) == ("VALIDATION_ERROR", loc)
        gates["one"].set()
        assert step(socket, {}, 1)["env_ids"] == [2]
        assert ask(socket, {"type": "state"})["data"]["step_counts"] == [0, 0, 1]


def test_the_number_of_actions_is_that_of_the_environments() -> None:
    with talking() as socket:
        refused = ask(socket, {"type": "x-vector_step", "data": {"actions": [], "at_least": 0}})["data"]
        assert refused["errors"][0]["loc"] == ["data", "actions"]
        whole = {"actions": [{"message": word} for word in "abc"], "at_least": 3}
        assert sorted(ask(socket, {"type": "x-vector_step", "data": whole})["data"]["env_ids"]) == [0, 1, 2]
        del whole["at_least"]
        refused = ask(socket, {"type": "x-vector_step", "data": {**whole, "within_s": 1}})["data"]
        assert refused["errors"][0]["loc"] == ["data", "within_s"]


@pytest.mark.parametrize("kind", ["x-vector_reset", "state", "x-render", "x-vector_step"])
def test_all_else_waits_until_every_step_is_answered(kind: str) -> None:
    data = {"data": {"actions": [{"message": "b"}], "env_ids": [0]}} if kind == "x-vector_step" else {}
    with talking() as socket:
        step(socket, {2: "a"}, 0)
        refused = ask(socket, {"type": kind, **data})["data"]
        while refused.get("code") != "VALIDATION_ERROR":  # the step was done and answered already
            step(socket, {2: "a"}, 0)
            refused = ask(socket, {"type": kind, **data})["data"]
        assert "1 environments have steps under way" in refused["message"]


def test_only_threads_are_first_come() -> None:
    with talking(vectorization="sync") as socket:
        assert socket.opened["data"].get("first_come", False) is False
        refused = step(socket, {0: "a"}, 1)
        assert refused["errors"][0]["loc"] == ["data", "at_least"]


def test_one_that_raises_ends_the_session_at_the_next_answer() -> None:
    with talking() as socket, gate("one"):
        answer = step(socket, {2: "wait one", 1: "raise"}, 2)
        assert (answer["code"], answer["env_index"]) == ("EXECUTION_ERROR", 1)
        gates["one"].set()
        assert socket.receive()["type"] == "websocket.close"


def test_a_socket_that_goes_frees_the_places_once_the_steps_are_done() -> None:
    with client_of(OurTalk, ServerSettings(max_concurrent_envs=3)) as client, gate("one"):
        opening = {"type": "x-open", "data": {"num_envs": 3, "vectorization": "threads"}}
        with client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket:
            ask(socket, opening)
            ask(socket, {"type": "x-vector_reset", "data": {}})
            step(socket, {1: "wait one"}, 0)
        gates["one"].set()
        until = time.monotonic() + 10
        opened = {"type": "error"}
        while opened["type"] == "error" and time.monotonic() < until:
            with client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket:
                opened = ask(socket, opening)
        assert opened["type"] == "x-open"


def test_steps_under_way_are_no_idleness() -> None:
    worker = Worker("idle")
    session = Session("s", "socket", worker, ALL)
    session.hosted = Mock(spec=HostedVector, busy=True)
    session.active_at -= 100
    assert not session.idle_for(50)
    session.hosted.busy = False
    session.active_at -= 100
    assert session.idle_for(50)
    worker.stop()


def test_the_operators_limit_bounds_the_wait() -> None:
    with talking(ServerSettings(max_concurrent_envs=8, step_timeout_s=1)) as socket, gate("one"):
        refused = step(socket, {1: "wait one"}, 1)
        assert (refused["code"], "step_timeout_s" in refused["message"]) == ("SESSION_ERROR", True)
        gates["one"].set()


def test_binary_frames_say_the_same() -> None:
    app = create_gym_app("CartPole-v1", settings=ALL)
    with TestClient(app) as client, client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket:
        ask(socket, {"type": "x-open", "data": {"num_envs": 3, "vectorization": "threads"}})
        socket.send_bytes(write_frame(Kind.RESET, 2, 3, None, [b'{"seeds":[1,2,3]}']))
        socket.receive_bytes()
        action = np.array([1, 0], np.int64)
        socket.send_bytes(write_waiting_step(3, 2, [2, 0], [action], Wait(2)))
        packed = read_frame(socket.receive_bytes())
        assert (sorted(packed.env_ids.tolist()), packed.id) == ([0, 2], 3)  # type: ignore[union-attr]
        assert len(read_outcome(packed).observations) == 2 * 16
        socket.send_bytes(write_waiting_step(4, 0, [], [], Wait(0, 0.5)))
        empty = read_frame(socket.receive_bytes())
        assert (empty.count, empty.env_ids.tolist(), empty.flags) == (0, [], frames.ENV_IDS | frames.STEPPED)  # type: ignore[union-attr]
        socket.send_bytes(write_waiting_step(5, 0, [], [], Wait(0, float("nan"))))
        assert "within_s" in socket.receive_text()
