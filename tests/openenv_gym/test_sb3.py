"""``VectorEnvAdapter`` and ``make_vec_env`` beside Stable-Baselines3's own ``DummyVecEnv``, step by step."""

from __future__ import annotations

import importlib
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.error import NoAsyncCallError
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import OrderEnforcing
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from openenv_gym import sb3
from openenv_gym.errors import InvalidActionError, MissingExtraError, SettingsError, SpaceMappingError
from openenv_gym.sb3 import VectorEnvAdapter, make_vec_env
from tests.openenv_gym.endings import ENDINGS, Endings
from tests.openenv_gym.same import assert_same, assert_same_rollouts

SAME_STEP = AutoresetMode.SAME_STEP
COUNT = 3


def vector(*, count=COUNT, mode=SAME_STEP, **keywords):
    return SyncVectorEnv([lambda: Endings(**keywords)] * count, autoreset_mode=mode)


def pair(**keywords):
    return VectorEnvAdapter(vector(**keywords)), DummyVecEnv([lambda: Endings(**keywords)] * COUNT)


@pytest.mark.parametrize("talkative", [True, False])
@pytest.mark.parametrize("kind", ["box", "discrete", "dict"])
def test_rollouts_equal_those_of_dummy_vec_env(kind, talkative):
    assert_same_rollouts(*pair(kind=kind, talkative=talkative), steps=20)


@pytest.mark.parametrize("make", [SyncVectorEnv, AsyncVectorEnv])
def test_rollouts_of_cartpole_equal_those_of_dummy_vec_env(make):
    functions = [lambda: gymnasium.make("CartPole-v1", max_episode_steps=25)] * COUNT
    ours = VectorEnvAdapter(make(functions, autoreset_mode=SAME_STEP))
    assert_same_rollouts(ours, DummyVecEnv(functions), steps=120)
    ours.close()


def test_the_three_endings_are_told_apart():
    envs = VectorEnvAdapter(vector(count=1))
    envs.reset()
    for terminated, truncated in ENDINGS:
        for step in range(3):
            observations, rewards, dones, (info,) = envs.step(np.zeros(1, np.int64))
            assert (rewards.dtype, dones.dtype, observations.shape) == (np.float32, np.bool_, (1, 2, 3))
            assert dones.tolist() == [step == 2]
            assert ("terminal_observation" in info) == (step == 2)
            assert info["TimeLimit.truncated"] is (step == 2 and truncated and not terminated)
            assert info["step"] == step + 1


def test_an_infos_values_have_the_types_that_the_environment_gave():
    envs = VectorEnvAdapter(vector())
    envs.reset()
    assert {type(info["begun"]) for info in envs.reset_infos} == {float}
    info = envs.step(np.zeros(COUNT, np.int64))[3][1]
    assert {key: type(value) for key, value in info.items()} == {
        "step": int,
        "luck": float,
        "won": bool,
        "vector": np.ndarray,
        "words": str,
        "inner": dict,
        "TimeLimit.truncated": bool,
    }
    assert info["inner"] == {"depth": 1, "_private": 2.5}


def test_infos_without_masks_belong_to_every_environment():
    infos = {
        "r": np.arange(2),
        "label": "all",
        "_odd": 1,
        "part": {"x": np.ones((2, 3))},
        "_part": np.array([True, False]),
    }
    first, second = sb3._unbatch(infos, 2)
    assert second == {"r": 1, "label": "all", "_odd": 1}
    assert_same(first, {"r": 0, "label": "all", "_odd": 1, "part": {"x": np.ones(3)}})


def test_seeds_are_used_at_the_next_reset_and_not_again():
    ours, theirs = pair()
    assert list(ours.seed(5)) == [5, 6, 7]
    theirs.seed(5)
    first = ours.reset()
    assert_same(first, theirs.reset())
    again = ours.reset()
    assert_same(again, theirs.reset())
    assert not np.array_equal(first, again)
    ours.seed(5)
    assert_same(ours.reset(), first)
    assert len(set(ours.seed())) == COUNT


def test_options_for_all_reach_every_environment_once():
    ours, theirs = pair()
    for envs in (ours, theirs):
        envs.seed(1)
        envs.set_options({"level": 2})
    assert_same(ours.reset(), theirs.reset())
    assert [info["asked"] for info in ours.reset_infos] == ["{'level': 2}"] * COUNT
    assert_same(ours.reset_infos, theirs.reset_infos)
    ours.reset()
    assert [info["asked"] for info in ours.reset_infos] == ["None"] * COUNT


@pytest.mark.parametrize("begun", [False, True])
def test_options_of_its_own_reach_each_environment(begun):
    options = [{"level": 1}, {"level": 2, "map": np.zeros(2)}, {"level": 1}]
    ours, theirs = pair()
    for envs in (ours, theirs):
        if begun:
            envs.reset()
        envs.seed(4)
        envs.set_options(options)
    assert_same(ours.reset(), theirs.reset())
    assert_same(ours.reset_infos, theirs.reset_infos)
    actions = np.arange(COUNT)
    assert_same(ours.step(actions)[0], theirs.step(actions)[0])


