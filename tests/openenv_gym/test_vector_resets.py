"""Seeds, masks and options: how episodes of a vector environment begin, and what follows their end."""

import numpy as np
import pytest

from openenv_gym.errors import (
    SessionStateError,
)
from openenv_gym.vector import RemoteVectorEnv


def masked(*rows):
    return {"reset_mask": np.array(rows, np.bool_)}


def test_an_int_stands_for_seeds_one_after_the_other(envs):
    first = envs.reset(seed=7)[0]
    np.testing.assert_array_equal(envs.reset(seed=[7, 8, 9])[0], first)
    assert envs.np_random_seed == (7, 8, 9)
    np.testing.assert_array_equal(envs.reset(seed=[None, 7, None])[0][1], first[0])
    assert envs.np_random_seed == (7, 7, 9)
    assert [random.integers(1000) for random in envs.np_random] == [
        np.random.default_rng(seed).integers(1000) for seed in (7, 7, 9)
    ]


def test_a_list_of_seeds_of_another_length_is_refused(envs):
    with pytest.raises(ValueError, match="3 environments, got 2"):
        envs.reset(seed=[1, 2])
    envs.reset(seed=0)


def test_other_options_are_passed_on_and_the_callers_stay_as_they_are(pairs):
    options = {**masked(1, 0, 1), "low": 0.5, "deep": {"array": np.arange(2)}}
    infos = pairs.reset(options=options)[1]
    assert infos["_options"].tolist() == [True, False, True]
    assert infos["options"]["low"].tolist() == [0.5, 0.0, 0.5]
    assert options.keys() == {"reset_mask", "low", "deep"}
    assert pairs.reset(options={})[1]["options"] == {}
    assert pairs.reset()[1]["options"].tolist() == [None] * 3


def test_a_reset_of_some_comes_after_one_of_all(envs):
    with pytest.raises(SessionStateError, match="reset_mask") as caught:
        envs.reset(options=masked(1, 0, 0))
    assert caught.value.expected == "episode"
    assert envs.reset(seed=0, options=masked(1, 1, 1))[0].shape == (3, 4)


def test_a_step_before_the_first_reset_is_refused(envs):
    with pytest.raises(SessionStateError):
        envs.step([0, 0, 0])
    envs.reset(seed=0)
    envs.step([0, 0, 0])


def test_what_was_not_reset_keeps_its_last_observation(envs):
    envs.reset(seed=0)
    last = envs.step([1, 1, 1])[0]
    kept = last.copy()
    last[:] = 0  # it is the caller's own
    observations = envs.reset(seed=[None, 5, None], options=masked(0, 1, 0))[0]
    np.testing.assert_array_equal(observations[[0, 2]], kept[[0, 2]])
    np.testing.assert_array_equal(observations[1], envs.reset(seed=5)[0][0])


def test_an_ended_episode_takes_no_step_where_nothing_resets_it(roomy):
    envs = RemoteVectorEnv(2, base_url=roomy, autoreset_mode="Disabled", max_episode_steps=2)
    envs.reset(seed=0)
    envs.step([0, 0])
    envs.reset(options=masked(1, 0))
    assert envs.step([0, 0])[3].tolist() == [False, True]
    with pytest.raises(SessionStateError, match=r"environments \[1\] are over") as caught:
        envs.step([0, 0])
    assert caught.value.state == "over"
    with pytest.raises(SessionStateError):
        envs.send([0], [1])
    envs.send([0], [0])
    assert envs.recv()[3].tolist() == [True]
    envs.reset(options=masked(1, 1))
    assert envs.step([0, 0])[3].tolist() == [False, False]
    envs.close()
