"""Binary frames of every kind on ``/ws``: each is answered by one frame, outcome or error, and the session goes on.

Text frames are ``test_frames.py``'s.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Sequence, Text
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from openenv_gym.frames import Kind, read_frame, read_outcome, write_frame
from openenv_gym.json_text import decode_json, encode_json
from openenv_gym.messages import SUBPROTOCOL
from openenv_gym.spaces import BatchCodec
from openenv_gym.spaces.batches import stack
from openenv_gym_server import ServerSettings, create_gym_app

CODES = {"VALIDATION_ERROR", "EXECUTION_ERROR"}
patient = settings(
    max_examples=80, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
)


class Anything(gymnasium.Env):
    """Takes an action of every kind of layout, and shows it."""

    action_space = Dict(move=Discrete(3), push=Box(-1, 1, (2,), np.float32), say=Text(4), more=Sequence(Discrete(2)))
    observation_space = action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self._sample(), {}

    def _sample(self) -> Any:
        return {"move": 0, "push": np.zeros(2, np.float32), "say": "x", "more": (1, 0)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return action, 1.0, False, False, {}


CODEC = BatchCodec(Anything.action_space)


class Session:
    """A socket that is fuzzed, of one environment or of three."""

    def __init__(self, socket: Any, count: int) -> None:
        self.socket, self.count = socket, count
        self.last_id = 100

    def actions(self, count: int) -> bytes:
        sample = Anything()._sample() | {"move": np.int64(2), "more": (np.int64(1),)}
        return write_frame(Kind.STEP, 0, 0, None, CODEC.pack(stack(Anything.action_space, [sample] * count), count))[
            16:
        ]

    def goes_on(self) -> None:
        """A reset and a step are answered as ever."""
        for kind, body in ((Kind.RESET, b'{"options":{}}'), (Kind.STEP, self.actions(self.count))):
            self.last_id += 1
            self.socket.send_bytes(write_frame(kind, self.last_id, self.count, None, [body]))
            packed = read_frame(self.socket.receive_bytes())
            assert (packed.kind, packed.id, packed.count) == (Kind.OUTCOME, self.last_id, self.count)
            CODEC.unpack(read_outcome(packed).observations, self.count)

    def take_answer(self) -> None:
        """One frame: an outcome that can be read, or an error of the client's."""
        answer = self.socket.receive()
        if answer.get("bytes") is not None:
            read_outcome(read_frame(answer["bytes"]))
            return
        error: Any = decode_json(answer["text"])
        assert error["type"] == "error"
        assert error["data"]["code"] in CODES
        assert "env_index" not in error["data"]


@pytest.fixture(params=[1, 3], ids=["one", "three"])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    app = create_gym_app(Anything, settings=ServerSettings(max_concurrent_envs=8))
    data = {"num_envs": request.param} if request.param > 1 else {}
    with TestClient(app) as client, client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket:
        socket.send_text(encode_json({"type": "x-open", "data": data, "id": 1}).decode())
        assert decode_json(socket.receive_text())["data"]["binary"] is True  # type: ignore[index, call-overload]
        session = Session(socket, request.param)
        session.goes_on()
        yield session


@patient
@given(payload=st.binary(max_size=96))
def test_any_bytes_are_answered_by_one_frame_and_the_session_goes_on(session: Session, payload: bytes) -> None:
    session.socket.send_bytes(payload)
    session.take_answer()
    session.goes_on()


@patient
@given(
    version=st.sampled_from([1, 1, 1, 0]),
    kind=st.integers(0, 4),
    flags=st.sampled_from([0, 0, 1, 2, 0x8001]),
    count=st.integers(0, 4) | st.just(2**32 - 1),
    env_ids=st.lists(st.integers(0, 4) | st.just(2**32 - 1), max_size=4),
    body=st.binary(max_size=64) | st.sampled_from([b"{}", b'{"seeds":[1,2,3]}', b'{"seed":-1}', b"[]", b"{"]),
)
def test_any_header_over_any_body_is_answered_and_the_session_goes_on(
    session: Session, version: int, kind: int, flags: int, count: int, env_ids: list[int], body: bytes
) -> None:
    listed = struct.pack(f"<{len(env_ids)}I", *env_ids) if flags & 1 else b""
    session.socket.send_bytes(struct.pack("<BBHIQ", version, kind, flags, count, 7) + listed + body)
    session.take_answer()
    session.goes_on()


@patient
@given(st.data())
def test_a_damaged_step_is_answered_and_the_session_goes_on(session: Session, data: st.DataObject) -> None:
    frame = bytearray(write_frame(Kind.STEP, 7, session.count, None, [session.actions(session.count)]))
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    session.socket.send_bytes(bytes(frame[: data.draw(st.integers(16, len(frame)))]))
    session.take_answer()
    session.goes_on()
