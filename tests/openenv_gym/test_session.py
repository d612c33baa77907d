"""The session's state machine, without any I/O."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openenv_gym import messages
from openenv_gym.errors import (
    CapacityError,
    EnvironmentExecutionError,
    EnvironmentFactoryError,
    OpenEnvGymError,
    ProtocolError,
    ServerError,
    SessionLostError,
    SessionStateError,
    ValueMappingError,
)
from openenv_gym.json_text import decode_json, encode_json
from openenv_gym.session import Session, SessionState

OBSERVATION = {"observation": {"text": "hi"}, "reward": None, "done": False}
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["VALIDATION_ERROR", "SESSION_ERROR"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["loc", "msg", "input"]), inner),
    max_leaves=6,
)
OPENED = {"session_id": "s", "schema": {}, "metadata": {}}


def frame(kind, data, **extra):
    return encode_json({"type": kind, "data": data, **extra})


def error(code, message="boom", **facts):
    extra = {"id": facts.pop("id")} if "id" in facts else {}
    return frame("error", {"message": message, "code": code, **facts}, **extra)


def in_episode():
    session = Session(extended=False)
    session.request(messages.Reset)
    session.receive(frame("observation", OBSERVATION))
    return session


def test_a_reset_and_its_answer_begin_an_episode():
    session = Session(extended=False)
    assert decode_json(session.request(messages.Reset, data={"seed": 3})) == {"type": "reset", "data": {"seed": 3}}
    reply = session.receive(frame("observation", OBSERVATION))
    assert reply.data.observation == {"text": "hi"}
    assert session.state is SessionState.EPISODE


def test_a_step_before_any_reset_is_refused_and_nothing_is_pending():
    session = Session(extended=False)
    with pytest.raises(SessionStateError) as caught:
        session.request(messages.Step, data={})
    assert (caught.value.expected, caught.value.state) == ("episode", "open")
    session.request(messages.Reset)


def test_ids_are_given_and_checked_where_the_subprotocol_was_agreed():
    session = Session(extended=True)
    assert decode_json(session.request(messages.Open)) == {"type": "x-open", "id": 1}
    session.receive(frame("x-open", OPENED, id=1))
    assert session.state is SessionState.OPEN
    assert decode_json(session.request(messages.Reset))["id"] == 2
    with pytest.raises(ProtocolError):
        session.receive(frame("observation", OBSERVATION, id=1))
    assert session.state is SessionState.BROKEN


def test_an_answer_without_the_id_is_not_taken_for_the_answer():
    session = Session(extended=True)
    session.request(messages.Open)
    with pytest.raises(ProtocolError):
        session.receive(frame("x-open", OPENED))


def test_opening_comes_first_where_the_subprotocol_was_agreed():
    session = Session(extended=True)
    with pytest.raises(SessionStateError) as caught:
        session.request(messages.Reset)
    assert caught.value.state == "new"


def test_opening_twice_is_refused():
    session = Session(extended=True)
    session.request(messages.Open)
    session.receive(frame("x-open", OPENED, id=1))
    with pytest.raises(SessionStateError) as caught:
        session.request(messages.Open)
    assert caught.value.expected == "new"


def in_state(state):
    """A session of the subprotocol in that state."""
    session = Session(extended=True)
    if state is not SessionState.NEW:
        session.request(messages.Open)
        session.receive(frame("x-open", OPENED, id=1))
    if state is SessionState.EPISODE:
        session.request(messages.Reset)
        session.receive(frame("observation", OBSERVATION, id=2))
    if state is SessionState.CLOSED:
        session.request(messages.Close)
    return session


UNOPENED = "needs an open session, but this one has not been opened: send x-open first"
OPENED_TWICE = "x-open opens a session, but this one is open already: go on with reset()"
SHUT = "needs an open session, but this one was closed: make a new one"
CALLED = {messages.Open: "open", messages.Render: "render", messages.Call: "call", messages.GetAttr: "get_attr"}
LIVING = (messages.Reset, messages.Step, messages.State, messages.Mcp, messages.Render, messages.Call, messages.GetAttr)


@pytest.mark.parametrize(
    ("state", "kind", "told"),
    [
        *((SessionState.NEW, kind, f"{CALLED.get(kind, kind.__struct_config__.tag)} {UNOPENED}") for kind in LIVING),
        (SessionState.OPEN, messages.Open, OPENED_TWICE),
        (SessionState.OPEN, messages.Step, "step needs an episode that has begun: call reset() first"),
        (SessionState.OPEN, messages.VectorStep, "step needs an episode that has begun: call reset() first"),
        (SessionState.EPISODE, messages.Open, OPENED_TWICE),
        *(
            (SessionState.CLOSED, kind, f"{CALLED.get(kind, kind.__struct_config__.tag)} {SHUT}")
            for kind in (messages.Open, *LIVING, messages.Close)
        ),
    ],
)
def test_every_request_out_of_order_says_what_it_needs(state, kind, told):
    with pytest.raises(SessionStateError) as caught:
        in_state(state).request(kind)
    assert str(caught.value) == told
    assert caught.value.state == state.value


def test_an_extension_request_needs_the_subprotocol():
    with pytest.raises(SessionStateError) as caught:
        Session(extended=False).request(messages.Render)
    assert caught.value.expected == messages.SUBPROTOCOL


def test_a_second_request_before_the_answer_is_refused():
    session = Session(extended=False)
    session.request(messages.Reset)
    with pytest.raises(SessionStateError) as caught:
        session.request(messages.State)
    assert caught.value.expected == "no request under way"


def test_a_request_without_a_json_form_leaves_nothing_pending():
    session = in_episode()
    with pytest.raises(ValueMappingError) as caught:
        session.request(messages.Step, data={"x": float("nan")})
    assert caught.value.path == "$.data.x"
    session.request(messages.Step, data={"x": 1.0})


def test_a_withdrawn_request_makes_room_for_another():
    session = in_episode()
    session.request(messages.Step, data={})
    session.withdraw()
    session.request(messages.State)


def test_every_call_on_a_lost_session_raises_with_the_reason():
    session = in_episode()
    session.request(messages.Step, data={})
    session.lose("no answer within 60 s")
    session.lose("a later reason")
    for kind, fields in (
        (messages.Step, {"data": {}}),
        (messages.Reset, {}),
        (messages.State, {}),
        (messages.Close, {}),
    ):
        with pytest.raises(SessionLostError) as caught:
            session.request(kind, **fields)
        assert caught.value.reason == "no answer within 60 s"


def test_a_late_answer_after_a_loss_says_why_it_was_lost_and_meets_no_other_request():
    session = in_episode()
    session.request(messages.Step, data={})
    session.lose("no answer within 60 s")
    with pytest.raises(SessionLostError) as caught:
        session.receive(frame("observation", OBSERVATION))
    assert caught.value.reason == "no answer within 60 s"


def test_a_frame_nobody_asked_for_breaks_the_session():
    session = in_episode()
    with pytest.raises(ProtocolError):
        session.receive(frame("state", {}))
    assert session.state is SessionState.BROKEN


def test_only_an_error_may_come_before_its_request():
    session = Session(extended=False)
    session.request(messages.Reset)
    with pytest.raises(CapacityError):
        session.receive(error("CAPACITY_REACHED"), unasked=True)
    session = in_episode()
    session.request(messages.Step, data={})
    with pytest.raises(ProtocolError):
        session.receive(frame("observation", OBSERVATION), unasked=True)
    assert session.state is SessionState.BROKEN


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (frame("state", {}), True),
        (b"{", True),
        (b'{"type":"nonsense","data":{}}', True),
        (b'{"type":"observation","data":{"observation":[]}}', True),
        (frame("observation", OBSERVATION), False),
    ],
    ids=["another kind", "not JSON", "an unknown type", "a wrong shape", "binary"],
)
def test_an_answer_that_is_no_answer_breaks_the_session(payload, text):
    session = in_episode()
    session.request(messages.Step, data={})
    with pytest.raises(ProtocolError) as caught:
        session.receive(payload, text=text)
    assert caught.value.received == payload[:200].decode()
    assert session.state is SessionState.BROKEN


def test_an_environment_that_raises_in_step_leaves_the_episode_to_itself():
    session = in_episode()
    session.request(messages.Step, data={})
    with pytest.raises(EnvironmentExecutionError) as caught:
        session.receive(error("EXECUTION_ERROR", "division by zero"))
    assert "division by zero" in str(caught.value)
    assert caught.value.data["message"] == "division by zero"
    assert session.state is SessionState.EPISODE


def test_the_type_and_the_traceback_of_what_was_raised_come_along_where_the_server_tells_them():
    session = in_episode()
    session.request(messages.Step, data={})
    with pytest.raises(EnvironmentExecutionError) as caught:
        session.receive(error("EXECUTION_ERROR", "'door'", exception_type="KeyError", traceback="File env.py, line 3"))
    assert str(caught.value) == "the environment failed in step: KeyError: 'door'"
    assert caught.value.__notes__ == ["In the server's process:\nFile env.py, line 3"]


def test_an_environment_that_raises_in_reset_has_no_episode():
    session = in_episode()
    session.request(messages.Reset)
    with pytest.raises(EnvironmentExecutionError):
        session.receive(error("EXECUTION_ERROR"))
    assert session.state is SessionState.OPEN


def test_a_failed_opening_leaves_the_session_new():
    session = Session(extended=True)
    session.request(messages.Open)
    with pytest.raises(EnvironmentExecutionError):
        session.receive(error("EXECUTION_ERROR", id=1))
    assert session.state is SessionState.NEW


@pytest.mark.parametrize("code", ["INVALID_JSON", "UNKNOWN_TYPE"])
def test_a_request_the_server_does_not_understand_leaves_the_session_alive(code):
    session = in_episode()
    session.request(messages.Step, data={})
    with pytest.raises(ServerError) as caught:
        session.receive(error(code))
    assert caught.value.code == code
    assert session.state is SessionState.EPISODE


def test_a_factory_that_fails_is_named():
    session = Session(extended=False)
    session.request(messages.Reset)
    with pytest.raises(EnvironmentFactoryError) as caught:
        session.receive(error("FACTORY_ERROR", factory_name="Broken"))
    assert caught.value.factory_name == "Broken"
    assert session.state is SessionState.BROKEN


def test_a_session_the_server_ended_is_lost():
    session = in_episode()
    session.request(messages.Step, data={})
    with pytest.raises(SessionLostError) as caught:
        session.receive(error("SESSION_ERROR", "idle for 60 s"))
    assert caught.value.reason == "idle for 60 s"
    assert session.state is SessionState.BROKEN


def test_an_unknown_code_is_a_server_error_that_ends_the_session():
    session = in_episode()
    session.request(messages.Step, data={})
    with pytest.raises(ServerError) as caught:
        session.receive(frame("error", {}))
    assert caught.value.code == "UNKNOWN"
    assert session.state is SessionState.BROKEN


def test_closing_is_the_last_word():
    session = in_episode()
    assert decode_json(session.request(messages.Close)) == {"type": "close"}
    assert session.state is SessionState.CLOSED
    session.lose("the socket is gone")
    assert session.state is SessionState.CLOSED
    with pytest.raises(SessionStateError) as caught:
        session.request(messages.State)
    assert caught.value.state == "closed"


@pytest.mark.parametrize(
    ("kind", "fields", "answer"),
    [
        (messages.State, {}, frame("state", {"step_count": 0}, id=2)),
        (messages.Mcp, {"data": {}}, frame("mcp", {}, id=2)),
        (messages.Render, {}, frame("x-render", {"value": None}, id=2)),
        (messages.Call, {"data": messages.CallSettings(name="f")}, frame("x-call", {"value": 1}, id=2)),
        (messages.GetAttr, {"data": messages.AttributeSettings(name="f")}, frame("x-get_attr", {"value": 1}, id=2)),
        (messages.SetAttr, {"data": messages.AssignmentSettings(name="f", values=[1])}, frame("x-set_attr", {}, id=2)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_other_requests_leave_the_state_as_it_is(kind, fields, answer):
    session = Session(extended=True)
    session.request(messages.Open)
    session.receive(frame("x-open", OPENED, id=1))
    session.request(kind, **fields)
    assert session.receive(answer).id == 2
    assert session.state is SessionState.OPEN


@given(data=st.dictionaries(st.sampled_from(["message", "code", "errors", "active_sessions"]), ANY_JSON))
def test_an_error_frame_of_any_content_is_a_typed_error(data):
    session = in_episode()
    session.request(messages.Step, data={})
    with pytest.raises(OpenEnvGymError):
        session.receive(frame("error", data))


def test_keys_that_are_one_in_json_are_refused_and_nothing_is_pending() -> None:
    session = Session(extended=False)
    with pytest.raises(ValueMappingError) as caught:
        session.request(messages.Reset, data={"a": {1: "a", "1": "b"}})
    assert caught.value.path == "$.data.a"
    assert session.request(messages.Reset)
