"""``RemoteEnv`` over binary frames, against real servers: what text gives, to the bit."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text

from openenv_gym.encodings import BinaryEncoding, TextEncoding
from openenv_gym.env import RemoteEnv
from openenv_gym.errors import (
    EnvironmentExecutionError,
    InvalidActionError,
    MessageTooLargeError,
    SessionLostError,
    SettingsError,
    ValueMappingError,
)
from openenv_gym.info import encode_exact
from openenv_gym_server import ServerSettings, create_gym_app
from tests.exactness.synthetic import SPACE_IDS, VALUE_IDS
from tests.openenv_gym.spaces.strategies import assert_same_sample
from tests.openenv_gym.talking import serve_talk
from tests.serving import serve


class Frames(gymnasium.Env):
    """Images beside text, observations of a dtype that has to be cast, and an info that JSON alone would spoil."""

    observation_space = Dict(
        image=Box(0, 255, (20, 30, 3), np.uint8), speed=Box(-np.inf, np.inf, (2,), np.float32), said=Text(20)
    )
    action_space = Box(-1.0, 1.0, (3,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return self._observe(), {"options": options, "mask": np.array([1, 0], np.int8)}

    def _observe(self) -> dict[str, Any]:
        return {
            "speed": np.array([np.nan, -0.0]),
            "said": f"step {self.steps}",
            "image": self.np_random.integers(0, 256, (20, 30, 3), np.uint8),
        }

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if action[0] == 1.0:
            raise RuntimeError("the engine is broken")
        self.steps += 1
        return self._observe(), [np.inf, np.nan, -0.0][self.steps % 3], self.steps > 3, False, {"action": action}


@pytest.fixture(scope="module")
def frames():
    with serve(create_gym_app(Frames, settings=ServerSettings(max_concurrent_envs=8))) as url:
        yield url


@pytest.fixture
def pair(frames):
    text, binary = RemoteEnv(frames, binary=False), RemoteEnv(frames)
    assert isinstance(text._encoding, TextEncoding)
    assert isinstance(binary._encoding, BinaryEncoding)
    yield text, binary
    text.close()
    binary.close()


def heard(env: RemoteEnv, call: Any) -> tuple[Any, list[str], Any]:
    """What a call gives, what it warns of, and the whole last result."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call(env)
    return result, sorted(str(warning.message) for warning in caught), env.last_result


def assert_alike(text: RemoteEnv, binary: RemoteEnv, call: Any) -> None:
    (one, one_warned, one_last), (two, two_warned, two_last) = heard(text, call), heard(binary, call)
    assert_same_sample(two[0], one[0], payloads=False)
    assert encode_exact(two[1:]) == encode_exact(one[1:])
    assert list(map(type, two)) == list(map(type, one))
    assert two_warned == one_warned
    assert two_last == one_last


def test_an_episode_is_the_same_in_both(pair):
    text, binary = pair
    assert_alike(text, binary, lambda env: env.reset(seed=3, options={"level": (1, np.float32(0.5))}))
    text.action_space.seed(3)
    for action in (np.full(3, 0.1, np.float32), np.full(3, 0.1), [0, 0.5, -1], text.action_space.sample()):
        assert_alike(text, binary, lambda env, action=action: env.step(action))
    assert_alike(text, binary, lambda env: env.reset())


@pytest.mark.parametrize("env_id", [*SPACE_IDS, *VALUE_IDS])
@pytest.mark.filterwarnings("ignore")
def test_every_space_and_odd_value_is_the_same_in_both(env_id):
    with serve(create_gym_app(f"tests.exactness.synthetic:{env_id}")) as url:
        text, binary = RemoteEnv(url, binary=False), RemoteEnv(url, binary=True)
        try:
            assert_alike(text, binary, lambda env: env.reset(seed=1))
            text.action_space.seed(1)
            for _ in range(3):
                action = text.action_space.sample()
                assert_alike(text, binary, lambda env, action=action: env.step(action))
        finally:
            text.close()
            binary.close()


@pytest.mark.filterwarnings("ignore:.* was cast")
def test_a_refused_action_is_the_same_error_and_the_episode_goes_on(pair):
    told = []
    for env in pair:
        env.reset(seed=0)
        with pytest.raises(InvalidActionError) as caught:
            env.step([0, 2, 0])
        told.append((caught.value.message, caught.value.errors))
        with pytest.raises(ValueMappingError) as unsendable:
            env.step([0, 0])
        told.append(str(unsendable.value))
        assert env.step(np.zeros(3, np.float32))[0]["said"] == "step 1"
    assert told[:2] == told[2:]


@pytest.mark.filterwarnings("ignore:.* was cast")
def test_an_environment_that_raises_is_the_same_error_and_can_be_reset(pair):
    told = []
    for env in pair:
        env.reset(seed=0)
        with pytest.raises(EnvironmentExecutionError) as caught:
            env.step([1, 0, 0])
        told.append(caught.value.message)
        assert env.reset(seed=0)[0]["said"] == "step 0"
    assert told[0] == told[1]


@pytest.mark.filterwarnings("ignore:.* was cast")
def test_a_binary_session_that_is_lost_is_opened_anew_as_such(pair):
    _, env = pair
    env.reset(seed=0)
    env._shell.abandon("the cable was pulled")
    with pytest.raises(SessionLostError):
        env.step(np.zeros(3, np.float32))
    assert env.reset(seed=0)[0]["said"] == "step 0"
    assert isinstance(env._encoding, BinaryEncoding)


def test_an_answer_above_the_limit_loses_the_session(frames):
    with pytest.raises(MessageTooLargeError), RemoteEnv(frames, max_message_size_mb=0.0018) as env:
        env.reset(seed=0)


def test_the_keyword_survives_pickling(frames):
    env = RemoteEnv(frames, binary=False)
    twin = pickle.loads(pickle.dumps(env))
    assert isinstance(twin._encoding, TextEncoding)
    env.close()
    twin.close()


def test_small_values_travel_as_text_unless_binary_frames_are_asked_for(cartpole):
    for binary, encoding in ((None, TextEncoding), (True, BinaryEncoding)):
        with gymnasium.make("openenv/gym-v0", env_id="CartPole-v1", base_url=cartpole, binary=binary) as env:
            assert isinstance(env.unwrapped._encoding, encoding)
            observation, _ = env.reset(seed=0)
            assert env.action_space == Discrete(2)
            with gymnasium.make("CartPole-v1") as local:
                assert_same_sample(observation, local.reset(seed=0)[0])
                assert_same_sample(env.step(1)[0], local.step(1)[0])


@pytest.mark.parametrize("kind", ["ours", "stock"])
def test_binary_frames_are_not_to_be_had_of_text_environments_and_other_servers(kind):
    with serve_talk(kind) as url:
        with pytest.raises(SettingsError) as caught:
            RemoteEnv(url, binary=True)
        assert caught.value.setting == "binary"
        RemoteEnv(url).close()
