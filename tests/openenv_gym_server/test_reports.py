"""Tests of ``openenv_gym_server.reports``."""

from __future__ import annotations

import logging

import pytest

from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError
from openenv_gym_server import reports
from openenv_gym_server.errors import error_frame, raise_as_environments
from openenv_gym_server.reports import MAX_TRACEBACK, PER_WINDOW, report, traceback_text
from tests.text_envs import SilentError


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "_counts", {})


def raised(cause: BaseException) -> EnvironmentExecutionError:
    try:
        try:
            raise cause
        except BaseException as error:
            raise_as_environments(error)
    except EnvironmentExecutionError as error:
        return error


def test_what_an_environment_raised_is_one_record_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    report(raised(KeyError("door")), "abc", "step")
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("openenv_gym_server", logging.ERROR)
    assert record.getMessage().splitlines()[0] == "step in session abc: KeyError was raised"
    assert "KeyError: 'door'" in caplog.text
    assert "raise cause" in caplog.text


def test_an_exception_without_traceback_or_text_is_logged_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    report(SilentError(), None, "GET /schema")
    assert caplog.records[0].getMessage().splitlines()[0] == "GET /schema in no session: SilentError was raised"


def test_a_record_can_be_encoded_whatever_the_exception_says(caplog: pytest.LogCaptureFixture) -> None:
    report(raised(ValueError("half a pair: \ud800")), "abc", "step")
    assert b"half a pair: \\ud800" in caplog.text.encode("utf-8")


def test_a_clients_faults_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    report(InvalidActionError("no such action"), "abc", "step")
    assert not caplog.records


def test_a_flood_of_the_same_is_cut_and_counted(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(PER_WINDOW + 7):
        report(raised(KeyError("door")), "abc", "step")
    report(raised(ValueError("another")), "abc", "step")
    assert len(caplog.records) == PER_WINDOW + 1
    monkeypatch.setattr(reports, "WINDOW_S", -1.0)
    report(raised(KeyError("door")), "abc", "step")
    assert "(7 more of the same were not logged)" in caplog.records[-1].getMessage()


def test_the_memory_of_failures_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "_REMEMBERED", 3)
    for number in range(10):
        report(ValueError("x"), None, f"message {number}")
    assert len(reports._counts) == 3


def test_a_traceback_is_bounded_and_keeps_both_ends() -> None:
    text = traceback_text(raised(ValueError("x" * 100_000 + " the end")))
    assert len(text) <= MAX_TRACEBACK
    assert text.startswith("Traceback")
    assert text.endswith(" the end\n")


def test_a_traceback_begins_with_the_first_frame_of_the_environments_own() -> None:
    text = traceback_text(raised(ValueError("theirs")))
    assert text.count("File ") == 1
    assert __file__ in text


def test_a_frame_has_the_exceptions_type_and_its_traceback_only_where_it_is_shared() -> None:
    error = raised(KeyError("door"))
    assert b'"exception_type":"KeyError"' in error_frame(error)
    assert b"traceback" not in error_frame(error)
    assert b"traceback" in error_frame(error, share_traceback=True)
    assert b"exception_type" not in error_frame(InvalidActionError("no"), share_traceback=True)
