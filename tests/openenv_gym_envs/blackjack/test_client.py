"""The game's typed client, and the game as a Gymnasium environment, over a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import gymnasium
import pytest

import openenv_gym  # noqa: F401  (registers the ids)
from openenv_gym.errors import InvalidActionError, SettingsError, ValueMappingError
from openenv_gym.spaces import UnicodeText
from openenv_gym_envs.blackjack.app import create_app
from openenv_gym_envs.blackjack.client import BlackjackEnv
from openenv_gym_envs.blackjack.environment import BlackjackEnvironment
from openenv_gym_envs.blackjack.models import BlackjackAction, BlackjackObservation
from openenv_gym_server.settings import ServerSettings
from tests.serving import serve

STAND = BlackjackAction(move="stand")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve(create_app(ServerSettings(allowed_env_kwargs=frozenset({"natural", "sab"})))) as url:
        yield url


def test_a_game_is_played_in_its_own_types(url: str) -> None:
    with BlackjackEnv(url).sync() as client:
        result = client.reset(seed=5, episode_id="mine")
        assert result.observation == BlackjackEnvironment().reset(seed=5)
        result = client.step(STAND)
        assert isinstance(result.observation, BlackjackObservation)
        assert (result.done, result.observation.done) == (True, True)
        assert result.reward == result.observation.reward
        state = client.state()
        assert (state.episode_id, state.step_count) == ("mine", 1)


def test_a_game_is_played_with_await(url: str) -> None:
    async def play() -> bool:
        async with BlackjackEnv(url) as client:
            await client.reset(seed=5)
            return (await client.step(STAND)).done

    assert asyncio.run(play())


@pytest.mark.parametrize("action", [STAND, {"move": "stand"}, "stand", " STAND "], ids=str)
def test_a_move_may_be_given_as_an_action_its_fields_or_the_bare_word(url: str, action: Any) -> None:
    with BlackjackEnv(url).sync() as client:
        client.reset(seed=5)
        assert client.step(action).done is True


@pytest.mark.parametrize("action", ["fold", {"mesage": "hit"}, {"move": "hit", "more": 1}, 1, None, ["hit"], "x" * 999])
def test_another_action_is_refused_before_it_is_sent_with_what_is_expected(url: str, action: Any) -> None:
    with BlackjackEnv(url).sync() as client:
        client.reset(seed=5)
        with pytest.raises(ValueMappingError, match=r"expected BlackjackAction\(move='hit'\), .*'stand'") as caught:
            client.step(action)
        assert caught.value.path == "$.move"
        assert len(str(caught.value)) < 300
        assert client.state().step_count == 0


def test_a_move_after_the_end_leaves_nothing_in_the_servers_log(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with BlackjackEnv(url).sync() as client:
        client.reset(seed=5)
        client.step(STAND)
        with pytest.raises(InvalidActionError, match="the last one is over"):
            client.step(STAND)
    assert caplog.records == []


@pytest.fixture
def env(url: str) -> Iterator[gymnasium.Env[str, str]]:
    with gymnasium.make("openenv/blackjack-v0", base_url=url) as env:
        yield env


def test_the_gymnasium_environment_is_text_in_and_text_out(env: gymnasium.Env[str, str]) -> None:
    assert env.action_space == env.observation_space == UnicodeText()
    local = BlackjackEnvironment()
    for seed in range(20):
        text, info = env.reset(seed=seed)
        assert (text, info) == (local.reset(seed=seed).text, {})
        expected, done = local.step(BlackjackAction(move="hit")), False
        text, reward, done, truncated, info = env.step("Hit")
        assert (text, reward, done, truncated, info) == (expected.text, expected.reward, expected.done, False, {})


def test_another_word_is_a_typed_error_and_the_game_goes_on(env: gymnasium.Env[str, str]) -> None:
    env.reset(seed=0)
    for word in ("fold", ""):
        with pytest.raises(InvalidActionError, match="expected 'hit' or 'stand'"):
            env.step(word)
    assert env.step("stand")[2] is True
    with pytest.raises(InvalidActionError) as caught:
        env.step("stand")
    assert str(caught.value) == (
        "the server refused the action: expected a game that is on, but the last one is over: reset() begins another"
    )
    env.reset()
    assert isinstance(env.step("stand")[0], str)


def test_the_rules_are_the_clients_as_far_as_they_are_allowed(url: str) -> None:
    rewards = {}
    for natural in (True, False):
        env = gymnasium.make("openenv/blackjack-v0", base_url=url, env_kwargs={"natural": natural, "sab": False})
        with env:
            rewards[natural] = {(env.reset(seed=seed), env.step("stand")[1])[1] for seed in range(100)}
    assert rewards[True] - rewards[False] == {1.5}
    with pytest.raises(InvalidActionError, match="cheat"):
        gymnasium.make("openenv/blackjack-v0", base_url=url, env_kwargs={"cheat": True})


def test_the_environment_rebuilt_from_its_spec_is_the_same_game() -> None:
    spec = gymnasium.spec("openenv/blackjack-v0")
    assert spec.kwargs == {"target": "openenv_gym_envs.blackjack"}
    with gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(spec.to_json())) as env:
        assert env.reset(seed=3)[0] == BlackjackEnvironment().reset(seed=3).text


def test_the_client_has_a_server_of_its_own_where_it_is_given_no_address() -> None:
    assert BlackjackEnv.target == "openenv_gym_envs.blackjack"
    with BlackjackEnv().sync() as client:
        assert client.reset(seed=0).observation.text.endswith("Reply hit or stand.")


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(SettingsError):
        BlackjackEnv("http://host?query=1")
