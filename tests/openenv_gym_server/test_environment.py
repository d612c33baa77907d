"""Tests of ``openenv_gym_server.environment``."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import pytest
from starlette.testclient import TestClient

from openenv_gym.errors import EnvironmentExecutionError
from openenv_gym.types import State
from openenv_gym_server.app import create_app
from openenv_gym_server.environment import Environment
from tests.sockets import ask
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


class Judged(Environment[Say, Heard, State]):
    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Heard:
        self._reset_rubric()
        return self._apply_transform(Heard(echo="ready"))

    def step(self, action: Say, timeout_s: float | None = None, **kwargs: Any) -> Heard:
        observation = Heard(echo=action.message)
        observation.reward = self._apply_rubric(action, observation)
        return self._apply_transform(observation)


class JudgedAsync(Judged):
    async def reset_async(self, seed: Any = None, episode_id: Any = None, **kwargs: Any) -> Heard:
        await self._reset_rubric_async()
        return self._apply_transform(Heard(echo="ready"))

    async def step_async(self, action: Say, timeout_s: Any = None, **kwargs: Any) -> Heard:
        reward = await self._apply_rubric_async(action, Heard())
        return self._apply_transform(Heard(echo=action.message, reward=reward))


class Length:
    begun = 0

    def __call__(self, action: Say, observation: Heard) -> Any:
        return float(len(action.message))

    def reset(self) -> None:
        self.begun += 1


class LengthAsync(Length):
    async def reset_async(self) -> None:
        self.begun += 1

    async def __call__(self, action: Say, observation: Heard) -> Any:
        return float(len(action.message))


def upper(observation: Heard) -> Heard:
    return observation.model_copy(update={"echo": observation.echo.upper()})


@pytest.mark.parametrize(
    ("kind", "rubric"), [(Judged, Length()), (JudgedAsync, Length()), (JudgedAsync, LengthAsync())]
)
def test_an_environment_uses_transform_and_rubric_in_its_own_reset_and_step(kind: Any, rubric: Any) -> None:
    app = create_app(functools.partial(kind, transform=upper, rubric=rubric), Say, Heard)
    with TestClient(app) as client, client.websocket_connect("/ws") as socket:
        assert ask(socket, {"type": "reset"})["data"]["observation"]["echo"] == "READY"
        answer = ask(socket, {"type": "step", "data": {"message": "abc"}})["data"]
        assert (answer["observation"]["echo"], answer["reward"]) == ("ABC", 3.0)
    assert rubric.begun == 1


def test_without_a_rubric_there_is_nothing_to_begin() -> None:
    class Plain(Environment[Say, Heard, State]):
        def reset(self, seed: Any = None, episode_id: Any = None, **kwargs: Any) -> Heard:
            return Heard()

        def step(self, action: Say, timeout_s: Any = None, **kwargs: Any) -> Heard:
            return Heard()

    class Odd:
        def reset_async(self) -> None:
            return None

    asyncio.run(Plain()._reset_rubric_async())
    asyncio.run(Plain(rubric=Odd())._reset_rubric_async())  # type: ignore[arg-type]
