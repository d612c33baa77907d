"""Tests of ``openenv_gym_server.packed``: a session of one environment whose frames are binary."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
import pytest
from starlette.testclient import TestClient

from openenv_gym import frames
from openenv_gym.frames import Kind, OutcomeParts
from openenv_gym.info import decode_exact
from openenv_gym.messages import SUBPROTOCOL
from openenv_gym.spaces import BatchCodec
from openenv_gym_server.gym_app import create_gym_app
from tests.exactness.compare import as_the_space_holds_it, assert_same_value
from tests.openenv_gym_server.vectors import Moody
from tests.sockets import ask, client_of


@contextmanager
def opened(env: Any) -> Iterator[Any]:
    with (
        TestClient(create_gym_app(env)) as client,
        client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket,
    ):
        assert ask(socket, {"type": "x-open"})["data"]["binary"] is True
        yield socket


def send(socket: Any, kind: Kind, content: Any, count: int = 1, ids: Any = None) -> Any:
    socket.send_bytes(frames.write_frame(kind, 3, count, ids, content))
    answer = socket.receive()
    if answer.get("text"):
        error = json.loads(answer["text"])
        assert error["id"] == 3
        return error["data"]
    packed = frames.read_frame(answer["bytes"])
    assert (packed.id, packed.count) == (3, 1)
    return frames.read_outcome(packed)


def observation(outcome: OutcomeParts, space: gymnasium.Space[Any]) -> Any:
    batch = BatchCodec(space).unpack(outcome.observations, 1)
    if isinstance(batch, dict):
        return {key: value[0] for key, value in batch.items()}
    return batch[0]


@pytest.mark.parametrize("make", [lambda: gymnasium.make("CartPole-v1"), Moody], ids=["CartPole", "Moody"])
def test_every_step_is_what_the_environment_gives(make: Any) -> None:
    local = make()
    space = local.observation_space
    with opened("CartPole-v1" if local.spec else Moody) as socket:
        first = send(socket, Kind.RESET, [b'{"seed":5}'])
        obs, info = local.reset(seed=5)
        assert first.stepped is None
        assert_same_value(as_the_space_holds_it(space, obs), observation(first, space))
        for step in range(8):
            action = np.int64(step % 2)
            obs, reward, terminated, truncated, info = local.step(action)
            outcome = send(socket, Kind.STEP, [action.tobytes()])
            assert_same_value(as_the_space_holds_it(space, obs), observation(outcome, space))
            assert outcome.stepped.rewards.tolist() == [float(reward)]
            assert outcome.stepped.terminations.tolist() == [bool(terminated)]
            assert outcome.stepped.truncations.tolist() == [bool(truncated)]
            infos: Any = decode_exact(outcome.info or {})
            assert infos.keys() == info.keys()
        assert ask(socket, {"type": "state"})["data"]["step_count"] == 8
    local.close()


@pytest.mark.parametrize(
    ("kind", "content", "more"),
    [
        (Kind.RESET, b"{", {}),
        (Kind.RESET, b"[]", {}),
        (Kind.RESET, b'{"seed":-1}', {}),
        (Kind.RESET, b'{"options":5}', {}),
        (Kind.RESET, b"{}", {"count": 2}),
        (Kind.RESET, b"{}", {"ids": [0]}),
        (Kind.STEP, b"", {}),
        (Kind.STEP, b"\0" * 9, {}),
        (Kind.STEP, b"\2" + b"\0" * 7, {}),
        (Kind.STEP, b"", {"count": 0}),
    ],
)
def test_what_is_refused_has_not_reached_the_environment(kind: Kind, content: bytes, more: dict[str, Any]) -> None:
    with opened("CartPole-v1") as socket:
        send(socket, Kind.RESET, [b""])
        assert send(socket, kind, [content], **more)["code"] == "VALIDATION_ERROR"
        assert ask(socket, {"type": "state"})["data"]["step_count"] == 0
        assert send(socket, Kind.STEP, [bytes(8)]).stepped.rewards.tolist() == [1.0]


def test_an_environment_that_raises_goes_on() -> None:
    with opened(Moody) as socket:
        failed = send(socket, Kind.RESET, [b'{"options":{"fail":true}}'])
        assert (failed["code"], failed["exception_type"]) == ("EXECUTION_ERROR", "OSError")
        send(socket, Kind.RESET, [b""])
        failed = send(socket, Kind.STEP, [np.int64(4).tobytes()])
        assert (failed["code"], failed["exception_type"]) == ("EXECUTION_ERROR", "LocalError")
        assert "env_index" not in failed
        assert send(socket, Kind.STEP, [bytes(8)]).stepped is not None


def test_an_observation_that_does_not_fit_is_the_environments_failure() -> None:
    class Odd(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return np.zeros(2), {}

        def step(self, action: Any) -> Any:
            return np.zeros(3), 1.0, False, False, {}

    with opened(Odd) as socket:
        notes = send(socket, Kind.RESET, [b'{"colour":"red"}']).notes
        assert len(notes) == 2
        assert send(socket, Kind.RESET, [b""]).notes == []
        failed = send(socket, Kind.STEP, [bytes(8)])
        assert failed["code"] == "EXECUTION_ERROR"
        assert "already advanced" in failed["message"]
        assert "env_index" not in failed


def test_environments_of_models_take_text_alone() -> None:
    with client_of() as client, client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket:
        assert ask(socket, {"type": "x-open"})["data"]["binary"] is False
        refused = send(socket, Kind.STEP, [b""])
        assert refused["code"] == "VALIDATION_ERROR"
        assert ask(socket, {"type": "reset"})["type"] == "observation"
