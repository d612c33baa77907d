"""``RemoteVectorEnv`` against real servers: what Gymnasium's users see of it."""

import pickle
import sys

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

import openenv_gym
from openenv_gym.errors import (
    SettingsError,
)
from openenv_gym.providers.process import ProcessProvider
from openenv_gym.vector import RemoteVectorEnv
from openenv_gym_server import ServerSettings, create_gym_app
from tests.interop.flavours import stock_kit, text_case
from tests.openenv_gym.pickled import run_pickled
from tests.openenv_gym.talking import serve_talk
from tests.serving import serve


def test_four_lines_give_what_the_local_environments_give():
    envs = gymnasium.make_vec("openenv/gym-v0", num_envs=4, env_id="CartPole-v1")
    local = gymnasium.make_vec("CartPole-v1", num_envs=4, vectorization_mode="sync")
    np.testing.assert_array_equal(envs.reset(seed=0)[0], local.reset(seed=0)[0])
    for wanted, came in zip(local.step([1, 0, 1, 0]), envs.step([1, 0, 1, 0]), strict=True):
        np.testing.assert_equal(came, wanted)
    envs.close()


def test_it_is_a_gymnasium_vector_env_of_its_own(envs):
    assert isinstance(envs, VectorEnv)
    assert envs.unwrapped is envs
    assert openenv_gym.RemoteVectorEnv is RemoteVectorEnv
    assert envs.single_action_space == gymnasium.spaces.Discrete(2)
    assert envs.action_space == gymnasium.spaces.MultiDiscrete([2, 2, 2])
    assert repr(envs) == "RemoteVectorEnv(num_envs=3)"


@pytest.mark.parametrize("mode", AutoresetMode)
def test_the_autoreset_mode_is_said_in_both_places(roomy, mode):
    for given in (mode, mode.value):
        envs = gymnasium.make_vec("openenv/gym-v0", num_envs=2, base_url=roomy, autoreset_mode=given)
        assert envs.metadata["autoreset_mode"] is mode
        assert envs.unwrapped.autoreset_mode is mode
        assert envs.metadata["render_modes"] == ["human", "rgb_array"]
        envs.close()
    with pytest.raises(SettingsError) as caught:
        RemoteVectorEnv(2, base_url=roomy, autoreset_mode="Sometimes")
    assert caught.value.setting == "autoreset_mode"


def test_a_spec_makes_an_equal_environment(roomy):
    envs = gymnasium.make_vec("openenv/gym-v0", num_envs=2, env_id="CartPole-v1", base_url=[roomy])
    assert (envs.spec.max_episode_steps, envs.spec.reward_threshold) == (500, 475.0)
    spec = gymnasium.envs.registration.EnvSpec.from_json(envs.spec.to_json())
    assert spec == envs.spec
    twin = gymnasium.make_vec(spec)
    assert twin.num_envs == 2
    np.testing.assert_array_equal(twin.reset(seed=3)[0], envs.reset(seed=3)[0])
    envs.close()
    twin.close()


def test_a_spec_keeps_the_time_limit_that_was_asked_for(roomy):
    envs = gymnasium.make_vec("openenv/gym-v0", num_envs=2, base_url=roomy, max_episode_steps=3)
    assert envs.spec.max_episode_steps == 3
    twin = gymnasium.make_vec(envs.spec)
    twin.reset(seed=0)
    assert [twin.step([0, 1])[3].tolist() for _ in range(3)] == [[False] * 2] * 2 + [[True] * 2]
    envs.close()
    twin.close()
    envs.spec = None
    assert envs.spec is None


def test_a_pickle_is_a_fresh_environment_of_the_same_settings(envs):
    envs.reset(seed=0)
    twin = pickle.loads(pickle.dumps(envs))
    np.testing.assert_array_equal(twin.reset(seed=5)[0], envs.reset(seed=5)[0])
    twin.close()


def test_a_factory_works_in_a_spawned_process(roomy):
    import multiprocessing

    def observe():
        import gymnasium

        import openenv_gym  # noqa: F401

        envs = gymnasium.make_vec("openenv/gym-v0", num_envs=2, base_url=roomy)
        try:
            return envs.reset(seed=1)[0]
        finally:
            envs.close()

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = pool.apply_async(run_pickled, (cloudpickle.dumps(observe),)).get(60)
    np.testing.assert_array_equal(observe(), there)


@pytest.mark.parametrize("binary", [True, False])
def test_every_step_gives_fresh_arrays_or_the_same_ones(roomy, binary):
    for copy in (True, False):
        envs = RemoteVectorEnv(2, base_url=roomy, copy=copy, binary=binary)
        first = envs.reset(seed=0)[0]
        second = envs.step([0, 1])[0]
        assert (second is first) is not copy
        local = SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2, copy=copy)
        local.reset(seed=0)
        np.testing.assert_array_equal(second, local.step([0, 1])[0])
        envs.close()