def test_options_that_cannot_be_compared_are_given_one_by_one():
    envs = VectorEnvAdapter(vector())
    envs.set_options([{"map": np.zeros(2)}, {"map": np.zeros(2)}, {}])
    envs.reset()
    assert ["array" in info["asked"] for info in envs.reset_infos] == [True, True, False]


def test_actions_of_another_dtype_reach_the_environment_in_its_own():
    seen = []

    class Listening(VectorEnvAdapter):
        pass

    env = Listening(vector())
    env.reset()
    env.vector.step = lambda actions: seen.append(actions.dtype) or SyncVectorEnv.step(env.vector, actions)
    env.step(np.zeros(COUNT, np.int32))
    assert seen == [np.int64]


def test_a_step_is_sent_by_its_first_half_where_the_vector_can(monkeypatch):
    calls = []

    class Halves(SyncVectorEnv):
        def step_async(self, actions):
            calls.append("async")
            self.actions = actions

        def step_wait(self):
            calls.append("wait")
            return self.step(self.actions)

    envs = VectorEnvAdapter(Halves([Endings], autoreset_mode=SAME_STEP))
    envs.reset()
    envs.step_async(np.zeros(1, np.int64))
    assert calls == ["async"]
    envs.step_wait()
    assert calls == ["async", "wait"]
    with pytest.raises(NoAsyncCallError):
        envs.step_wait()


def test_a_reset_forgets_the_step_that_is_under_way():
    ours, theirs = pair()
    for envs in (ours, theirs):
        envs.seed(3)
        envs.reset()
    ours.step_async(np.zeros(COUNT, np.int64))
    ours.seed(8)
    theirs.seed(8)
    assert_same(ours.reset(), theirs.reset())
    with pytest.raises(NoAsyncCallError):
        ours.step_wait()


def test_vector_wrappers_are_stepped_through():
    envs = VectorEnvAdapter(gymnasium.wrappers.vector.RecordEpisodeStatistics(vector()))
    envs.reset()
    for _ in range(2):
        envs.step(np.zeros(COUNT, np.int64))
    assert envs.step(np.zeros(COUNT, np.int64))[2].all()
    assert envs.vector.episode_count == COUNT
    envs.close()


def test_attributes_and_methods_are_the_environments():
    ours, theirs = pair(render_mode="rgb_array")
    for envs in (ours, theirs):
        envs.reset()
        envs.set_attr("colour", "red")
        envs.set_attr("colour", "blue", indices=[0, 2])
        assert envs.get_attr("colour") == ["blue", "red", "blue"]
        assert envs.get_attr("colour", indices=1) == ["red"]
        assert envs.env_method("sum", 2, right=3) == [5, 5, 5]
        assert envs.env_method("sum", 2, indices=[-1]) == [2]
        assert envs.has_attr("colour")
        assert not envs.has_attr("smell")
        assert envs.render_mode == "rgb_array"
        assert envs.get_attr("render_mode", [0, 1]) == ["rgb_array"] * 2
        assert envs.get_attr("action_space", 0) == [Endings().action_space]
        assert envs.get_attr("metadata")[0]["render_modes"] == ["rgb_array"]
        assert envs.env_is_wrapped(OrderEnforcing) == [False] * COUNT
        assert [image.shape for image in envs.get_images()] == [(4, 6, 3)] * COUNT
        assert [image.shape for image in envs.env_method("render")] == [(4, 6, 3)] * COUNT
        assert envs.render().shape == (8, 12, 3)
    assert ours.spec is None


def test_images_without_a_render_mode_are_none_with_a_warning():
    envs = VectorEnvAdapter(vector())
    with pytest.warns(UserWarning, match="rgb_array"):
        assert envs.get_images() == [None] * COUNT


def test_wrappers_of_local_environments_are_seen():
    envs = make_vec_env("CartPole-v1", 2, monitor=False)
    assert envs.env_is_wrapped(OrderEnforcing) == [True, True]
    envs.close()


class Elsewhere(VectorEnv):
    """A vector whose environments are out of reach, and some of its calls too."""

    metadata = {"autoreset_mode": "SameStep"}
    num_envs = 2
    single_action_space = Endings().action_space
    single_observation_space = Endings().observation_space

    def get_attr(self, name):
        raise InvalidActionError("not allowed")


def test_attributes_that_a_server_does_not_allow_are_none_that_it_has():
    envs = VectorEnvAdapter(Elsewhere())
    assert not envs.has_attr("secret")
    assert envs.env_is_wrapped(OrderEnforcing, 0) == [False]


