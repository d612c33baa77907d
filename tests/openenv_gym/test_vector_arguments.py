"""Seeds, masks, ids and counts that callers pass."""

import numpy as np
import pytest

from openenv_gym.vector_arguments import Generators, check_env_ids, check_min_envs, seeds_for, split_mask


@pytest.mark.parametrize(
    ("seed", "seeds"),
    [
        (None, None),
        (3, [3, 4, 5]),
        (np.int64(3), [3, 4, 5]),
        ([1, None, 2], [1, None, 2]),
        ((1, 1, 1), [1, 1, 1]),
        (np.array([4, 5, 6]), [4, 5, 6]),
        ([None, None, None], None),
    ],
)
def test_seeds_are_one_an_environment(seed, seeds):
    assert seeds_for(seed, 3) == seeds


@pytest.mark.parametrize(("seed", "error"), [([1], ValueError), ([], ValueError), (1.5, TypeError), ("abc", TypeError)])
def test_seeds_that_are_none_are_refused(seed, error):
    with pytest.raises(error):
        seeds_for(seed, 3)


def test_options_without_a_mask_are_for_all():
    assert split_mask(None, 2) == (None, None)
    options = {"low": 1}
    mask, left = split_mask(options, 2)
    assert (mask, left) == (None, options)
    assert left is not options


def test_ids_are_integers_of_different_environments():
    assert check_env_ids([2, 0], 3).tolist() == [2, 0]
    assert check_env_ids(np.array([1], np.uint8), 3).dtype == np.int64


@pytest.mark.parametrize(
    ("env_ids", "error"), [*((bad, ValueError) for bad in ([3], [-1], [1, 1], [[1]], [])), ([0.0], TypeError)]
)
def test_ids_of_no_environments_are_refused(env_ids, error):
    with pytest.raises(error):
        check_env_ids(env_ids, 3)


def test_as_many_are_waited_for_as_there_can_be():
    assert [check_min_envs(number, 3) for number in (None, 1, np.int64(3))] == [1, 1, 3]
    for bad in (0, 4, -1):
        with pytest.raises(ValueError, match="from 1 to 3"):
            check_min_envs(bad, 3)
    with pytest.raises(TypeError):
        check_min_envs(1.5, 3)


def test_generators_follow_the_seeds():
    generators = Generators(2)
    generators.note([5, None], None)
    first = generators.all()
    assert first[0].integers(100) == np.random.default_rng(5).integers(100)
    assert generators.all()[0] is first[0]
    generators.note([6], np.array([1]))
    assert generators.seeds == [5, 6]
    assert generators.all()[0] is first[0]
    assert generators.all()[1] is not first[1]


@pytest.mark.parametrize("seed", ["a", 1.5, b"a", [1, 2.5, 3]])
def test_a_seed_that_is_none_is_told_what_was_expected_and_what_came(seed):
    with pytest.raises(TypeError, match=r"expected seed to be an integer of 0 or more, a list .*, got ") as caught:
        seeds_for(seed, 3)
    assert repr(2.5 if isinstance(seed, list) else seed) in str(caught.value)


def test_options_that_are_no_dictionary_are_refused():
    with pytest.raises(TypeError, match=r"expected options to be a dictionary or None, got \[1\]"):
        split_mask([1], 3)
