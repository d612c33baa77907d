"""Frames of every kind on ``/ws``: each is answered by one well-formed frame, or the socket is closed cleanly.

The session goes on where the frame was one at all. Requests over HTTP are ``test_routes.py``'s.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from websockets.exceptions import ConnectionClosedError

from openenv_gym.messages import REQUEST_TYPES, SUBPROTOCOL
from tests.fuzz.served import SERVED, Served
from tests.serving import serve
from tests.sockets import WAIT_S, ask, socket_of

ANSWERS = {"error", "observation", "state", "mcp", "x-open", "x-render", "x-call", "x-get_attr"}
CODES = {"INVALID_JSON", "UNKNOWN_TYPE", "VALIDATION_ERROR", "EXECUTION_ERROR"}

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
types = st.sampled_from(sorted(set(REQUEST_TYPES) - {"close"})) | st.text(max_size=8)
messages = st.fixed_dictionaries({"type": types | values}, optional={"data": values, "id": values, "more": values})
deep = st.builds(
    lambda opening, closing, depth, kind: (
        '{"type":"%s","data":' % kind + opening * depth + "1" + closing * depth + "}"  # noqa: UP031
    ),
    *(st.just("["), st.just("]")),
    st.sampled_from([10, 150, 1_000, 5_000]),
    st.sampled_from(["reset", "step", "x-call"]),
)
texts = messages.map(json.dumps) | values.map(json.dumps) | st.text() | st.text(alphabet='{}[]":,0e-+.tfn\\u ') | deep

patient = settings(
    max_examples=60, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
)


class Session:
    """A socket that is fuzzed, and what its environment takes."""

    def __init__(self, socket: Any, served: Served) -> None:
        self.socket, self.served = socket, served

    def goes_on(self) -> None:
        first = ask(self.socket, {"type": "reset", "data": {"seed": 1}})
        assert (first["type"], first["data"]["done"]) == ("observation", False)
        assert ask(self.socket, {"type": "step", "data": self.served.action})["type"] == "observation"


@pytest.fixture(scope="module", params=SERVED)
def served(request: pytest.FixtureRequest) -> Served:
    return SERVED[request.param]


@pytest.fixture(scope="module", params=[None, SUBPROTOCOL], ids=["stock", "ours"])
def session(request: pytest.FixtureRequest, served: Served) -> Iterator[Session]:
    offered = [request.param] if request.param else None
    with (
        TestClient(served.make()) as client,
        client.websocket_connect("/ws", subprotocols=offered) as socket,
    ):
        if request.param:
            assert ask(socket, {"type": "x-open"})["type"] == "x-open"
        yield Session(socket, served)


@patient
@given(text=texts)
def test_any_text_is_answered_by_one_frame_and_the_session_goes_on(session: Session, text: str) -> None:
    answer = ask(session.socket, text)
    assert answer["type"] in ANSWERS
    if answer["type"] == "error":
        assert answer["data"]["code"] in CODES
        assert answer["data"]["message"]
    session.goes_on()


@patient
@given(payload=st.binary(max_size=64))
def test_any_bytes_are_answered_by_one_frame_and_the_session_goes_on(session: Session, payload: bytes) -> None:
    session.socket.send_bytes(payload)
    assert session.socket.receive_json()["data"]["code"] == "VALIDATION_ERROR"
    session.goes_on()


@pytest.mark.parametrize("kind", ["reset", "step", "state", "x-open", "x-call", "mcp"])
def test_a_megabyte_of_nested_json_is_answered_and_the_session_goes_on(session: Session, kind: str) -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        depth = 1_000_000 // (len(opening) + len(closing))
        answer = ask(session.socket, f'{{"type":"{kind}","data":{opening * depth}1{closing * depth}}}')
        assert answer["data"]["code"] in CODES
        assert len(json.dumps(answer)) < 10_000
        session.goes_on()


def test_text_that_is_not_utf_8_closes_its_own_socket_and_no_other(served: Served) -> None:
    with serve(served.make()) as url, socket_of(url) as other:
        bystander = Session(other, served)
        bystander.goes_on()
        for payload in (b"\xff", b'{"type":"step","data":"\xc3("}', b"\xed\xa0\x80", b"\xf0\x9f\x98"):
            with socket_of(url) as socket:
                socket.send(payload, text=True)
                with pytest.raises(ConnectionClosedError) as closed:
                    socket.recv(timeout=WAIT_S)
                assert closed.value.rcvd.code == 1007
        bystander.goes_on()
