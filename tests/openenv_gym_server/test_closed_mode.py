"""Tests of ``openenv_gym_server.closed_mode``."""

from __future__ import annotations

import pytest
from fastmcp.exceptions import ToolError
from mcp.server.fastmcp.exceptions import ToolError as SdkToolError

from openenv_gym.errors import CapacityError, EnvironmentExecutionError, EnvironmentFactoryError, InvalidActionError
from openenv_gym_server.closed_mode import FAILED, REJECTED, as_told, reason_of
from openenv_gym_server.errors import UnsendableError, rejected

SECRET = "no such file: /srv/answers.json"


def test_simulation_tells_everything() -> None:
    error = EnvironmentExecutionError(SECRET)
    assert as_told(error, production=False) is error


def test_production_tells_that_the_environment_failed_and_not_how() -> None:
    shown = as_told(EnvironmentExecutionError(SECRET, code="EXECUTION_ERROR"), production=True)
    assert type(shown) is EnvironmentExecutionError
    assert (str(shown), shown.__cause__) == (FAILED, None)


def test_production_names_a_broken_factory_and_not_what_broke_it() -> None:
    error = EnvironmentFactoryError(f"Environment factory 'Rooms' failed. {SECRET}", factory_name="Rooms")
    shown = as_told(error, production=True)
    assert isinstance(shown, EnvironmentFactoryError)
    assert shown.factory_name == "Rooms"
    assert str(shown) == "Environment factory 'Rooms' failed to create instance."


@pytest.mark.parametrize(
    "error", [UnsendableError("the observation cannot be sent"), CapacityError("full"), InvalidActionError("bad")]
)
def test_the_servers_own_words_are_told_in_production_too(error: EnvironmentExecutionError) -> None:
    assert as_told(error, production=True) is error


@pytest.mark.parametrize(("production", "message"), [(False, SECRET), (True, FAILED)])
def test_what_is_none_of_ours_the_environment_has_raised(production: bool, message: str) -> None:
    shown = as_told(FileNotFoundError(SECRET), production=production)
    assert type(shown) is EnvironmentExecutionError
    assert str(shown) == message


def test_production_tells_that_a_check_of_the_environments_own_failed_and_not_how() -> None:
    error = rejected(FileNotFoundError(SECRET), {"type": "call_tool"})
    assert SECRET in str(as_told(error, production=False))
    shown = as_told(error, production=True)
    assert isinstance(shown, InvalidActionError)
    assert (str(shown), shown.errors) == (REJECTED, None)


class BlockedError(ToolError):
    pass


@pytest.mark.parametrize(
    "error",
    [ToolError("no such door"), SdkToolError("no such door"), BlockedError("no such door"), InvalidActionError("no")],
)
def test_what_an_author_raised_to_be_read_is_told_in_both_modes(error: Exception) -> None:
    for production in (True, False):
        assert reason_of(error, "look", production=production) == str(error)


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(SECRET),
        ValueError(SECRET),
        EnvironmentExecutionError(SECRET),
        ToolError(f"Error calling tool 'look': {SECRET}"),
        SdkToolError(f"Error executing tool look: {SECRET}"),
        rejected(FileNotFoundError(SECRET), {}),
        type("ToolError", (Exception,), {})(SECRET),
    ],
)
def test_of_anything_else_production_tells_the_type(error: Exception) -> None:
    assert SECRET in reason_of(error, "look", production=False)
    told = reason_of(error, "look", production=True)
    raised = type(error.__cause__ or error).__name__
    assert told == f"it raised {raised}; its operator finds the reason in the server's log"


def test_the_type_is_that_of_what_was_raised_at_first_and_the_log_has_the_rest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = ToolError(f"Error calling tool 'peek': {SECRET}")
    error.__cause__ = FileNotFoundError(SECRET)
    assert "FileNotFoundError" in reason_of(error, "peek", production=True)
    assert SECRET in caplog.text
    assert "the tool 'peek'" in caplog.text
