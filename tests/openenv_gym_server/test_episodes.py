"""Tests of ``openenv_gym_server.episodes``."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from openenv_gym.errors import InvalidActionError
from openenv_gym_server.episodes import Episodes


def flags(*over: bool) -> np.ndarray:
    return np.array(over, np.bool_)


def counts(episodes: Episodes) -> list[str | None]:
    return [name and name.split("-")[2] for name in episodes.names]


def test_none_has_a_name_or_may_be_stepped_before_it_was_reset() -> None:
    episodes = Episodes(3, AutoresetMode.NEXT_STEP)
    episodes.began([2, 0])
    assert counts(episodes) == ["1", None, "1"]
    episodes.check_steppable([0, 2])
    for refused in (lambda: episodes.check_steppable(range(3)), episodes.check_all_begun):
        with pytest.raises(InvalidActionError, match="environment 1 was not reset yet"):
            refused()
    episodes.began([1])
    episodes.check_steppable(range(3))
    episodes.check_all_begun()


def test_the_step_after_an_end_is_the_first_of_the_next_episode() -> None:
    episodes = Episodes(2, AutoresetMode.NEXT_STEP)
    episodes.began(range(2))
    episodes.stepped(range(2), flags(True, False))
    assert (episodes.steps, counts(episodes)) == ([1, 1], ["1", "1"])
    episodes.stepped([1], flags(True))
    episodes.stepped([1, 0], flags(False, False))
    assert (episodes.steps, counts(episodes)) == ([0, 0], ["2", "2"])


def test_a_reset_after_an_end_is_the_next_episode_itself() -> None:
    episodes = Episodes(1, AutoresetMode.NEXT_STEP)
    episodes.began(range(1))
    episodes.stepped(range(1), flags(True))
    episodes.began([0])
    episodes.stepped(range(1), flags(False))
    assert (episodes.steps, counts(episodes)) == ([1], ["2"])


def test_the_step_that_ends_an_episode_begins_the_next() -> None:
    episodes = Episodes(2, AutoresetMode.SAME_STEP)
    episodes.began(range(2))
    episodes.stepped(range(2), flags(True, False))
    assert (episodes.steps, counts(episodes)) == ([0, 1], ["2", "1"])
    episodes.check_steppable(range(2))


def test_where_nothing_begins_by_itself_only_those_that_go_on_may_be_stepped() -> None:
    episodes = Episodes(3, AutoresetMode.DISABLED)
    episodes.began(range(3))
    episodes.stepped([2, 0], flags(True, False))
    episodes.check_steppable([0, 1])
    with pytest.raises(InvalidActionError, match="episode of environment 2 is over"):
        episodes.check_steppable(range(3))
    episodes.began([2])
    episodes.check_steppable(range(3))
    assert (episodes.steps, counts(episodes)) == ([1, 0, 0], ["1", "1", "2"])