def test_a_method_of_some_environments_that_are_elsewhere_is_refused():
    with pytest.raises(SettingsError) as caught:
        VectorEnvAdapter(Elsewhere()).env_method("sum", indices=[0])
    assert caught.value.setting == "indices"


def test_a_vector_without_calls_says_so():
    with pytest.raises(AttributeError, match=r"call\(\)"):
        VectorEnvAdapter(Elsewhere()).env_method("sum")


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_a_vector_in_another_mode_is_refused(mode):
    with pytest.raises(SettingsError) as caught:
        VectorEnvAdapter(vector(mode=mode))
    assert caught.value.setting == "autoreset_mode"


def test_a_vector_that_gives_the_same_arrays_again_is_refused():
    with pytest.raises(SettingsError) as caught:
        make_vec_env("CartPole-v1", vector_kwargs={"copy": False})
    assert caught.value.setting == "copy"


@pytest.mark.parametrize("kind", ["tuple", "text"])
def test_a_space_that_stable_baselines3_has_no_policy_for_is_refused(kind):
    with pytest.raises(SpaceMappingError) as caught:
        VectorEnvAdapter(vector(kind=kind))
    assert caught.value.path == "$"


def test_a_monitor_without_itself_has_no_folder(tmp_path):
    with pytest.raises(SettingsError) as caught:
        make_vec_env("CartPole-v1", monitor=False, monitor_dir=str(tmp_path))
    assert caught.value.setting == "monitor_dir"


def test_the_monitor_writes_its_file(tmp_path):
    folder = tmp_path / "new" / "folder"
    envs = make_vec_env("CartPole-v1", 2, seed=0, monitor_dir=str(folder))
    assert isinstance(envs, VecMonitor)
    envs.reset()
    for _ in range(60):
        envs.step(np.zeros(2, np.int64))
    envs.close()
    header, *rows = (folder / "monitor.csv").read_text().splitlines()
    assert '"CartPole-v1"' in header
    assert len(rows) > 3


def test_a_seed_is_for_the_first_reset_and_the_action_space():
    first, second = (make_vec_env("CartPole-v1", 2, seed=9) for _ in range(2))
    assert_same(first.reset(), second.reset())
    assert [first.action_space.sample() for _ in range(9)] == [second.action_space.sample() for _ in range(9)]


@pytest.mark.parametrize("spec", [False, True])
def test_the_mode_goes_where_each_vectorization_takes_it(spec, monkeypatch):
    asked = []
    monkeypatch.setattr(gymnasium, "make_vec", lambda _, **keywords: asked.append(keywords) or vector(count=1))

    def name(registered):
        return gymnasium.spec(registered) if spec else registered

    make_vec_env(name("openenv/gym-v0"), env_id="CartPole-v1")
    make_vec_env(name("CartPole-v1"), vector_kwargs={"copy": True})
    make_vec_env(name("CartPole-v1"), vectorization_mode="vector_entry_point")
    make_vec_env(name("openenv/gym-v0"), vectorization_mode="async")
    entry_point = {"num_envs": 1, "vectorization_mode": "vector_entry_point", "autoreset_mode": SAME_STEP}
    assert asked == [
        {**entry_point, "env_id": "CartPole-v1"},
        {"num_envs": 1, "vectorization_mode": "sync", "vector_kwargs": {"autoreset_mode": SAME_STEP, "copy": True}},
        entry_point,
        {"num_envs": 1, "vectorization_mode": "async", "vector_kwargs": {"autoreset_mode": SAME_STEP}},
    ]


def test_a_policy_learns_the_same_on_the_adapter_as_on_dummy_vec_env():
    def learned(envs):
        model = PPO("MlpPolicy", envs, n_steps=32, batch_size=64, n_epochs=2, seed=3, device="cpu")
        model.learn(256)
        return model.get_parameters()["policy"], evaluate_policy(model, envs, 4, warn=False)

    ours, theirs = (
        make_vec_env("CartPole-v1", 4),
        VecMonitor(DummyVecEnv([lambda: gymnasium.make("CartPole-v1")] * 4)),
    )
    (weights, score), (expected, expected_score) = learned(ours), learned(theirs)
    assert score == expected_score
    assert all(np.array_equal(weights[name], expected[name]) for name in expected)


def test_without_stable_baselines3_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    monkeypatch.setitem(sys.modules, "stable_baselines3.common.env_util", None)
    monkeypatch.delitem(sys.modules, "openenv_gym.sb3")
    with pytest.raises(MissingExtraError, match=r"openenv-gym\[sb3\]") as caught:
        importlib.import_module("openenv_gym.sb3")
    assert caught.value.extra == "sb3"


def test_the_name_that_gymnasium_has_for_the_count_is_told_of():
    with pytest.raises(SettingsError, match="n_envs=2") as caught:
        make_vec_env("CartPole-v1", num_envs=2)
    assert caught.value.setting == "num_envs"
