"""Tests of ``openenv_gym_server.environment``."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from openenv_gym.errors import EnvironmentExecutionError
from openenv_gym.types import State
from openenv_gym_server.environment import Environment
from tests.text_envs import Echo, Heard, Say


def test_reset_and_step_must_be_written() -> None:
    with pytest.raises(TypeError):
        Environment()  # type: ignore[abstract]


def test_everything_else_has_a_default() -> None:
    env = Echo()
    assert env.get_metadata().name == "Echo"
    assert env.codec is None
    assert env.state is None
    assert env.remote_target is env
    with pytest.raises(EnvironmentExecutionError):
        env.render()
    Environment.close(env)


def test_a_subclass_need_not_call_the_base() -> None:
    class Careless(Echo):
        def __init__(self) -> None:
            self.calls = []

    assert Careless()._apply_transform(Heard(echo="x")).echo == "x"
    assert Careless()._apply_rubric(Say(message="x"), Heard()) == 0.0
    Careless()._reset_rubric()


def test_transform_and_rubric_are_applied() -> None:
    class Plain(Environment[Say, Heard, State]):
        def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Heard:
            return Heard(echo=f"{seed} {episode_id}")

        def step(self, action: Say, timeout_s: float | None = None, **kwargs: Any) -> Heard:
            return Heard(echo=f"{action.message} {timeout_s}")

    class Judge:
        resets = 0

        def __call__(self, action: Say, observation: Heard) -> float:
            return 0.5

        def reset(self) -> None:
            self.resets += 1

    async def later(action: Say, observation: Heard) -> float:
        return 0.25

    judge = Judge()
    env = Plain(transform=lambda observation: Heard(echo=observation.echo.upper()), rubric=judge)
    assert env._apply_transform(Heard(echo="x")).echo == "X"
    assert env._apply_rubric(Say(message="x"), Heard()) == 0.5
    assert asyncio.run(env._apply_rubric_async(Say(message="x"), Heard())) == 0.5
    assert asyncio.run(Plain(rubric=later)._apply_rubric_async(Say(message="x"), Heard())) == 0.25
    env._reset_rubric()
    assert judge.resets == 1
    assert asyncio.run(env.reset_async(seed=1, episode_id="e")).echo == "1 e"
    assert asyncio.run(env.step_async(Say(message="x"), timeout_s=2.0)).echo == "x 2.0"


def test_the_default_twins_await_an_asynchronous_method() -> None:
    class Async(Environment[Say, Heard, State]):
        async def reset(self, seed: Any = None, episode_id: Any = None, **kwargs: Any) -> Heard:  # type: ignore[override]
            return Heard(echo="a")

        async def step(self, action: Say, timeout_s: Any = None, **kwargs: Any) -> Heard:  # type: ignore[override]
            return Heard(echo="b")

    assert asyncio.run(Async().reset_async()).echo == "a"
    assert asyncio.run(Async().step_async(Say(message="x"))).echo == "b"