@pytest.mark.parametrize("settings", [{}, {"binary": False}, {"envs_per_session": 1}])
def test_the_same_arrays_within_dictionaries_are_written_to_again(settings):
    class Twofold(gymnasium.Env):
        observation_space = gymnasium.spaces.Dict(
            {
                "steps": gymnasium.spaces.Box(0, 100, (2,), np.float32),
                "both": gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(100), gymnasium.spaces.Text(5)]),
            }
        )
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            self.steps = 0
            return self.seen(), {}

        def step(self, action):
            self.steps += 1 + action
            return self.seen(), 0.0, False, False, {}

        def seen(self):
            return {"steps": np.full(2, self.steps, np.float32), "both": (self.steps, str(self.steps))}

    with serve(create_gym_app(Twofold, settings=ServerSettings(max_concurrent_envs=3))) as url:
        envs = RemoteVectorEnv(3, base_url=url, copy=False, **settings)
        first = envs.reset()[0]
        arrays = first["steps"], first["both"][0]
        for step in range(1, 4):
            seen = envs.step([0, 0, 0])[0]
            assert seen["steps"] is arrays[0]
            assert seen["both"][0] is arrays[1]
            assert (arrays[0][2].tolist(), arrays[1].tolist()) == ([step, step], [step] * 3)
            assert seen["both"][1] == (str(step),) * 3
        seen = envs.reset(options={"reset_mask": np.array([False, True, False])})[0]
        assert seen["both"][0] is arrays[1]
        assert arrays[1].tolist() == [3, 0, 3]
        envs.send([1, 1], [0, 2])
        envs.recv(2)
        assert arrays[1].tolist() == [3, 0, 3]
        assert envs.step([0, 0, 0])[0]["both"][0].tolist() == [6, 1, 6]
        envs.close()


def test_text_is_taken_over_as_it_is_without_copies():
    with serve_talk("stock") as url:
        envs = RemoteVectorEnv(2, base_url=url, copy=False)
        envs.reset()
        assert [envs.step((text, text))[0] for text in "ab"] == [("a", "a"), ("b", "b")]
        envs.close()


def test_methods_and_attributes_of_each_are_reached(pairs):
    assert pairs.call("add", 2, right=3) == (5, 5, 5)
    assert pairs.get_attr("colour") == ("blue",) * 3
    pairs.set_attr("colour", ["red", "green", ("a", 1)])
    assert pairs.get_attr("colour") == ("red", "green", ("a", 1))
    pairs.set_attr("colour", "grey")
    assert pairs.get_attr("colour") == ("grey",) * 3
    with pytest.raises(ValueError, match="3 environments, got 1"):
        pairs.set_attr("colour", ["red"])


def test_renderings_are_one_an_environment(pairs, roomy):
    pairs.step([0, 0, 0])
    assert pairs.render() == ("1 steps",) * 3
    envs = RemoteVectorEnv(2, base_url=roomy, render_mode="rgb_array")
    local = SyncVectorEnv([lambda: gymnasium.make("CartPole-v1", render_mode="rgb_array")] * 2)
    for each in (envs, local):
        each.reset(seed=0)
    np.testing.assert_array_equal(envs.render(), local.render())
    assert envs.render_mode == "rgb_array"
    envs.close()
    local.close()


def test_a_rendering_without_a_mode_is_nothing(envs):
    with pytest.warns(UserWarning, match="render_mode"):
        assert envs.render() == (None, None, None)


def test_keywords_of_the_environment_reach_it(several):
    envs = RemoteVectorEnv(2, base_url=several, env_kwargs={"start": 7})
    assert envs.reset()[0].tolist() == [7, 7]
    envs.close()


def test_a_provider_may_start_the_server():
    envs = RemoteVectorEnv(2, provider=ProcessProvider("CartPole-v1"))
    assert envs.reset(seed=0)[0].shape == (2, 4)
    envs.close()


def test_text_of_a_stock_server_is_a_tuple():
    case = text_case(stock_kit())
    with serve(case.app(3)) as url:
        envs = gymnasium.make_vec("openenv/remote-v0", num_envs=3, base_url=url)
        observations, _ = envs.reset(seed=4)
        assert observations == tuple(case.expected(4 + index)[0]["text"] for index in range(3))
        assert envs.step(("hello",) * 3)[0] == tuple(case.expected(4 + index)[1]["text"] for index in range(3))
        assert envs.observation_space == gymnasium.vector.utils.batch_space(envs.single_observation_space, 3)
        envs.close()


def test_no_call_of_python_is_made_for_each_environment(roomy):
    counts = []
    for num_envs in (4, 32):
        envs = RemoteVectorEnv(num_envs, base_url=roomy, busy_wait_s=0.0)  # which asks as often as it takes
        envs.reset(seed=0)
        actions = envs.action_space.sample()
        envs.step(actions)
        calls: list = []
        sys.setprofile(lambda frame, event, argument, calls=calls: calls.append(event))
        try:
            envs.step(actions)
        finally:
            sys.setprofile(None)
        counts.append(calls.count("call"))
        envs.close()
    assert abs(counts[0] - counts[1]) < 6  # a wait more or less
    assert max(counts) < 200
