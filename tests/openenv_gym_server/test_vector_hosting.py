"""Tests of ``openenv_gym_server.vector_hosting``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from openenv_gym.errors import InvalidActionError
from openenv_gym_server.vector_hosting import HostedVector, not_steppable, wrong_number


def vector(num_envs: int = 4) -> HostedVector:
    made: Any = type("Bare", (HostedVector,), dict.fromkeys(HostedVector.__abstractmethods__))()
    made.num_envs = num_envs
    return made


def test_all_are_meant_where_none_is_named() -> None:
    assert vector().chosen(None) == range(4)
    assert vector().chosen([2, 0]) == [2, 0]
    found = vector().chosen(np.array([3, 1]))
    assert list(map(type, found)) == [int, int]


@pytest.mark.parametrize(
    ("ids", "loc"),
    [
        ([], ["data", "env_ids"]),
        ([0, 4], ["data", "env_ids", 1]),
        ([-1], ["data", "env_ids", 0]),
        ([1, 2, 1], ["data", "env_ids", 2]),
    ],
)
def test_what_names_no_environment_or_one_twice_is_refused_at_its_place(ids: Sequence[int], loc: list[Any]) -> None:
    with pytest.raises(InvalidActionError) as caught:
        vector().chosen(ids)
    assert caught.value.errors is not None
    assert caught.value.errors[0]["loc"] == loc


def test_more_ids_than_there_are_environments_are_refused_by_their_number_alone() -> None:
    class Unread(list[int]):
        def __iter__(self) -> Any:
            raise AssertionError("a million ids are not looked at")

    with pytest.raises(InvalidActionError, match="expected 4 env_ids, one an environment, got 5"):
        vector().chosen(Unread([0, 1, 2, 3, 4]))


def test_tools_have_no_limit_where_there_are_none() -> None:
    assert vector().tool_timeout_s([{}]) is None
    vector().give_up()  # which most have no way to heed


def test_refusals_say_what_to_do() -> None:
    assert "was not reset yet" in str(not_steppable(3, begun=False))
    over = not_steppable(3, begun=True)
    assert "environment 3" in str(over)
    assert 'options["reset_mask"]' in str(over)
    assert "expected 4 actions, one an environment, got 3" in str(wrong_number("actions", 3, 4))
