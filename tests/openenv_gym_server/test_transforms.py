"""Tests of ``openenv_gym_server.transforms``."""

from __future__ import annotations

import pytest

from openenv_gym.types import Observation
from openenv_gym_server.environment import Environment
from openenv_gym_server.transforms import CompositeTransform, NullTransform, Transform


class Add(Transform[Observation]):
    def __init__(self, reward: float) -> None:
        self.reward = reward

    def __call__(self, observation: Observation) -> Observation:
        return Observation(reward=(observation.reward or 0.0) * 2 + self.reward)


def test_several_are_applied_in_their_order() -> None:
    assert CompositeTransform([Add(1.0), Add(5.0)])(Observation()).reward == 7.0
    assert CompositeTransform([Add(5.0), NullTransform(), Add(1.0)])(Observation()).reward == 11.0


def test_none_leaves_the_observation_as_it_is() -> None:
    observation = Observation(reward=3.0)
    assert CompositeTransform([])(observation) is NullTransform()(observation) is observation


def test_one_that_does_nothing_cannot_be_made() -> None:
    with pytest.raises(TypeError):
        Transform()  # type: ignore[abstract]


def test_an_environment_applies_its_own() -> None:
    class Rewarded(Environment):  # type: ignore[type-arg]
        def reset(self) -> Observation:  # type: ignore[override]
            return Observation()

        def step(self, action: object) -> Observation:  # type: ignore[override]
            return self._apply_transform(Observation())

    assert Rewarded(transform=Add(2.0)).step(None).reward == 2.0
    assert Rewarded().step(None).reward is None
