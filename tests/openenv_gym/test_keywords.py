"""Keywords of ``gymnasium.make``: where each belongs, and what is said of those that belong nowhere."""

import pytest
from gymnasium.spaces import Discrete

from openenv_gym.errors import SettingsError
from openenv_gym.keywords import split_keywords


def test_keywords_are_told_apart():
    overrides, connection = split_keywords({"flatten": False, "headers": {"a": "b"}, "action_space": Discrete(2)}, ())
    assert (overrides.flatten, overrides.action_space) == (False, Discrete(2))
    assert connection.headers == {"a": "b"}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("step_timeout", "did you mean 'step_timeout_s'?"),
        ("envkwargs", "did you mean 'env_kwargs'?"),
        ("is_slippery", "env_kwargs={'is_slippery': …}"),
        ("zzz", "there are action_space"),
    ],
)
def test_a_keyword_of_nobody_is_refused_with_what_was_meant(name, hint):
    with pytest.raises(SettingsError) as caught:
        split_keywords({name: 1}, ("env_kwargs",))
    assert caught.value.setting == name
    assert hint in str(caught.value)


def test_a_value_that_cannot_be_is_refused_by_its_name():
    with pytest.raises(SettingsError) as caught:
        split_keywords({"step_timeout_s": -1}, ())
    assert caught.value.setting == "step_timeout_s"
