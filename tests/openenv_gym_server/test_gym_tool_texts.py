"""What an agent reads of a Gymnasium environment's tools."""

from typing import ClassVar

import ale_py
import gymnasium
import pytest
from gymnasium import spaces

from openenv_gym_server.gym_environment import GymEnvironment
from openenv_gym_server.gym_tool_texts import about_act, about_named, about_observe, value_text
from tests.exactness.synthetic import Synthetic

gymnasium.register_envs(ale_py)


class Documented(Synthetic):
    """Goes about.

    ## Action Space
    Where to go:
    - 0: nowhere

    ### Observation space

    What is there.

    ## Rewards
    Plenty.
    """


class Verbose(Synthetic):
    __doc__ = "Talks.\n\n## Action Space\n" + "word " * 1_000


class Meaning(Synthetic):
    action_space = spaces.Discrete(3, start=-1)
    names: ClassVar[list[str]] = ["back", "stay", "on"]

    def get_action_meanings(self):
        return self.names


class Meaningless(Meaning):
    def get_action_meanings(self):
        raise RuntimeError("not yet")


class Continuous(Meaning):
    action_space = spaces.Box(-1, 1, (1,))


@pytest.fixture
def made(request):
    environment = GymEnvironment(request.param)
    yield environment
    environment.close()


def texts_of(kind, named=None):
    environment = GymEnvironment(kind)
    try:
        return about_act(environment, named or {}), about_observe(environment)
    finally:
        environment.close()


def test_the_spaces_and_the_authors_words_are_told():
    act, observe = texts_of(Documented)
    assert act == (
        "Take one action in Documented and get the observation that follows. Goes about.\n"
        "The action is an integer from 0 to 3; the observation is an array of 2 numbers from -1.0 to 1.0.\n"
        "Where to go:\n- 0: nowhere"
    )
    assert observe == (
        "Get the last observation of Documented again, without taking an action: an array of 2 numbers from -1.0 to "
        "1.0.\nWhat is there."
    )


def test_a_registered_environments_sections_are_found():
    act, observe = texts_of("FrozenLake-v1")
    assert "- 0: Move left" in act
    assert "current_row * ncols + current_col" in observe


def test_a_long_section_is_cut():
    assert texts_of(Verbose)[0].endswith("word word  …")
    assert len(texts_of(Verbose)[0]) < 2_000


def test_no_reward_is_spoken_of():
    assert "Plenty" not in "".join(texts_of(Documented))


def test_meanings_of_actions_are_told_by_their_numbers():
    assert "The actions: -1 is back, 0 is stay, 1 is on." in texts_of(Meaning)[0]


def test_the_meanings_of_an_atari_game_are_told():
    assert "0 is NOOP, 1 is FIRE" in texts_of("ALE/Pong-v5")[0]


@pytest.mark.parametrize("kind", [Meaningless, Continuous])
def test_without_meanings_there_is_a_description_too(kind):
    assert "The actions:" not in texts_of(kind)[0]


def test_the_operators_names_go_before_the_environments():
    act = texts_of(Meaning, {"left": -1})[0]
    assert "Actions with a tool of their own: -1 is left." in act
    assert "stay" not in act


@pytest.mark.parametrize("made", ["CartPole-v1"], indirect=True)
def test_a_named_action_is_told_with_its_value(made):
    assert (
        about_named(made, "left", 0) == "Take the action left (0) in CartPole-v1 and get the observation that follows."
    )


def test_a_text_is_itself_and_anything_else_its_json():
    assert (value_text("a"), value_text([1, {"b": None}])) == ("a", '[1,{"b":null}]')
