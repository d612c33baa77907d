"""Tests of ``openenv_gym_server.gym_results``; ``test_gym_environment.py`` has served environments with odd results."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from openenv_gym_server.errors import UnsendableError
from openenv_gym_server.gym_results import as_flag, as_reward, plain_step


@pytest.mark.parametrize(
    ("given", "reward"),
    [
        (1, 1.0),
        (True, 1.0),
        (np.float32(0.5), 0.5),
        (np.array([2.0]), 2.0),
        (np.array(3), 3.0),
        (None, 0.0),
        (0.25, 0.25),
    ],
)
def test_every_reward_becomes_a_float(given: Any, reward: float) -> None:
    found = as_reward(given, "Demo-v0")
    assert (type(found), found) == (float, reward)


@pytest.mark.parametrize("given", ["1.0", b"1", [1.0], np.zeros(2), 1j, 10**400, object()])
def test_what_is_no_number_is_no_reward(given: Any) -> None:
    with pytest.raises(UnsendableError, match="Demo-v0 to give a real number as reward"):
        as_reward(given, "Demo-v0")


def test_numpys_flags_become_pythons() -> None:
    assert as_flag("terminated", np.bool_(True), "Demo-v0") is True
    assert as_flag("terminated", np.array(False), "Demo-v0") is False


@pytest.mark.parametrize("value", [1, "yes", None, np.array([True])])
def test_what_is_no_bool_is_no_flag(value: object) -> None:
    with pytest.raises(UnsendableError, match="terminated as a bool"):
        as_flag("terminated", value, "Demo-v0")


def test_a_step_of_four_or_five_values_becomes_five_plain_ones() -> None:
    info = {"TimeLimit.truncated": True}
    assert plain_step((0, 1, True, info), "Demo-v0") == (0, 1.0, False, True, info)
    found = plain_step([0, np.float64(1), np.bool_(False), np.bool_(True), None], "Demo-v0")
    assert found == (0, 1.0, False, True, {})
    assert list(map(type, found[1:])) == [float, bool, bool, dict]
    assert plain_step((0, 1.0, False, False, MappingProxyType({"a": 1})), "Demo-v0")[4] == {"a": 1}
