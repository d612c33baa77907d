"""The reference's own clients, ``openenv`` 0.10.0, on a Gymnasium environment of ours: as good as the local one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from openenv import GenericEnvClient

from openenv_gym_server.gym_app import create_gym_app
from tests.serving import serve

EPISODES = 3


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve(create_gym_app("CartPole-v1")) as url:
        yield url


@pytest.fixture
def local() -> Iterator[gymnasium.Env[Any, Any]]:
    env = gymnasium.make("CartPole-v1", max_episode_steps=30)
    yield env
    env.close()


def actions(seed: int) -> Iterator[int]:
    yield from map(int, np.random.default_rng(seed).integers(0, 2, 10_000))


def assert_first(result: Any, expected: tuple[Any, dict[str, Any]]) -> None:
    assert_observation(result.observation, expected[0])
    assert (result.reward, result.done) == (None, False)


def assert_same(result: Any, expected: tuple[Any, ...]) -> None:
    observation, reward, terminated, truncated, info = expected
    assert_observation(result.observation, observation)
    assert (result.reward, type(result.reward)) == (reward, float)
    assert result.done is (terminated or truncated)
    assert result.metadata == {"terminated": terminated, "truncated": truncated, "info": info}


def assert_observation(content: dict[str, Any], expected: np.ndarray) -> None:
    assert list(content) == ["obs"]
    assert np.array(content["obs"], expected.dtype).tobytes() == expected.tobytes()


def test_the_synchronous_client_plays_the_same_episodes_as_the_local_environment(
    url: str, local: gymnasium.Env[Any, Any]
) -> None:
    with GenericEnvClient(base_url=url).sync() as client:
        for seed in range(EPISODES):
            assert_first(client.reset(seed=seed, episode_id=f"episode {seed}"), local.reset(seed=seed))
            steps = 0
            for action in actions(seed):
                expected, steps = local.step(action), steps + 1
                assert_same(client.step({"action": action}), expected)
                if expected[2]:
                    break
            state = client.state()
            assert state == {"episode_id": f"episode {seed}", "step_count": steps, "env_id": "CartPole-v1"}


def test_the_asynchronous_client_plays_the_same_episodes_as_the_local_environment(
    url: str, local: gymnasium.Env[Any, Any]
) -> None:
    async def main() -> None:
        async with GenericEnvClient(base_url=url) as client:
            assert_first(await client.reset(seed=7), local.reset(seed=7))
            # Later resets without a seed go on with the environment's own generator.
            for episode in range(EPISODES):
                for action in actions(episode):
                    expected = local.step(action)
                    assert_same(await client.step({"action": action}), expected)
                    if expected[2]:
                        break
                assert_first(await client.reset(), local.reset())

    asyncio.run(main())


def test_a_truncated_episode_is_done_and_says_so() -> None:
    with (
        serve(create_gym_app("CartPole-v1", env_kwargs={"max_episode_steps": 3})) as url,
        GenericEnvClient(base_url=url).sync() as client,
    ):
        client.reset(seed=0)
        results = [client.step({"action": action}) for action in (0, 1, 0)]
    assert [result.done for result in results] == [False, False, True]
    assert (results[-1].metadata["terminated"], results[-1].metadata["truncated"]) == (False, True)


def test_an_action_outside_the_space_is_told_and_changes_nothing(url: str, local: gymnasium.Env[Any, Any]) -> None:
    with GenericEnvClient(base_url=url).sync() as client:
        client.reset(seed=3)
        local.reset(seed=3)
        for wrong in ({"action": 2}, {"action": "1"}, {}, {"action": 1, "more": 1}):
            with pytest.raises(RuntimeError, match="VALIDATION_ERROR"):
                client.step(wrong)
        assert_same(client.step({"action": 1}), local.step(1))
