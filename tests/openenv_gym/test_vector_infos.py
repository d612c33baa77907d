"""Batched infos: as Gymnasium batches them, at once and in parts."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.vector import VectorEnv

from openenv_gym.vector_infos import add_info, merge_infos, with_final_observations
from tests.exactness.compare import assert_same_value

CASES = {
    "numbers": [{"a": 1, "b": 2.5, "c": True}, {"a": 3}, {"b": 1.0, "c": False}, {}],
    "numpy": [{}, {"a": np.int16(3), "b": np.float32(1)}, {"b": np.float32(2)}, {"a": np.int16(-1)}],
    "arrays": [{"a": np.arange(3.0)}, {"a": np.ones(3)}, {}, {"a": np.zeros(3), "b": np.array([[1]])}],
    "objects": [{"a": "text"}, {"a": None}, {"a": [1, 2]}, {"a": (3,)}],
    "booleans of NumPy": [{"a": np.bool_(True)}, {}, {"a": np.bool_(False)}, {}],
    "nested": [{"a": {"b": {"c": 1}}}, {"a": {"b": {"d": "x"}, "e": 2.0}}, {}, {"a": {}}],
    "last observations": [
        {"final_obs": np.arange(2), "final_info": {"n": 1}},
        {},
        {"final_obs": {"x": 1}, "final_info": {}},
        {"final_obs": "text"},
    ],
    "late": [{}, {}, {}, {"a": 1}],
    "cast": [{"a": 1.5}, {"a": 2}, {"a": True}, {"a": np.float32(0.25)}],
    "keys that are no text": [{1: 2}, {1: 3}, {}, {None: "x"}],
    "none": [{}, {}, {}, {}],
}


def by_gymnasium(infos):
    vector = VectorEnv()
    vector.num_envs, vector.closed = len(infos), True
    batched: dict = {}
    for row, info in enumerate(infos):
        batched = vector._add_info(batched, info, row)
    return batched


def by_us(infos):
    batched: dict = {}
    for row, info in enumerate(infos):
        add_info(batched, info, row, len(infos))
    return batched


@pytest.mark.parametrize("name", CASES)
def test_infos_are_batched_as_gymnasium_does(name):
    assert_same_value(by_gymnasium(CASES[name]), by_us(CASES[name]))


@pytest.mark.parametrize("sizes", [[4], [2, 2], [1, 3], [1, 1, 1, 1], [3, 1]])
@pytest.mark.parametrize(
    "name", [name for name in CASES if name != "cast"]
)  # a part casts to the type of its own first
def test_parts_come_together_as_if_they_had_never_been_apart(name, sizes):
    merged: dict = {}
    infos, first = CASES[name], 0
    for size in sizes:
        merge_infos(merged, by_us(infos[first : first + size]), np.arange(first, first + size), len(infos))
        first += size
    assert_same_value(by_gymnasium(infos), merged)


def test_parts_may_be_of_rows_in_any_order():
    merged: dict = {}
    merge_infos(merged, by_us([{"a": 1}, {"b": "x"}]), np.array([3, 0]), 4)
    assert_same_value(
        {"a": np.array([0, 0, 0, 1]), "_a": np.array([False, False, False, True])},
        {key: merged[key] for key in ("a", "_a")},
    )
    assert merged["b"].tolist() == ["x", None, None, None]


def test_values_of_one_key_that_do_not_fit_are_an_error_as_there():
    for infos in ([{"a": 1}, {"a": "text"}], [{"a": np.zeros(2)}, {"a": np.zeros(3)}]):
        with pytest.raises((TypeError, ValueError)):
            by_gymnasium(infos)
        with pytest.raises((TypeError, ValueError)):
            by_us(infos)


def test_last_observations_stand_before_their_mask():
    infos = by_us([{"lives": 1, "final_obs": 5, "final_info": {}}, {}])
    wanted = by_us([{"lives": 1, "final_obs": "last", "final_info": {}}, {}])
    del infos["final_obs"]
    assert_same_value(wanted, with_final_observations(infos, np.array([0]), ["last"], 2))
    assert_same_value(by_us([{}, {"final_obs": 3}]), with_final_observations({}, np.array([1]), [3], 2))
