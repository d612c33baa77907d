"""Tests of ``openenv_gym_server.vector_infos``."""

from __future__ import annotations

import numpy as np
import pytest

from openenv_gym.errors import EnvironmentExecutionError
from openenv_gym_server.vector_infos import batched
from tests.exactness.compare import assert_same_value


def test_infos_are_batched_by_gymnasiums_rule() -> None:
    infos = batched([(2, {"n": 3, "deep": {"x": 1.5}}), (0, {"n": 4, "text": "a", "array": np.ones(2)})], 3)
    assert_same_value(
        infos,
        {
            "n": np.array([4, 0, 3]),
            "_n": np.array([True, False, True]),
            "deep": {"x": np.array([0.0, 0.0, 1.5]), "_x": np.array([False, False, True])},
            "_deep": np.array([False, False, True]),
            "text": np.array(["a", None, None], object),
            "_text": np.array([True, False, False]),
            "array": np.array([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]),
            "_array": np.array([True, False, False]),
        },
    )


def test_no_infos_are_an_empty_one() -> None:
    assert batched([(0, {}), (1, {})], 2) == {}


def test_infos_that_cannot_be_joined_are_the_second_ones_failure() -> None:
    with pytest.raises(EnvironmentExecutionError) as caught:
        batched([(0, {"key": np.zeros(2)}), (1, {"key": np.zeros(3)})], 2)
    assert caught.value.env_index == 1
