"""What a session says of the server's refusals: each fault once, and what to do where the server has not said it."""

import pytest

from openenv_gym import messages
from openenv_gym.errors import CapacityError, EnvironmentExecutionError, InvalidActionError
from openenv_gym.json_text import encode_json
from openenv_gym.session import Session, SessionState
from openenv_gym.session_refusals import name_environments

OBSERVATION = {"observation": {"text": "hi"}, "reward": None, "done": False}


def error(code, message, **facts):
    return encode_json({"type": "error", "data": {"message": message, "code": code, **facts}})


def in_episode():
    session = Session(extended=False)
    session.request(messages.Reset)
    session.receive(encode_json({"type": "observation", "data": OBSERVATION}))
    return session


def test_a_refused_action_names_each_fault_and_the_session_goes_on():
    session = in_episode()
    session.request(messages.Step, data={"action": 7})
    errors = [{"type": "t", "loc": ["action", 2], "msg": "too large", "input": 7}, {"msg": "odd"}, "no object"]
    with pytest.raises(InvalidActionError) as caught:
        session.receive(error("VALIDATION_ERROR", "Invalid message", errors=errors))
    assert caught.value.errors == errors[:2]
    assert caught.value.code == "VALIDATION_ERROR"
    assert str(caught.value) == "the server refused the action: action.2: too large (got 7); odd"
    assert session.state is SessionState.EPISODE


def test_a_refusal_without_faults_keeps_the_servers_own_text():
    session = in_episode()
    session.request(messages.Step, data={})
    with pytest.raises(InvalidActionError) as caught:
        session.receive(error("VALIDATION_ERROR", "Invalid message"))
    assert (str(caught.value), caught.value.errors) == ("the server refused the action: Invalid message", [])


MISSING = {"type": "missing", "loc": ["message"], "msg": "Field required", "input": {"mesage": "x"}}
EXTRA = {"type": "extra_forbidden", "loc": ["mesage"], "msg": "Extra inputs are not permitted", "input": "x"}
SAYS_ITSELF = {"type": "value_error", "loc": ["move"], "msg": "expected 'hit', got 'fold'", "input": "fold"}
CLOSED_MODE = {"type": "mode", "loc": ["type"], "msg": "the server is in production mode", "input": "step"}

NAMED = {"type": "missing_attribute", "loc": ["data", "name"], "msg": "Maze has no attribute 'dor'", "input": "dor"}


@pytest.mark.parametrize(
    ("text", "errors", "told"),
    [
        ("Invalid message", [MISSING], "message: Field required"),
        (
            "Invalid message: message: Field required",
            [MISSING, EXTRA],
            'message: Field required; mesage: Extra inputs are not permitted (got "x")',
        ),
        ("Invalid message: move: expected 'hit', got 'fold'", [SAYS_ITSELF], "move: expected 'hit', got 'fold'"),
        ("Invalid message: type: the server …", [CLOSED_MODE], 'the server is in production mode (got "step")'),
        ("Invalid message", [NAMED], "data.name: Maze has no attribute 'dor'"),
        ("not your turn", [{"type": "refused", "loc": [], "msg": "not your turn"}], "not your turn"),
        ("Of another server", [MISSING], "Of another server: message: Field required"),
    ],
)
def test_a_refusal_tells_each_fault_once(text, errors, told):
    session = in_episode()
    session.request(messages.Step, data={})
    with pytest.raises(InvalidActionError) as caught:
        session.receive(error("VALIDATION_ERROR", text, errors=errors))
    assert str(caught.value) == f"the server refused the action: {told}"


def test_of_many_faults_the_first_ten_are_told_and_all_are_there():
    session = in_episode()
    session.request(messages.State)
    with pytest.raises(InvalidActionError) as caught:
        session.receive(error("VALIDATION_ERROR", "Invalid message", errors=[{"msg": f"no {n}"} for n in range(12)]))
    assert str(caught.value).startswith("the server refused state: no 0; no 1; ")
    assert str(caught.value).endswith("; no 9; and 2 more")
    assert len(caught.value.errors) == 12


def test_a_full_server_ends_the_session_with_its_numbers():
    session = Session(extended=True)
    session.request(messages.Open)
    with pytest.raises(CapacityError) as caught:
        session.receive(error("CAPACITY_REACHED", "Server at capacity", active_sessions=2, max_sessions=2))
    assert (caught.value.active_sessions, caught.value.max_sessions) == (2, 2)
    assert str(caught.value) == ("Server at capacity; raise the server's max_concurrent_envs, or close other sessions")
    assert session.state is SessionState.BROKEN


def test_a_full_server_that_says_itself_what_to_do_is_not_spoken_over():
    text = "Server at capacity. There is one session at a time, whatever max_concurrent_envs is."
    session = Session(extended=False)
    session.request(messages.Reset)
    with pytest.raises(CapacityError) as caught:
        session.receive(error("CAPACITY_REACHED", text))
    assert str(caught.value) == text


def in_vector_episode():
    session = Session(extended=True)
    session.request(messages.Open)
    session.receive(encode_json({"type": "x-open", "data": OPENED, "id": 1}))
    session.request(messages.VectorReset)
    session.receive(encode_json({"type": "x-vector", "data": {"observations": [{}, {}]}, "id": 2}))
    return session


OPENED = {"session_id": "s", "schema": {}, "metadata": {}}
OUT_OF_BOUNDS = "expected an integer from 0 to 1 at $.action, got 2"


@pytest.mark.parametrize(
    ("loc", "message", "told"),
    [
        (["data", "actions", 1, "action"], OUT_OF_BOUNDS, f"environment 7: {OUT_OF_BOUNDS}"),
        (["data", "actions", 0, "move", "x"], "Field required", "environment 4, move, x: Field required"),
        (["data", "actions", 5], "too many", "action 5: too many"),
        (["data", "actions"], "too few", "data.actions: too few"),
    ],
)
def test_a_refused_action_of_several_is_its_environments_and_has_one_path(loc, message, told):
    session = in_vector_episode()
    session.request(messages.VectorStep, data=messages.VectorActions(actions=[{"action": 0}, {"action": 2}]))
    with pytest.raises(InvalidActionError) as caught:
        session.receive(
            error("VALIDATION_ERROR", "Invalid message", errors=[{"type": "t", "loc": loc, "msg": message}])
        )
    assert str(name_environments(caught.value, [4, 7])) == f"the server refused the actions: {told}"


def test_a_failure_names_the_method_that_the_caller_knows():
    session = in_vector_episode()
    session.request(messages.VectorStep, data=messages.VectorActions(actions=[]))
    with pytest.raises(EnvironmentExecutionError) as caught:
        session.receive(error("EXECUTION_ERROR", "no", env_index=1, exception_type="ValueError"))
    assert str(caught.value) == "environment 1 failed in step: ValueError: no"
