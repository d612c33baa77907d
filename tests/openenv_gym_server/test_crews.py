"""Tests of ``openenv_gym_server.crews``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gymnasium.vector import AutoresetMode

from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError
from openenv_gym_server.crews import Crew, InTurn, OnThreads, close_all, raise_in_lane
from openenv_gym_server.errors import SessionEndedError, UnsendableError
from openenv_gym_server.lanes import LaneSettings
from openenv_gym_server.worker import Worker
from tests.text_envs import MISBEHAVIOUR


class Recorder:
    """Records what it is asked; raises what it is told to."""

    def __init__(self, index: int) -> None:
        self.notes: list[str] = []
        self.index = index
        self.asked: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.asked.append((seed, options))
        if options:
            raise OSError("it cannot begin")
        return self.index, {}

    def step(self, action: Any) -> Any:
        self.asked.append(action)
        if isinstance(action, BaseException):
            raise action
        return (self.index, action, threading.get_ident()), 1.0, False, False, {}

    plain = staticmethod(lambda result: result)

    def echo(self, value: Any) -> Any:
        if isinstance(value, BaseException):
            raise value
        return self.index, value

    def close(self) -> None:
        self.asked.append("closed")
        if self.index == 1:
            raise EnvironmentExecutionError("it does not close")


NEXT = LaneSettings(AutoresetMode.NEXT_STEP)

Crewed = tuple[Crew, list[Recorder]]


@pytest.fixture(params=["in turn", "on threads"])
def crew(request: pytest.FixtureRequest) -> Iterator[Crewed]:
    players: Any = [Recorder(index) for index in range(3)]
    if request.param == "in turn":
        yield InTurn(players, NEXT), players
        return
    workers = [Worker(f"lane-{index}") for index in range(3)]
    yield OnThreads(players, NEXT, workers), players
    for worker in workers:
        worker.stop()
        assert worker.join(10)


def test_those_that_are_named_play_in_the_order_of_their_names(crew: Crewed) -> None:
    tested, players = crew
    assert tested.reset(range(3), [7, None, 9], None).observations == [0, 1, 2]
    assert [each[:2] for each in tested.step([2, 0], ["a", "b"]).observations] == [(2, "a"), (0, "b")]
    assert [player.asked for player in players] == [[(7, None), "b"], [(None, None)], [(9, None), "a"]]
    assert tested.size == 3
    tested.give_up()  # which threads do not heed


def test_each_thread_is_one_environments_alone(crew: Crewed) -> None:
    tested, _ = crew
    tested.reset(range(3), [None] * 3, None)
    threads = [each[2] for each in tested.step(range(3), "abc").observations]
    assert threads == [each[2] for each in tested.step(range(3), "abc").observations]
    assert len(set(threads)) == (1 if isinstance(tested, InTurn) else 3)


@pytest.mark.parametrize("how", MISBEHAVIOUR)
def test_whatever_one_raises_is_its_own_failure(crew: Crewed, how: str) -> None:
    tested, _ = crew
    tested.reset(range(3), [None] * 3, None)
    with pytest.raises(EnvironmentExecutionError) as caught:
        tested.step([0, 2, 1], ["a", MISBEHAVIOUR[how], "b"])
    assert (caught.value.env_index, caught.value.code) == (2, "EXECUTION_ERROR")
    assert caught.value.__cause__ is MISBEHAVIOUR[how]
    with pytest.raises(EnvironmentExecutionError) as caught:
        tested.reset([1], [None], {"fail": True})
    assert caught.value.env_index == 1
    assert isinstance(caught.value.__cause__, OSError)


def test_each_is_asked_with_its_own_arguments(crew: Crewed) -> None:
    tested, _ = crew
    assert tested.ask("echo", [("a",), ("b",), ("c",)]) == [(0, "a"), (1, "b"), (2, "c")]
    with pytest.raises(InvalidActionError, match="no"):
        tested.ask("echo", [("a",), (InvalidActionError("no"),), ("c",)])


def test_all_are_closed_though_one_does_not_close(crew: Crewed, caplog: pytest.LogCaptureFixture) -> None:
    tested, players = crew
    tested.close()
    assert [player.asked for player in players] == [["closed"]] * 3
    assert "raised in close()" in caplog.text
    if isinstance(tested, OnThreads):
        with pytest.raises(SessionEndedError):
            tested.step([0], ["a"])


def test_a_failure_in_our_words_stays_what_it_is() -> None:
    with pytest.raises(EnvironmentExecutionError) as caught:
        raise_in_lane(UnsendableError("the reward is odd"), 4)
    assert (str(caught.value), caught.value.env_index) == ("the reward is odd", 4)
    assert isinstance(caught.value.__cause__, UnsendableError)
    wrapped = EnvironmentExecutionError("the environment broke")
    wrapped.__cause__ = OSError("of its own")
    with pytest.raises(EnvironmentExecutionError) as caught:
        raise_in_lane(wrapped, 4)
    assert isinstance(caught.value.__cause__, OSError)


def test_closing_goes_on_after_one_that_failed() -> None:
    closed: list[int] = []

    def close(index: int) -> Callable[[], None]:
        def closing() -> None:
            closed.append(index)
            raise EnvironmentExecutionError("no")

        return closing

    close_all([close(index) for index in range(3)])
    assert closed == [0, 1, 2]
