"""Tests of ``openenv_gym.types``."""

from __future__ import annotations

from typing import Any

import pytest
from openenv.core.client_types import StepResult as StockStepResult
from openenv.core.env_server import types as stock
from pydantic import BaseModel, ValidationError

from openenv_gym import types


@pytest.mark.parametrize(
    "name",
    [
        "Action",
        "ConcurrencyConfig",
        "EnvironmentMetadata",
        "GetTaskRangeRequest",
        "GetTaskRequest",
        "HealthResponse",
        "ListTasksRequest",
        "NumTasksRequest",
        "Observation",
        "ResetRequest",
        "SchemaResponse",
        "ServerCapacityStatus",
        "SessionInfo",
        "State",
        "StepRequest",
        "StepResponse",
    ],
)
def test_names_fields_defaults_and_strictness_are_openenvs(name: str) -> None:
    ours: type[BaseModel] = getattr(types, name)
    theirs: type[BaseModel] = getattr(stock, name)
    assert list(ours.model_fields) == list(theirs.model_fields)
    assert ours.model_config.get("extra") == theirs.model_config.get("extra")
    for field, info in ours.model_fields.items():
        other = theirs.model_fields[field]
        assert info.is_required() == other.is_required()
        assert info.get_default(call_default_factory=True) == other.get_default(call_default_factory=True)  # type: ignore[call-arg]


def test_modes_and_health_have_openenvs_values() -> None:
    assert [mode.value for mode in types.ServerMode] == [mode.value for mode in stock.ServerMode]
    assert [status.value for status in types.HealthStatus] == [status.value for status in stock.HealthStatus]


def test_a_step_result_has_openenvs_fields() -> None:
    ours: Any = types.StepResult(observation=1)
    theirs: Any = StockStepResult(observation=1)
    assert vars(ours) == vars(theirs)


def test_unknown_fields_are_refused_where_they_mean_nothing() -> None:
    with pytest.raises(ValidationError):
        types.Action(colour=1)  # type: ignore[call-arg]
    assert types.State.model_validate({"score": 1}).model_dump()["score"] == 1


def test_a_server_cannot_have_more_sessions_than_it_holds() -> None:
    status = types.ServerCapacityStatus.from_counts(active=2, max_sessions=2)
    assert status.is_at_capacity
    assert status.available_slots == 0
    with pytest.raises(ValidationError):
        types.ServerCapacityStatus.from_counts(active=3, max_sessions=2)


def test_the_codes_of_error_frames_are_those_of_the_reference() -> None:
    assert {code.name: code.value for code in types.WSErrorCode} == {
        code.name: code.value for code in stock.WSErrorCode
    }
