"""Tests of ``openenv_gym_server.dispatch``."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from openenv_gym.info import decode_exact, encode_exact
from openenv_gym.messages import Mcp
from openenv_gym_server import parsing
from openenv_gym_server.dispatch import HANDLERS, perform, respond
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.models import Models
from openenv_gym_server.parsing import Terms, read
from openenv_gym_server.remote_names import UNREACHABLE
from tests.openenv_gym_server.rendering import OURS, STOCK, Rendering, no_wait
from tests.text_envs import Bare, Heard, Say


@pytest.fixture
def hosted() -> HostedEnvironment:
    return HostedEnvironment(Rendering(), Models(Say, Heard), no_wait)


def ask(hosted: HostedEnvironment, message: object, terms: Terms = STOCK) -> dict[str, Any]:
    text = message if isinstance(message, str) else json.dumps(message)
    answer = respond(hosted, text, terms)
    assert isinstance(answer, str)
    return json.loads(answer)


def code_of(answer: dict[str, Any]) -> str:
    assert answer["type"] == "error"
    return answer["data"]["code"]


def test_an_episode_goes_through(hosted: HostedEnvironment) -> None:
    first = ask(hosted, {"type": "reset", "data": {"seed": 3, "episode_id": "one"}})
    assert first == {
        "type": "observation",
        "data": {"observation": {"metadata": {}, "echo": "ready", "extra": None}, "reward": None, "done": False},
    }
    answer = ask(hosted, {"type": "step", "data": {"message": "hello"}})
    assert answer["data"]["observation"]["echo"] == "hello"
    assert answer["data"]["reward"] == 1.0
    assert ask(hosted, {"type": "state"}) == {"type": "state", "data": {"episode_id": "one", "step_count": 1}}


def test_close_has_no_answer(hosted: HostedEnvironment) -> None:
    assert respond(hosted, '{"type":"close"}', STOCK) is None


def test_a_json_rpc_request_is_given_back_for_it_may_be_about_other_sessions(hosted: HostedEnvironment) -> None:
    request = {"jsonrpc": "2.0", "id": 4, "method": "tools/list"}
    assert respond(hosted, json.dumps({"type": "mcp", "data": request}), STOCK) == Mcp(data=request)


@pytest.mark.parametrize(
    ("message", "code", "loc"),
    [
        ("{", "INVALID_JSON", None),
        ('{"type":"step","data":{"message":NaN}}', "INVALID_JSON", None),
        ('{"type":"step","data":{"volume":1e999}}', "INVALID_JSON", None),
        ('{"type":"step","data":{"message":"\\ud800"}}', "INVALID_JSON", None),
        ("[" * 100_000, "INVALID_JSON", None),
        ("[1]", "VALIDATION_ERROR", []),
        ("null", "VALIDATION_ERROR", []),
        ('"step"', "VALIDATION_ERROR", []),
        ("{}", "UNKNOWN_TYPE", None),
        ('{"type":"jump"}', "UNKNOWN_TYPE", None),
        ('{"type":5}', "UNKNOWN_TYPE", None),
        ('{"type":["a"]}', "UNKNOWN_TYPE", None),
        ('{"type":"x-open"}', "UNKNOWN_TYPE", None),
        ('{"type":"x-render","data":{}}', "UNKNOWN_TYPE", None),
        ('{"type":"step"}', "VALIDATION_ERROR", ["data"]),
        ('{"type":"step","data":[1]}', "VALIDATION_ERROR", ["data"]),
        ('{"type":"step","data":null}', "VALIDATION_ERROR", ["data"]),
        ('{"type":"reset","data":null}', "VALIDATION_ERROR", ["data"]),
        ('{"type":"state","data":{}}', "VALIDATION_ERROR", ["data"]),
        ('{"type":"close","data":{}}', "VALIDATION_ERROR", ["data"]),
        ('{"type":"step","data":{},"now":1}', "VALIDATION_ERROR", ["now"]),
        ('{"type":"state","id":1}', "VALIDATION_ERROR", ["id"]),
        ('{"type":"reset","data":{"seed":-1}}', "VALIDATION_ERROR", ["data", "seed"]),
        ('{"type":"reset","data":{"seed":true}}', "VALIDATION_ERROR", ["data", "seed"]),
        ('{"type":"reset","data":{"seed":"5"}}', "VALIDATION_ERROR", ["data", "seed"]),
        ('{"type":"reset","data":{"episode_id":5}}', "VALIDATION_ERROR", ["data", "episode_id"]),
        ('{"type":"reset","data":{"episode_id":"%s"}}' % ("x" * 256), "VALIDATION_ERROR", ["data", "episode_id"]),
        ('{"type":"step","data":{}}', "VALIDATION_ERROR", ["message"]),
        ('{"type":"step","data":{"message":5}}', "VALIDATION_ERROR", ["message"]),
        ('{"type":"step","data":{"message":"a","colour":1}}', "VALIDATION_ERROR", ["colour"]),
        ('{"type":"step","data":{"message":"rude"}}', "VALIDATION_ERROR", ["message"]),
    ],
)
def test_bad_input_is_told_with_its_path_and_never_reaches_the_environment(
    hosted: HostedEnvironment, message: str, code: str, loc: list[str] | None
) -> None:
    ask(hosted, {"type": "reset"})
    before = list(hosted.env.calls)
    answer = ask(hosted, message)
    assert code_of(answer) == code
    if loc is not None:
        assert answer["data"]["errors"][0]["loc"] == loc
    assert hosted.env.calls == before
    assert ask(hosted, {"type": "step", "data": {"message": "on"}})["type"] == "observation"
    assert hosted.steps == 1


@pytest.mark.parametrize("message", ["raise", "exit", "interrupt", "silent", "pydantic", "surrogate", "stop"])
def test_whatever_the_environment_raises_the_session_goes_on(hosted: HostedEnvironment, message: str) -> None:
    answer = ask(hosted, {"type": "step", "data": {"message": message}})
    assert code_of(answer) == "EXECUTION_ERROR"
    assert answer["data"]["message"]
    assert ask(hosted, {"type": "step", "data": {"message": "on"}})["type"] == "observation"


@pytest.mark.parametrize("message", ["object", "lone"])
def test_an_observation_that_cannot_be_sent_is_told_with_the_advance(hosted: HostedEnvironment, message: str) -> None:
    answer = ask(hosted, {"type": "step", "data": {"message": message}})
    assert code_of(answer) == "EXECUTION_ERROR"
    assert "already advanced" in answer["data"]["message"]
    assert ask(hosted, {"type": "state"})["data"]["step_count"] == 1


@pytest.mark.parametrize(("message", "sent"), [("array", [[0.0, 1.0], [2.0, 3.0]]), ("nan", "NaN"), ("bytes", "/wA=")])
def test_values_json_does_not_have_are_never_null(hosted: HostedEnvironment, message: str, sent: object) -> None:
    answer = ask(hosted, {"type": "step", "data": {"message": message}})
    assert answer["data"]["observation"]["extra"] == sent


def test_a_message_above_the_limit_names_size_and_setting(hosted: HostedEnvironment) -> None:
    terms = Terms(max_message_bytes=100, extended=True)
    answer = ask(hosted, {"type": "step", "id": 1, "data": {"message": "x" * 200}}, terms)
    assert code_of(answer) == "VALIDATION_ERROR"
    assert answer["data"]["setting"] == "max_message_size_mb"
    assert answer["data"]["limit"] == 100


@pytest.mark.parametrize("kind", ["reset", "step", "state"])
def test_production_has_no_control_messages(hosted: HostedEnvironment, kind: str) -> None:
    message: dict[str, Any] = {"type": kind}
    if kind == "step":
        message["data"] = {"message": "x"}
    answer = ask(hosted, message, Terms(production=True))
    assert code_of(answer) == "VALIDATION_ERROR"
    assert "production mode, where reset, step and state do not exist" in answer["data"]["message"]
    assert "--mode simulation" in answer["data"]["message"]
    assert hosted.env.calls == []


def test_ids_are_repeated_by_answers_and_errors(hosted: HostedEnvironment) -> None:
    assert ask(hosted, {"type": "state", "id": 1}, OURS)["id"] == 1
    assert ask(hosted, {"type": "step", "id": "a", "data": {"message": 1}}, OURS)["id"] == "a"
    assert ask(hosted, {"type": "step", "id": 2}, OURS)["id"] == 2
    assert ask(hosted, {"type": "jump", "id": 3}, OURS)["id"] == 3
    for unusable in ('{"type":"jump","id":true}', '{"type":"jump"}', "[1]", "{"):
        assert "id" not in ask(hosted, unusable, OURS)


def test_opening_describes_the_environment_once(hosted: HostedEnvironment) -> None:
    answer = ask(hosted, {"type": "x-open", "id": 1}, Terms(session_id="s", extended=True, opened=False))
    assert answer["data"]["session_id"] == "s"
    assert answer["data"]["resume_token"] is None
    assert answer["data"]["render_mode"] == "rgb_array"
    assert answer["data"]["metadata"]["name"] == "Rendering"
    assert set(answer["data"]["schema"]) == {"action", "observation", "state", "reset_observation"}
    assert code_of(ask(hosted, {"type": "x-open"}, OURS)) == "VALIDATION_ERROR"


def test_opening_an_attached_session_takes_no_settings(hosted: HostedEnvironment) -> None:
    attached = Terms(session_id="s", extended=True, attached=True)
    assert ask(hosted, {"type": "x-open"}, attached)["type"] == "x-open"
    refused = ask(hosted, {"type": "x-open", "data": {"env_kwargs": {"a": 1}}}, attached)
    assert code_of(refused) == "VALIDATION_ERROR"


@pytest.mark.parametrize(
    ("data", "loc"),
    [
        ({}, ["data", "name"]),
        ({"name": 5}, ["data", "name"]),
        ({"name": "count", "more": 1}, ["data", "more"]),
        ({"name": "count", "args": [[1, 2]], "kwargs": []}, ["data", "kwargs"]),
    ],
)
def test_a_fault_inside_data_has_its_path(hosted: HostedEnvironment, data: dict[str, Any], loc: list[str]) -> None:
    answer = ask(hosted, {"type": "x-call", "data": data}, OURS)
    assert code_of(answer) == "VALIDATION_ERROR"
    assert answer["data"]["errors"][0]["loc"] == loc


def test_a_rendering_travels_exactly(hosted: HostedEnvironment) -> None:
    frame = decode_exact(ask(hosted, {"type": "x-render"}, OURS)["data"]["value"])
    assert isinstance(frame, np.ndarray)
    assert frame.dtype == np.uint8
    assert frame.shape == (2, 2, 3)


def test_calls_and_attributes_travel_exactly(hosted: HostedEnvironment) -> None:
    data = {"name": "count", "args": [encode_exact(1), encode_exact(2)], "kwargs": {"start": encode_exact(10)}}
    answer = ask(hosted, {"type": "x-call", "data": data}, OURS)
    assert decode_exact(answer["data"]["value"]) == (11, 12)
    answer = ask(hosted, {"type": "x-get_attr", "data": {"name": "label"}}, OURS)
    assert decode_exact(answer["data"]["value"]) == "a label"


def test_arguments_that_cannot_be_read_are_refused(hosted: HostedEnvironment) -> None:
    unreadable = {"$": "no such tag"}
    for data, loc in (
        ({"args": [1, unreadable]}, ["args", 1]),
        ({"kwargs": {"start": unreadable}}, ["kwargs", "start"]),
    ):
        answer = ask(hosted, {"type": "x-call", "data": {"name": "count", **data}}, OURS)
        assert code_of(answer) == "VALIDATION_ERROR"
        assert answer["data"]["errors"][0]["loc"] == ["data", *loc]


def test_a_live_object_cannot_be_read(hosted: HostedEnvironment) -> None:
    answer = ask(hosted, {"type": "x-get_attr", "data": {"name": "live"}}, OURS)
    assert code_of(answer) == "EXECUTION_ERROR"


@pytest.mark.parametrize("name", ["close", "_apply_rubric", "__class__", "label.x"])
def test_names_that_are_not_allowed_are_refused(hosted: HostedEnvironment, name: str) -> None:
    for kind in ("x-call", "x-get_attr"):
        answer = ask(hosted, {"type": kind, "data": {"name": name}}, OURS)
        assert code_of(answer) == "VALIDATION_ERROR"
        assert answer["data"]["errors"][0]["loc"] == ["data", "name"]
    assert hosted.env.closed == 0


@pytest.mark.parametrize("name", sorted(UNREACHABLE | {"_private", "__class__", "a.b"}))
@pytest.mark.parametrize("allowed", ["all", "listed"])
def test_some_names_are_never_reachable_whatever_is_allowed(hosted: HostedEnvironment, name: str, allowed: str) -> None:
    reached: list[str] = []

    class Everything:
        def __getattr__(self, attribute: str) -> Any:
            reached.append(attribute)
            return lambda *args, **keywords: None

    hosted.env = type("Env", (), {"remote_target": Everything()})()
    terms = Terms(extended=True, remote_names="all" if allowed == "all" else frozenset({name}))
    for kind in ("x-call", "x-get_attr"):
        answer = ask(hosted, {"type": kind, "data": {"name": name}}, terms)
        assert code_of(answer) == "VALIDATION_ERROR"
        assert "never reachable" in answer["data"]["message"]
    assert reached == []


def test_the_name_is_checked_before_the_arguments_are_read(
    hosted: HostedEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_exact(value: Any) -> Any:
        raise AssertionError("the arguments of a call that is refused are not worth the work")

    monkeypatch.setattr(parsing, "decode_exact", read_exact)
    answer = ask(hosted, {"type": "x-call", "data": {"name": "reset", "args": [1], "kwargs": {"a": 1}}}, OURS)
    assert code_of(answer) == "VALIDATION_ERROR"


def test_the_limit_of_a_message_is_one_of_bytes(hosted: HostedEnvironment) -> None:
    text = json.dumps({"type": "step", "data": {"message": "é" * 1000}}, ensure_ascii=False)
    size = len(text.encode())
    assert ask(hosted, text, Terms(max_message_bytes=size))["type"] == "observation"
    refused = ask(hosted, text, Terms(max_message_bytes=size - 1, extended=True))["data"]
    assert (refused["size"], refused["limit"]) == (size, size - 1)
    assert refused["setting"] == "max_message_size_mb"
    assert "max_message_size_mb" in refused["message"]
    assert len(text) < size - 1


@pytest.mark.parametrize(
    "text",
    [
        '{"type":' + "[" * 500 + "]" * 500 + "}",
        '{"type":["' + "x" * 100_000 + '"]}',
        '{"type":"' + "x" * 100_000 + '"}',
        '{"type":"reset","' + "x" * 100_000 + '":1}',
        '{"type":"step","data":{"' + "x" * 100_000 + '":1}}',
        '{"type":"step","data":[' + "1," * 100_000 + "1]}",
        '{"type":"step","data":{' + ",".join(f'"k{n}":{n}' for n in range(20_000)) + "}}",
        '{"type":"x-get_attr","data":{"name":"' + "x" * 100_000 + '"}}',
    ],
)
def test_the_refusal_of_a_huge_message_is_small(hosted: HostedEnvironment, text: str) -> None:
    answer = respond(hosted, text, OURS)
    assert answer is not None
    assert json.loads(answer)["type"] == "error"
    assert len(answer) < 60_000


def test_a_call_that_raises_is_the_environments_error(hosted: HostedEnvironment) -> None:
    assert code_of(ask(hosted, {"type": "x-call", "data": {"name": "fail"}}, OURS)) == "EXECUTION_ERROR"
    assert code_of(ask(hosted, {"type": "x-call", "data": {"name": "label"}}, OURS)) == "VALIDATION_ERROR"


def test_reading_gives_the_request_or_the_error_frame(hosted: HostedEnvironment) -> None:
    request = read('{"type":"state"}', STOCK)
    assert not isinstance(request, str)
    assert perform(hosted, request, STOCK) is not None
    assert isinstance(read("{", STOCK), str)


def test_an_attribute_is_set_where_the_operator_allows_it(hosted: HostedEnvironment) -> None:
    message = {"type": "x-set_attr", "data": {"name": "label", "values": [{"$": "tuple", "items": [1]}]}}
    assert ask(hosted, message, OURS) == {"type": "x-set_attr"}
    assert hosted.env.label == (1,)
    for data, loc in (
        ({"name": "render_mode", "values": [1]}, ["data", "name"]),
        ({"name": "other", "values": [1]}, ["data", "name"]),
        ({"name": "label", "values": []}, ["data", "values"]),
        ({"name": "label", "values": [1, 2]}, ["data", "values"]),
        ({"name": "label", "values": [{"$": "odd"}]}, ["data", "values", 0]),
    ):
        refused = ask(hosted, {"type": "x-set_attr", "data": data}, OURS)
        assert code_of(refused) == "VALIDATION_ERROR"
        assert refused["data"]["errors"][0]["loc"] == loc
    assert hosted.env.label == (1,)


@pytest.mark.parametrize("message", [{"type": "x-vector_reset"}, {"type": "x-vector_step", "data": {"actions": []}}])
def test_what_is_for_several_environments_is_refused_by_one(hosted: HostedEnvironment, message: Any) -> None:
    refused = ask(hosted, message, OURS)
    assert code_of(refused) == "VALIDATION_ERROR"
    assert "one environment" in refused["data"]["message"]


def test_every_answered_message_has_one_function() -> None:
    assert {kind.__name__ for kind in HANDLERS} == {
        "Reset",
        "Step",
        "State",
        "Open",
        "Render",
        "Call",
        "GetAttr",
        "SetAttr",
        "VectorReset",
        "VectorStep",
    }


def test_a_bare_class_is_counted_and_named() -> None:
    hosted = HostedEnvironment(Bare(), Models(Say, Heard), no_wait)
    assert ask(hosted, {"type": "state"})["data"] == {"episode_id": None, "step_count": 0}
    first = ask(hosted, {"type": "reset", "data": {"seed": 1, "difficulty": "hard"}})
    assert len(first["data"]["metadata"]["x-warnings"]) == 2
    again = ask(hosted, {"type": "reset", "data": {"seed": 2}})
    assert "metadata" not in again["data"]
    ask(hosted, {"type": "step", "data": {"message": "x"}})
    state = ask(hosted, {"type": "state"})["data"]
    assert state["step_count"] == 1
    assert isinstance(state["episode_id"], str)
