"""The session's state machine where requests are binary frames, and where there are several environments."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openenv_gym import messages
from openenv_gym.errors import (
    EnvironmentExecutionError,
    InvalidActionError,
    OpenEnvGymError,
    ProtocolError,
    SessionLostError,
    SessionStateError,
    ValueMappingError,
)
from openenv_gym.frames import Kind, read_frame, write_frame
from openenv_gym.json_text import decode_json
from openenv_gym.session import Session, SessionState
from tests.openenv_gym.test_session import OBSERVATION, OPENED, error, frame, in_episode


def binary_session(state=None, **opened):
    session = Session(extended=True)
    session.request(messages.Open)
    session.receive(frame("x-open", {**OPENED, "binary": True, **opened}, id=1))
    if state is SessionState.EPISODE:
        session.packed(messages.Reset, reset_frame)
        session.receive(outcome(2), text=False)
    return session


def reset_frame(request_id):
    return write_frame(Kind.RESET, request_id, 1, None, [b"{}"])


def step_frame(request_id):
    return write_frame(Kind.STEP, request_id, 1, None, [b"\1"])


def outcome(request_id):
    return write_frame(Kind.OUTCOME, request_id, 1, None, [b"\7"])


@pytest.mark.parametrize(
    ("reset", "step"), [(messages.Reset, messages.Step), (messages.VectorReset, messages.VectorStep)]
)
def test_a_reset_and_a_step_by_binary_frames_are_answered_by_such(reset, step):
    session = binary_session()
    assert read_frame(session.packed(reset, reset_frame)).id == 2
    reply = session.receive(outcome(2), text=False)
    assert (reply.id, bytes(reply.packed.body), session.state) == (2, b"\7", SessionState.EPISODE)
    assert read_frame(session.packed(step, step_frame)).id == 3
    assert session.receive(outcome(3), text=False).packed.kind is Kind.OUTCOME
    assert decode_json(session.request(messages.State))["id"] == 4


def test_a_binary_step_before_any_reset_is_refused():
    with pytest.raises(SessionStateError) as caught:
        binary_session().packed(messages.Step, step_frame)
    assert (caught.value.expected, caught.value.state) == ("episode", "open")


@pytest.mark.parametrize("extended", [True, False])
def test_binary_frames_need_a_server_that_takes_them(extended):
    session = Session(extended=extended)
    if extended:
        session.request(messages.Open)
        session.receive(frame("x-open", OPENED, id=1))
    with pytest.raises(SessionStateError) as caught:
        session.packed(messages.Reset, reset_frame)
    assert caught.value.expected == "a session with binary frames"
    session.request(messages.Reset)


def test_a_frame_that_cannot_be_built_leaves_nothing_pending():
    def build(request_id):
        raise ValueMappingError("no", path="$")

    session = binary_session()
    with pytest.raises(ValueMappingError):
        session.packed(messages.Reset, build)
    assert not session.pending
    assert read_frame(session.packed(messages.Reset, reset_frame)).id == 2


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (outcome(9), False),
        (step_frame(3), False),
        (b"\7" * 20, False),
        (b"", False),
        (frame("observation", OBSERVATION, id=3), True),
        (frame("state", {}, id=3), True),
    ],
)
def test_another_answer_to_a_binary_request_breaks_the_session(payload, text):
    session = binary_session(SessionState.EPISODE)
    session.packed(messages.Step, step_frame)
    with pytest.raises(ProtocolError):
        session.receive(payload, text=text)
    assert session.state is SessionState.BROKEN


def test_a_binary_answer_to_a_request_in_text_breaks_the_session():
    session = binary_session(SessionState.EPISODE)
    session.request(messages.Step, data={})
    with pytest.raises(ProtocolError):
        session.receive(outcome(3), text=False)
    assert session.state is SessionState.BROKEN


def test_a_refused_binary_step_leaves_the_session_as_it_is():
    session = binary_session(SessionState.EPISODE)
    session.packed(messages.Step, step_frame)
    with pytest.raises(InvalidActionError) as caught:
        session.receive(error("VALIDATION_ERROR", "no", id=3))
    assert caught.value.message.startswith("the server refused the action")
    assert session.state is SessionState.EPISODE


@given(payload=st.binary(max_size=40), text=st.booleans())
def test_any_answer_to_a_binary_request_is_read_or_a_typed_error(payload, text):
    session = binary_session()
    session.packed(messages.Reset, reset_frame)
    with contextlib.suppress(OpenEnvGymError):
        session.receive(payload, text=text)


def test_several_environments_are_reset_and_stepped_in_text_too():
    session = binary_session()
    observed = {"observations": [{"obs": 1}, {"obs": 2}]}
    with pytest.raises(SessionStateError):
        session.request(messages.VectorStep, data=messages.VectorActions(actions=[]))
    session.request(messages.VectorReset, data=messages.VectorResetSettings(seeds=[1, None]))
    assert session.receive(frame("x-vector", observed, id=2)).data.observations == observed["observations"]
    assert session.state is SessionState.EPISODE
    session.request(messages.VectorStep, data=messages.VectorActions(actions=[{"action": 1}], env_ids=[1]))
    reply = session.receive(frame("x-vector", {**observed, "rewards": [1.0, "NaN"], "final": {"1": {}}}, id=3))
    assert (reply.data.rewards, reply.data.final) == ([1.0, "NaN"], {1: {}})


@pytest.mark.parametrize("kind", [messages.VectorReset, messages.VectorStep])
def test_an_environment_that_fails_among_others_is_named_and_ends_the_session(kind):
    session = binary_session(SessionState.EPISODE)
    session.packed(kind, step_frame)
    with pytest.raises(EnvironmentExecutionError) as caught:
        session.receive(error("EXECUTION_ERROR", "boom", env_index=5, exception_type="KeyError", id=3))
    assert caught.value.env_index == 5
    assert "environment 5 failed in" in caught.value.message
    assert caught.value.message.endswith("KeyError: boom")
    with pytest.raises(SessionLostError) as lost:
        session.request(messages.State)
    assert lost.value.reason == "environment 5 failed: boom"


@pytest.mark.parametrize("index", [None, "5", True, -1])
def test_a_failure_without_an_index_leaves_the_session_open(index):
    session = binary_session(SessionState.EPISODE)
    session.packed(messages.VectorReset, reset_frame)
    with pytest.raises(EnvironmentExecutionError) as caught:
        session.receive(error("EXECUTION_ERROR", "boom", env_index=index, id=3))
    assert caught.value.env_index is None
    assert session.state is SessionState.OPEN


def test_an_index_means_nothing_to_a_server_without_the_subprotocol():
    session = in_episode()
    session.request(messages.Step, data={})
    with pytest.raises(EnvironmentExecutionError) as caught:
        session.receive(error("EXECUTION_ERROR", env_index=3))
    assert (caught.value.env_index, session.state) == (None, SessionState.EPISODE)


def test_an_answer_is_expected_where_a_request_was_made():
    session = in_episode()
    with pytest.raises(SessionStateError) as caught:
        session.expect_pending()
    assert caught.value.expected == "pending"
    session.request(messages.State)
    session.expect_pending()
    session.lose("gone")
    with pytest.raises(SessionLostError):
        session.expect_pending()


def test_what_came_as_a_view_and_is_no_answer_is_told_all_the_same():
    for state in (None, SessionState.EPISODE):
        session = binary_session(state)
        if state is not None:
            session.packed(messages.Step, step_frame)
        with pytest.raises(ProtocolError):
            session.receive(memoryview(b"\x07none of ours"), text=False)
        assert session.state is SessionState.BROKEN
