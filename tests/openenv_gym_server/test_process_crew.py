"""Tests of ``openenv_gym_server.process_crew``; whole sessions on it are in ``test_lane_vector.py``."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from gymnasium.vector import AutoresetMode

from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError
from openenv_gym.exact import Opaque
from openenv_gym_server import process_crew
from openenv_gym_server.lanes import LaneSettings
from openenv_gym_server.process_crew import InProcesses
from tests.sockets import until

NEXT = LaneSettings(AutoresetMode.NEXT_STEP)


class LocalError(Exception):
    """One that cannot be pickled."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.call = lambda: text


class Remote:
    """Does what its action says."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if options:
            raise LocalError("it cannot begin")
        return os.getpid(), {"lambda": lambda: 1}

    def step(self, action: Any) -> Any:
        if action == "die":
            os._exit(3)
        if action == "hang":
            threading.Event().wait()
        if action == "raise":
            raise LocalError("it broke")
        if action == "exit":
            raise SystemExit(4)
        if action == "observe":
            return lambda: 1, 1.0, False, False, {}
        return action, 1.0, action == "end", False, {"odd": lambda: 1, "plain": 2}

    def plain(self, result: Any) -> Any:
        return result

    def echo(self, value: Any) -> Any:
        if value == "refuse":
            raise InvalidActionError("refused")
        if value == "raise":
            raise LocalError("no")
        return (lambda: 1) if value == "lambda" else value

    def close(self) -> None:
        return


def made() -> Remote:
    return Remote()


def broken() -> Remote:
    raise OSError("no such device")


@pytest.fixture
def crew() -> Iterator[InProcesses]:
    before = set(multiprocessing.active_children())
    tested = InProcesses([made, made], NEXT)  # type: ignore[list-item]  # the methods of a reset and a step
    yield tested
    tested.close()
    assert set(multiprocessing.active_children()) == before


def test_each_plays_in_a_process_of_its_own_and_tells_where_it_is(crew: InProcesses) -> None:
    begun = crew.reset([0, 1], [1, 2], None)
    assert len({*begun.observations, os.getpid()}) == 3
    assert isinstance(begun.infos[0]["lambda"], Opaque)
    rows = crew.step([1, 0], ["end", "b"])
    assert (crew.size, rows.observations, rows.terminations) == (2, ["end", "b"], [True, False])
    assert isinstance(rows.infos[0]["odd"], Opaque)
    assert rows.infos[0]["plain"] == 2


def test_the_end_of_an_episode_travels_with_the_step_that_begins_the_next() -> None:
    crew = InProcesses([made], LaneSettings(AutoresetMode.SAME_STEP))  # type: ignore[list-item]
    crew.reset([0], [None], None)
    rows = crew.step([0], ["end"])
    assert rows.terminations == [True]
    ((row, observation, info),) = rows.ends
    assert (row, observation) == (0, "end")
    assert isinstance(info["odd"], Opaque)
    crew.close()


@pytest.mark.parametrize(("action", "kind", "text"), [("raise", "LocalError", "it broke"), ("exit", "SystemExit", "4")])
def test_whatever_one_raises_is_told_with_its_traceback(crew: InProcesses, action: str, kind: str, text: str) -> None:
    crew.reset([0, 1], [None, None], None)
    with pytest.raises(EnvironmentExecutionError) as caught:
        crew.step([0, 1], ["a", action])
    assert (str(caught.value), caught.value.env_index) == (text, 1)
    cause = caught.value.__cause__
    assert type(cause).__name__ == kind
    assert "in step" in cause.__notes__[0]  # type: ignore[union-attr]
    assert crew.step([0], ["on"]).observations == ["on"]


def test_one_that_cannot_begin_or_gives_what_cannot_travel_is_named(crew: InProcesses) -> None:
    with pytest.raises(EnvironmentExecutionError) as caught:
        crew.reset([1], [None], {"fail": True})
    assert caught.value.env_index == 1
    with pytest.raises(EnvironmentExecutionError) as caught:
        crew.step([0], ["observe"])
    assert caught.value.env_index == 0


def test_a_process_that_ends_is_told_and_keeps_nobody_waiting(crew: InProcesses) -> None:
    for _ in range(2):
        with pytest.raises(EnvironmentExecutionError, match="exit code 3") as caught:
            crew.step([0, 1], ["a", "die"])
        assert caught.value.env_index == 1


def test_each_is_asked_with_its_own_arguments(crew: InProcesses) -> None:
    assert crew.ask("echo", [("a",), ("b",)]) == ["a", "b"]
    with pytest.raises(InvalidActionError, match="refused"):
        crew.ask("echo", [("a",), ("refuse",)])
    with pytest.raises(EnvironmentExecutionError, match="no"):
        crew.ask("echo", [("a",), ("raise",)])
    with pytest.raises(EnvironmentExecutionError):
        crew.ask("echo", [("a",), ("lambda",)])
    assert crew.ask("echo", [("a",), ("b",)]) == ["a", "b"]


def test_one_that_cannot_be_made_ends_the_others() -> None:
    before = set(multiprocessing.active_children())
    with pytest.raises(Exception, match="no such device") as caught:
        InProcesses([made, broken], NEXT)  # type: ignore[list-item]
    assert type(caught.value).__name__ == "OSError"
    assert set(multiprocessing.active_children()) == before


def test_one_that_hangs_ends_once_it_is_given_up(crew: InProcesses) -> None:
    crew.reset([0, 1], [None, None], None)
    timer = threading.Timer(0.2, crew.give_up)
    timer.start()
    with pytest.raises(EnvironmentExecutionError, match="has ended with exit code -9") as caught:
        crew.step([0, 1], ["a", "hang"])
    assert caught.value.env_index == 1
    timer.join()


def test_many_that_do_not_close_are_killed_within_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_crew, "CLOSE_TIMEOUT_S", 0.5)
    before = set(multiprocessing.active_children())
    crew = InProcesses([stubborn] * 4, NEXT)  # type: ignore[list-item]
    started = time.monotonic()
    crew.close()
    assert time.monotonic() - started < 2.0
    assert set(multiprocessing.active_children()) == before


class Stubborn(Remote):
    def close(self) -> None:
        threading.Event().wait()


def stubborn() -> Remote:
    return Stubborn()


def test_one_that_hangs_ends_with_its_server() -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=hang_in, args=(theirs,))
    server.start()
    theirs.close()
    lane = ours.recv()
    os.kill(lane, 0)
    server.kill()
    server.join()
    until(lambda: not alive(lane))


def hang_in(pipe: Connection) -> None:
    """What a server does whose environment hangs."""
    crew = InProcesses([made], NEXT)  # type: ignore[list-item]
    pipe.send(crew.reset([0], [None], None).observations[0])
    crew.step([0], ["hang"])


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
