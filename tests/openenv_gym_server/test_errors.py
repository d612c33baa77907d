"""Tests of ``openenv_gym_server.errors``."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel, ValidationError

from openenv_gym.errors import (
    CapacityError,
    EnvironmentExecutionError,
    EnvironmentFactoryError,
    InvalidActionError,
    MessageTooLargeError,
    ProtocolError,
    ValueMappingError,
)
from openenv_gym_server import errors
from openenv_gym_server.errors import (
    MAX_ECHO_BYTES,
    MAX_FAULTS,
    ConcurrencyConfigurationError,
    SessionEndedError,
    SessionNotFoundError,
    TaskError,
    UnknownTypeError,
    at_capacity,
    encoding,
    error_frame,
    factory_calls,
    fault,
    http_answer,
    invalid_action,
    invalid_message,
    rejected,
    text_of,
    user_code,
)
from openenv_gym_server.plain import plain_json
from tests.text_envs import Say, SilentError


def frame(error: BaseException) -> dict[str, Any]:
    message = json.loads(error_frame(error))
    assert message["type"] == "error"
    return message["data"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ProtocolError("x"), "INVALID_JSON"),
        (UnknownTypeError("x"), "UNKNOWN_TYPE"),
        (InvalidActionError("x"), "VALIDATION_ERROR"),
        (MessageTooLargeError("x"), "VALIDATION_ERROR"),
        (CapacityError("x"), "CAPACITY_REACHED"),
        (EnvironmentFactoryError("x"), "FACTORY_ERROR"),
        (SessionNotFoundError("x"), "SESSION_ERROR"),
        (SessionEndedError("x"), "SESSION_ERROR"),
        (EnvironmentExecutionError("x"), "EXECUTION_ERROR"),
        (RuntimeError("x"), "EXECUTION_ERROR"),
    ],
)
def test_every_error_has_its_code_on_the_wire(error: BaseException, code: str) -> None:
    assert frame(error)["code"] == code
    assert frame(error)["message"] == "x"


def test_a_frame_carries_what_belongs_to_its_code() -> None:
    assert frame(InvalidActionError("x", errors=[{"loc": ["a"]}]))["errors"] == [{"loc": ["a"]}]
    assert frame(InvalidActionError("x"))["errors"] == [{"type": "refused", "loc": [], "msg": "x"}]
    assert frame(MessageTooLargeError("x", size=3, limit=2, setting="s"))["limit"] == 2
    assert frame(at_capacity(2, 2, "advice"))["max_sessions"] == 2
    assert frame(EnvironmentFactoryError("x", factory_name="Make"))["factory_name"] == "Make"


def test_a_frame_repeats_the_id_of_its_request() -> None:
    assert json.loads(error_frame(RuntimeError("x"), 7))["id"] == 7
    assert "id" not in json.loads(error_frame(RuntimeError("x")))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidActionError("x", errors=[]), 422),
        (InvalidActionError("x"), 422),
        (MessageTooLargeError("x"), 413),
        (SessionNotFoundError("x"), 404),
        (at_capacity(1, 1, ""), 503),
        (SessionEndedError("x"), 504),
        (EnvironmentExecutionError("secret"), 500),
        (EnvironmentFactoryError("secret"), 500),
    ],
)
def test_every_error_has_its_http_status(error: BaseException, status: int) -> None:
    answer = http_answer(error)
    assert answer.status == status
    assert "secret" not in str(answer.body)
    assert isinstance(answer.body, str) == (status == 500)


def test_a_refusal_in_an_environments_own_words_is_told_over_http_too() -> None:
    answer = http_answer(InvalidActionError("not your turn"))
    assert answer.body == {"detail": [{"type": "refused", "loc": [], "msg": "not your turn"}]}


def test_the_text_of_an_exception_is_always_text() -> None:
    assert text_of(RuntimeError("a")) == "a"
    assert text_of(RuntimeError()) == "RuntimeError"
    assert text_of(SilentError()) == "SilentError"
    assert text_of(ValueError("half \ud800")) == "half \\ud800"
    assert len(text_of(ValueError("x" * 100_000))) == 10_000


def test_a_refusal_tells_the_first_fault_and_lists_all() -> None:
    error = invalid_message(fault("missing", ["data", "x"], "Field required", {}), fault("b", [], "other", 1))
    assert str(error) == "Invalid message: data.x: Field required"
    assert error.errors is not None
    assert [entry["type"] for entry in error.errors] == ["missing", "b"]
    assert str(invalid_message(fault("b", [], "other", 1))) == "Invalid message: other"


def test_a_custom_validators_exception_becomes_text() -> None:
    with pytest.raises(ValidationError) as caught:
        Say.model_validate({"message": "rude"})
    error = invalid_action(caught.value, ("body",))
    assert error.errors is not None
    (entry,) = error.errors
    assert entry["loc"] == ["body", "message"]
    assert entry["ctx"] == {"error": "rude words are refused"}
    json.dumps(error.errors)


def test_faults_and_their_inputs_are_bounded() -> None:
    class Numbers(BaseModel):
        values: list[int]

    with pytest.raises(ValidationError) as caught:
        Numbers.model_validate({"values": ["x" * 10_000] * 500})
    error = invalid_action(caught.value)
    assert error.errors is not None
    assert len(error.errors) == MAX_FAULTS
    assert len(json.dumps(error.errors)) < 100_000


def test_an_input_without_a_json_form_is_described() -> None:
    assert fault("a", [], "b", object())["input"].startswith("object, ")
    assert fault("a", [], "b", "\ud800")["input"].startswith("str, ")
    assert fault("a", [], "b", float("nan"))["input"] == "NaN"
    assert fault("a", [], "b", "\x00" * 1000)["input"].startswith("str, too large")


def test_a_context_of_other_values_is_kept() -> None:
    with pytest.raises(ValidationError) as caught:
        Say.model_validate({"message": "x", "volume": "loud"})
    assert invalid_action(caught.value).errors is not None

    class Small(BaseModel):
        size: int

        model_config = {"hide_input_in_errors": True}

    with pytest.raises(ValidationError) as caught:
        Small.model_validate({"size": "a"})
    entry = invalid_action(caught.value).errors
    assert entry is not None
    assert entry[0]["type"] == "int_parsing"


def test_a_fault_without_a_url_has_none() -> None:
    from pydantic_core import PydanticCustomError

    class Custom(BaseModel):
        size: int

        def __init__(self, **data: Any) -> None:
            super().__init__(**data)

    error = ValidationError.from_exception_data(
        "Custom", [{"type": PydanticCustomError("odd", "odd one"), "loc": ("a",), "input": 1}]
    )
    refused = invalid_action(error)
    assert refused.errors is not None
    assert "url" not in refused.errors[0]


def test_whatever_an_environment_raises_is_its_error() -> None:
    for raised in (SystemExit(1), KeyboardInterrupt(), StopIteration(), ValueError("v")):
        with pytest.raises(EnvironmentExecutionError) as caught, user_code:
            raise raised
        assert caught.value.__cause__ is raised
    with pytest.raises(InvalidActionError), user_code:
        raise InvalidActionError("refused")
    with user_code:
        pass


def test_a_failing_factory_is_named_with_its_cause() -> None:
    with pytest.raises(EnvironmentFactoryError) as caught, factory_calls("Make"):
        raise OSError("no such device")
    assert caught.value.factory_name == "Make"
    assert "no such device" in str(caught.value)
    with pytest.raises(InvalidActionError), factory_calls("Make"):
        raise InvalidActionError("refused")
    with factory_calls("Make"):
        pass


def test_an_answer_that_cannot_be_sent_says_whether_the_environment_has_moved_on() -> None:
    with pytest.raises(EnvironmentExecutionError, match="already advanced"), encoding("observation", advanced=True):
        raise ValueError("x")
    with pytest.raises(EnvironmentExecutionError) as caught, encoding("state", advanced=False):
        raise ValueError("x")
    assert "advanced" not in str(caught.value)
    with encoding("state", advanced=False):
        pass


def test_a_concurrency_error_names_environment_and_setting() -> None:
    error = ConcurrencyConfigurationError(
        "x", setting="max_concurrent_envs", environment_name="E", max_concurrent_envs=3
    )
    assert (error.setting, error.environment_name, error.max_concurrent_envs) == ("max_concurrent_envs", "E", 3)


class Untouchable(list[Any]):
    """A list of which no more than a few items may be looked at."""

    def __iter__(self) -> Any:
        for index in range(len(self)):
            assert index <= MAX_ECHO_BYTES, "a faulty input is cut before it is converted"
            yield self[index]


@pytest.mark.parametrize(
    "value",
    [
        Untouchable([0] * 1_000_000),
        [Untouchable([0] * 1_000_000)],
        {"a": Untouchable([0] * 1_000_000)},
        [[], [[]], "x" * 1_000_000],
        {"x" * 1_000_000: 1},
        {str(number): 0 for number in range(100_000)},
        10**100_000,
        np.zeros(1_000_000),
        b"x" * 1_000_000,
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_work_on_a_huge_faulty_input_is_bounded(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def convert(value: Any) -> Any:
        raise AssertionError("it is too large to be converted at all")

    monkeypatch.setattr(errors, "plain_json", convert)
    assert fault("a", [], "b", value)["input"] == f"{type(value).__name__}, too large or without a JSON form"


@pytest.mark.parametrize("value", [{"a": [1, {"b": None}]}, [], "text", 2**70, [np.arange(3)], (1, 2), {1}, 0.5])
def test_a_short_faulty_input_is_repeated_as_it_came(value: Any) -> None:
    assert fault("a", [], "b", value)["input"] == plain_json(value)


def test_a_faults_path_and_message_are_bounded() -> None:
    entry = fault("a", ["x" * 1_000_000, 5], "m" * 1_000_000, None)
    assert len(json.dumps(entry)) < 20_000
    assert entry["loc"][1] == 5


def test_faults_beyond_counting_are_told_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    class Numbers(BaseModel):
        values: list[int]

    monkeypatch.setattr(errors, "MAX_COUNTED", 5)
    with pytest.raises(ValidationError) as caught:
        Numbers.model_validate({"values": ["x"] * 6})
    refused = invalid_action(caught.value, ("body",))
    assert refused.errors is not None
    (entry,) = refused.errors
    assert (entry["type"], entry["loc"]) == ("too_many_faults", ["body"])
    assert "6 faults" in entry["msg"]


@pytest.mark.parametrize(("status", "answer"), [(404, 404), (501, 501), (None, 500)])
def test_a_question_about_tasks_is_refused_with_its_status(status: int | None, answer: int) -> None:
    assert http_answer(TaskError("no such thing", status=status)).status == answer


def test_what_cannot_be_sent_is_said_in_our_words_and_never_in_an_environments() -> None:
    for cause, body in (
        (ValueMappingError("no form", path="$"), {"detail": "the state cannot be sent as JSON: no form"}),
        (RuntimeError("a secret"), "Internal Server Error"),
    ):
        with pytest.raises(EnvironmentExecutionError) as caught, encoding("state", advanced=False):
            raise cause
        assert http_answer(caught.value) == (500, body)


@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(2), RuntimeError("half \ud800"), SilentError()])
def test_a_validator_that_raises_refuses_the_action_and_is_logged(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    refusal = rejected(error, {"message": "a"})
    assert isinstance(refusal, InvalidActionError)
    assert refusal.errors is not None
    (fault,) = refusal.errors
    assert (fault["type"], fault["loc"], fault["input"]) == ("validation_raised", [], {"message": "a"})
    assert type(error).__name__ in fault["msg"]
    fault["msg"].encode()
    assert "a validator of actions" in caplog.text
