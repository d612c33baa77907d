"""Whatever a peer sends over the socket, it is answered by an error frame and the session goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from openenv_gym.messages import REQUEST_TYPES, SUBPROTOCOL
from openenv_gym_server.gym_app import create_gym_app
from tests.sockets import ask

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
types = st.sampled_from(sorted(set(REQUEST_TYPES) - {"close"})) | st.text(max_size=8)
messages = st.fixed_dictionaries({"type": types | values}, optional={"data": values, "id": values, "more": values})
frames = messages.map(json.dumps) | values.map(json.dumps) | st.text() | st.text(alphabet='{}[]":,0e-+.tfn\\u ')


@pytest.fixture(scope="module", params=[None, SUBPROTOCOL], ids=["stock", "ours"])
def socket(request: pytest.FixtureRequest) -> Iterator[Any]:
    offered = [request.param] if request.param else None
    with (
        TestClient(create_gym_app("CartPole-v1")) as client,
        client.websocket_connect("/ws", subprotocols=offered) as socket,
    ):
        if request.param:
            assert ask(socket, {"type": "x-open"})["type"] == "x-open"
        yield socket


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(frame=frames)
def test_a_malformed_frame_is_answered_and_the_session_goes_on(socket: Any, frame: str) -> None:
    answer = ask(socket, frame)
    assert answer["type"] in {"error", "observation", "state", "mcp", "x-render", "x-call", "x-get_attr"}
    if answer["type"] == "error":
        assert answer["data"]["code"] in {"INVALID_JSON", "UNKNOWN_TYPE", "VALIDATION_ERROR", "EXECUTION_ERROR"}
        assert answer["data"]["message"]
    assert ask(socket, {"type": "reset", "data": {"seed": 1}})["data"]["done"] is False
    assert ask(socket, {"type": "step", "data": {"action": 1}})["data"]["reward"] == 1.0


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(payload=st.binary(max_size=64))
def test_a_binary_frame_is_answered_and_the_session_goes_on(socket: Any, payload: bytes) -> None:
    socket.send_bytes(payload)
    assert socket.receive_json()["data"]["code"] == "VALIDATION_ERROR"
    assert ask(socket, {"type": "state"})["type"] == "state"
