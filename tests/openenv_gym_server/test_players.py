"""Tests of ``openenv_gym_server.players``; whole sessions of them are in ``test_lane_vector.py``."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError
from openenv_gym_server.gym_making import make_env
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.models import Models
from openenv_gym_server.players import GymPlayer, ModelPlayer
from tests.openenv_gym_server.rendering import Rendering, no_wait
from tests.text_envs import Heard, Say


class Old:
    """An environment of the old API."""

    observation_space = action_space = gymnasium.spaces.Discrete(3)
    mood = "old"

    def reset(self) -> int:
        return 0

    def step(self, action: Any) -> Any:
        return action, 1, True, {"TimeLimit.truncated": True}


def test_an_old_environment_plays_and_tells_what_it_did_not_take() -> None:
    player = GymPlayer(make_env(Old, None, {}), "Old")
    assert player.reset(seed=5, options={"a": 1}) == (0, {})
    assert len(player.notes) == 2
    assert player.plain(player.step(2)) == (2, 1.0, False, True, {"TimeLimit.truncated": True})
    assert player.attribute("mood", "all", [], {}) == "old"
    player.set_attribute("mood", "new", "all")
    player.set_attribute("fresh", 1, "all")
    assert player.attribute("mood", "all", [], {}) == "new"
    assert (player.attribute("fresh", "all", [], {}), player.state()) == (1, None)
    with pytest.raises(EnvironmentExecutionError, match="render"):
        player.render()
    player.close()


def test_attributes_are_found_through_wrappers_and_methods_are_called() -> None:
    player = GymPlayer(gymnasium.make("CartPole-v1"), "CartPole-v1")
    assert player.attribute("gravity", frozenset({"gravity"}), [], {}) == 9.8
    player.set_attribute("gravity", 1.0, "all")
    assert player.attribute("gravity", "all", [], {}) == 1.0
    with pytest.raises(InvalidActionError, match="did you mean gravity"):
        player.attribute("gravty", "all", [], {})
    with pytest.raises(InvalidActionError):
        player.set_attribute("gravity", 1.0, frozenset())
    player.close()


def test_an_environment_of_models_plays_by_its_envelopes() -> None:
    player = ModelPlayer(HostedEnvironment(Rendering(), Models(Say, Heard), no_wait))
    observation, info = player.reset(seed=3, options={"colour": "red"})
    assert (observation["echo"], info) == ("ready", {})
    assert len(player.notes) == 1
    step = player.step(Say(message="bye"))
    assert (step[0]["echo"], *step[1:]) == ("bye", 1.0, True, False, {})
    assert player.plain(step) is step
    state = player.state()
    assert state is not None
    assert state["step_count"] == 1
    assert isinstance(player.render(), np.ndarray)
    assert player.attribute("label", "all", [], {}) == "a label"
    assert player.attribute("count", "all", [1], {"start": 2}) == (3,)
    player.set_attribute("label", "another", "all")
    assert player.attribute("label", "all", [], {}) == "another"
    player.close()
