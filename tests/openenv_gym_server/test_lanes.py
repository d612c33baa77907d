"""Tests of ``openenv_gym_server.lanes``."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from openenv_gym_server.gym_results import plain_step
from openenv_gym_server.lanes import Lanes, LaneSettings, Rows


class Script:
    """A player of episodes of so many steps, which notes what it is told to."""

    def __init__(self, length: int = 2) -> None:
        self.notes: list[str] = []
        self.length = length
        self.episode = 0
        self.done = 0
        self.saying: list[str] = []

    def reset(self, **keywords: Any) -> tuple[Any, dict[str, Any]]:
        self.episode, self.done = self.episode + 1, 0
        self.notes += self.saying
        return f"first of {self.episode}", keywords

    def step(self, action: Any) -> Any:
        self.done += bool(action == action)  # an odd one raises
        self.notes += self.saying
        return f"{self.episode}.{self.done}", np.float32(1), self.done == self.length, False, {"action": action}

    def plain(self, result: Any) -> Any:
        return plain_step(result, "Script")


def lane(mode: AutoresetMode, length: int = 2, limit: int | None = None) -> tuple[Lanes, Script]:
    player = Script(length)
    made = Lanes([player], LaneSettings(mode, limit))  # type: ignore[list-item]  # one step and reset are all it has
    reset(made)
    return made, player


def reset(lanes: Lanes, seed: int | None = None, options: dict[str, Any] | None = None) -> Rows:
    rows = Rows()
    lanes.reset(rows, [0], [seed], options)
    return rows


def step(lanes: Lanes, *actions: Any, ids: list[int] | None = None) -> Rows:
    rows = Rows()
    lanes.step(rows, ids or [0], actions)
    return rows


def row(rows: Rows) -> tuple[Any, ...]:
    """The only one."""
    columns = rows.observations, rows.rewards, rows.terminations, rows.truncations, rows.infos
    assert [len(column) for column in columns] == [1] * 5
    return tuple(column[0] for column in columns)


def test_a_reset_begins_an_episode_with_what_it_is_given() -> None:
    tested, _ = lane(AutoresetMode.NEXT_STEP)
    rows = reset(tested, 3, {"a": 1})
    assert (rows.observations, rows.infos) == (["first of 2"], [{"seed": 3, "options": {"a": 1}}])
    assert (rows.rewards, rows.terminations, rows.truncations, rows.ends, rows.notes) == ([], [], [], [], [])


def test_the_step_after_an_end_begins_the_next_episode_as_the_environment_does_by_itself() -> None:
    tested, _ = lane(AutoresetMode.NEXT_STEP)
    assert row(step(tested, "a")) == ("1.1", 1.0, False, False, {"action": "a"})
    assert row(step(tested, "b")) == ("1.2", 1.0, True, False, {"action": "b"})
    assert row(step(tested, "c")) == ("first of 2", 0.0, False, False, {})
    assert row(step(tested, "d"))[0] == "2.1"


def test_a_reset_after_an_end_is_the_next_episode_itself() -> None:
    tested, _ = lane(AutoresetMode.NEXT_STEP, length=1)
    step(tested, "a")
    reset(tested)
    assert row(step(tested, "b"))[0] == "2.1"


def test_the_step_that_ends_an_episode_begins_the_next_and_keeps_the_end() -> None:
    tested, _ = lane(AutoresetMode.SAME_STEP)
    step(tested, "a")
    rows = step(tested, "b")
    assert row(rows) == ("first of 2", 1.0, True, False, {})
    assert rows.ends == [(0, "1.2", {"action": "b"})]


def test_an_end_stays_what_it_was_whatever_the_next_episode_writes_into_it() -> None:
    class Reusing(Script):
        shared = np.zeros(2)
        info: ClassVar[dict[str, Any]] = {"deep": {"array": shared}}

        def reset(self, **keywords: Any) -> tuple[Any, dict[str, Any]]:
            self.shared[:] = -1
            self.info["deep"]["more"] = 1
            return {"a": self.shared, "b": (self.shared,)}, self.info

        def step(self, action: Any) -> Any:
            self.shared[:] = action
            self.info["deep"].pop("more", None)
            return {"a": self.shared, "b": (self.shared,)}, 1.0, True, False, self.info

    tested = Lanes([Reusing()], LaneSettings(AutoresetMode.SAME_STEP))  # type: ignore[list-item]
    reset(tested)
    ((_, observation, info),) = step(tested, 5).ends
    assert (observation["a"].tolist(), observation["b"][0].tolist()) == ([5, 5], [5, 5])
    assert (info["deep"]["array"].tolist(), info["deep"].keys()) == ([5, 5], {"array"})


def test_environments_that_share_an_info_have_each_its_own_row_of_it() -> None:
    shared: dict[str, Any] = {}

    class Sharing(Script):
        def step(self, action: Any) -> Any:
            shared["action"] = action
            return 0, 1.0, False, False, shared

    tested = Lanes([Sharing(), Sharing()], LaneSettings(AutoresetMode.NEXT_STEP))  # type: ignore[list-item]
    assert step(tested, "a", "b", ids=[0, 1]).infos == [{"action": "a"}, {"action": "b"}]


def test_an_episode_stays_over_where_nothing_begins_by_itself() -> None:
    tested, player = lane(AutoresetMode.DISABLED)
    step(tested, "a")
    assert step(tested, "b").terminations == [True]
    assert player.episode == 1


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_the_further_limit_truncates_beside_what_else_has_ended(mode: AutoresetMode) -> None:
    tested, _ = lane(mode, length=5, limit=2)
    flags = [row(step(tested, "a"))[2:4] for _ in range(2)]
    assert flags == [(False, False), (False, True)]
    tested, _ = lane(mode, length=1, limit=1)
    assert row(step(tested, "a"))[2:4] == (True, True)


def test_each_environment_has_its_own_limit_and_end() -> None:
    players = [Script(3), Script(3)]
    tested = Lanes(players, LaneSettings(AutoresetMode.NEXT_STEP, 2))  # type: ignore[arg-type]
    tested.reset(Rows(), [0, 1], [None, None], None)
    step(tested, "a")
    assert step(tested, "a", "b", ids=[1, 0]).truncations == [False, True]
    assert step(tested, "a", "b", ids=[0, 1]).observations == ["first of 2", "1.2"]


def test_the_rows_of_a_step_that_failed_are_of_those_before_it() -> None:
    players = [Script(), Script()]
    tested = Lanes(players, LaneSettings(AutoresetMode.NEXT_STEP))  # type: ignore[arg-type]
    rows = Rows()
    with pytest.raises(AttributeError):
        tested.step(rows, [1, 0], ["a", Odd()])
    assert len(rows.observations) == 1


class Odd:
    """An action that no script can take."""

    def __eq__(self, other: object) -> bool:
        raise AttributeError

    __hash__ = None  # type: ignore[assignment]


def test_notes_go_with_the_rows_that_they_are_of() -> None:
    tested, player = lane(AutoresetMode.SAME_STEP, length=1)
    player.saying = ["hear"]
    assert reset(tested).notes == ["hear"]
    player.saying = []
    assert step(tested, "a").notes == []
    player.saying = ["hear"]
    assert step(tested, "a").notes == ["hear", "hear"]


def test_rows_are_put_after_others() -> None:
    rows = Rows(["a"], [1.0], [True], [False], [{}], [(0, "z", {})], ["x"])
    rows.add(Rows(["b"], [2.0], [False], [True], [{"k": 1}], [(0, "y", {})], ["w"]))
    assert rows == Rows(
        ["a", "b"], [1.0, 2.0], [True, False], [False, True], [{}, {"k": 1}], [(0, "z", {}), (1, "y", {})], ["x", "w"]
    )
