"""Tests of ``openenv_gym_server.closed_mode``."""

from __future__ import annotations

import pytest

from openenv_gym.errors import CapacityError, EnvironmentExecutionError, EnvironmentFactoryError, InvalidActionError
from openenv_gym_server.closed_mode import FAILED, REJECTED, told
from openenv_gym_server.errors import UnsendableError, rejected

SECRET = "no such file: /srv/answers.json"


def test_simulation_tells_everything() -> None:
    error = EnvironmentExecutionError(SECRET)
    assert told(error, production=False) is error


def test_production_tells_that_the_environment_failed_and_not_how() -> None:
    shown = told(EnvironmentExecutionError(SECRET, code="EXECUTION_ERROR"), production=True)
    assert type(shown) is EnvironmentExecutionError
    assert (str(shown), shown.__cause__) == (FAILED, None)


def test_production_names_a_broken_factory_and_not_what_broke_it() -> None:
    error = EnvironmentFactoryError(f"Environment factory 'Rooms' failed. {SECRET}", factory_name="Rooms")
    shown = told(error, production=True)
    assert isinstance(shown, EnvironmentFactoryError)
    assert shown.factory_name == "Rooms"
    assert str(shown) == "Environment factory 'Rooms' failed to create instance."


@pytest.mark.parametrize(
    "error", [UnsendableError("the observation cannot be sent"), CapacityError("full"), InvalidActionError("bad")]
)
def test_the_servers_own_words_are_told_in_production_too(error: EnvironmentExecutionError) -> None:
    assert told(error, production=True) is error


@pytest.mark.parametrize(("production", "message"), [(False, SECRET), (True, FAILED)])
def test_what_is_none_of_ours_the_environment_has_raised(production: bool, message: str) -> None:
    shown = told(FileNotFoundError(SECRET), production=production)
    assert type(shown) is EnvironmentExecutionError
    assert str(shown) == message


def test_production_tells_that_a_check_of_the_environments_own_failed_and_not_how() -> None:
    error = rejected(FileNotFoundError(SECRET), {"type": "call_tool"})
    assert SECRET in str(told(error, production=False))
    shown = told(error, production=True)
    assert isinstance(shown, InvalidActionError)
    assert (str(shown), shown.errors) == (REJECTED, None)
