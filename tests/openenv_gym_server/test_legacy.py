"""Environments of the old API, one class a variant, as hand-written code of those years looks."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from openenv_gym.errors import EnvironmentExecutionError
from openenv_gym_server.legacy import LegacyEnv, as_gymnasium, looks_legacy, modern_info, modern_reset, modern_step
from tests.exactness.synthetic import Failing, MiddleApi, NewestApi, OldestApi, SeedlessApi, Synthetic


class OldWrapper:
    """A wrapper of the old API hands on whatever it is given."""

    def __init__(self, env):
        self.env = env
        self.action_space, self.observation_space = env.action_space, env.observation_space

    def seed(self, seed=None):
        return self.env.seed(seed)

    def reset(self, **kwargs):
        return self.env.reset(**kwargs)

    def step(self, action):
        return self.env.step(action)

    def render(self, **kwargs):
        return self.env.render(**kwargs)


def rollout(env, seed, steps=20):
    result = [env.reset(seed=seed)[0].tolist()]
    for _ in range(steps):
        obs, reward, terminated, truncated, _ = env.step(1)
        result.append((obs.tolist(), reward, terminated, truncated))
    return result


@pytest.mark.parametrize("kind", [OldestApi, MiddleApi, NewestApi, SeedlessApi])
def test_an_old_environment_is_told_by_its_behaviour(kind):
    assert looks_legacy(kind)
    assert looks_legacy(kind())
    assert isinstance(as_gymnasium(kind()), LegacyEnv)


def test_a_modern_environment_is_returned_as_it_is():
    env = Synthetic()
    assert as_gymnasium(env) is env
    assert not looks_legacy(Synthetic)


def test_a_gymnasium_class_with_the_old_reset_is_legacy():
    class HalfMigrated(gymnasium.Env):
        action_space = observation_space = spaces.Discrete(2)

        def reset(self):
            return 0

    class WithReturnInfo(HalfMigrated):
        def reset(self, *, seed=None, return_info=False, options=None):
            return (1, {}) if return_info else 1

    assert looks_legacy(HalfMigrated)
    assert looks_legacy(HalfMigrated())
    assert as_gymnasium(WithReturnInfo()).reset(seed=1) == (1, {})


def test_a_gymnasium_class_without_its_spaces_yet_is_not_legacy_but_an_instance_is():
    class Spaceless(gymnasium.Env):
        def reset(self, *, seed=None, options=None):
            return 0, {}

    assert not looks_legacy(Spaceless)
    assert looks_legacy(Spaceless())


@pytest.mark.parametrize("kind", [OldestApi, MiddleApi, NewestApi])
@pytest.mark.parametrize("wrap", [lambda env: env, OldWrapper, lambda env: OldWrapper(OldWrapper(env))])
def test_the_same_seed_gives_the_same_episode(kind, wrap):
    first, second = as_gymnasium(wrap(kind())), as_gymnasium(wrap(kind()))
    assert rollout(first, 3) == rollout(second, 3) != rollout(second, 4)
    assert first.take_notes() == []


@pytest.mark.parametrize("kind", [OldestApi, MiddleApi, NewestApi])
def test_a_time_limit_truncates_and_does_not_terminate(kind):
    env = as_gymnasium(kind(limit=1))
    env.reset(seed=0)
    _, _, terminated, truncated, info = env.step(0)
    assert (terminated, truncated) == (False, True)
    assert info.get("TimeLimit.truncated", True) is True


def test_done_without_a_time_limit_terminates():
    assert modern_step((0, 1.0, True, {})) == (0, 1.0, True, False, {})
    assert modern_step((0, 1.0, True, {"TimeLimit.truncated": False}))[2:4] == (True, False)
    assert modern_step((0, 1.0, False, {"TimeLimit.truncated": True}))[2:4] == (False, False)


@pytest.mark.parametrize("done", [True, 1, 1.0, np.bool_(True), np.int64(1), np.array(True), np.array([1])])
def test_done_may_be_any_truth_value_of_those_years(done):
    _, _, terminated, truncated, _ = modern_step((0, 1.0, done, None))
    assert terminated is True
    assert truncated is False


@pytest.mark.parametrize("done", ["yes", None, 2, [True], np.array([True, False])])
def test_any_other_done_is_an_error(done):
    with pytest.raises(EnvironmentExecutionError, match="done"):
        modern_step((0, 1.0, done, {}))


@pytest.mark.parametrize("result", [None, 3, (1, 2, 3), (1, 2, 3, 4, 5, 6), "four"])
def test_a_step_of_another_shape_is_an_error(result):
    with pytest.raises(EnvironmentExecutionError, match="already advanced"):
        modern_step(result)


def test_info_is_a_dict_or_an_error():
    assert modern_info(None) == {}
    with pytest.raises(EnvironmentExecutionError, match="info"):
        modern_info([("a", 1)])


def test_info_of_another_mapping_becomes_a_dict():
    import types

    assert type(modern_info(types.MappingProxyType({"a": 1}))) is dict


def test_a_pair_that_is_the_observation_stays_one():
    space = spaces.Tuple([spaces.Discrete(2), spaces.Dict({"x": spaces.Discrete(2)})])
    assert modern_reset((1, {"x": 1}), space) == ((1, {"x": 1}), {})
    assert modern_reset((1, {"x": 1}), spaces.Discrete(2)) == (1, {"x": 1})


def test_a_seed_that_nothing_takes_is_noted_once():
    env = as_gymnasium(SeedlessApi())
    env.reset(seed=1)
    env.reset(seed=2, options={"a": 1})
    notes = env.take_notes()
    assert len(notes) == 2
    assert "seed" in notes[0]
    assert "options" in notes[1]
    env.reset(seed=3, options={})
    assert env.take_notes() == []


def test_a_reset_with_open_keywords_gets_the_seed():
    class Open(SeedlessApi):
        def reset(self, **kwargs):
            self.got = kwargs
            return super().reset()

    env = as_gymnasium(Open())
    env.reset(seed=1, options={"a": 2})
    assert env.got == {"seed": 1, "options": {"a": 2}}


@pytest.mark.parametrize("wrap", [lambda env: env, OldWrapper])
def test_render_is_asked_for_the_mode(wrap):
    env = as_gymnasium(wrap(OldestApi()), render_mode="rgb_array")
    env.reset()
    env.step(0)
    assert env.render_mode == "rgb_array"
    assert env.render().tolist() == np.ones((2, 2, 3)).tolist()


def test_render_without_a_mode_gives_nothing():
    assert as_gymnasium(OldestApi()).render() is None


def test_the_render_of_the_newest_old_api_takes_no_mode():
    env = as_gymnasium(NewestApi(render_mode="ansi"))
    assert env.render_mode == "ansi"
    assert env.render() == "ansi 0"


def test_an_environment_that_cannot_render_says_so():
    class Blind(OldestApi):
        render = None

    with pytest.raises(EnvironmentExecutionError, match="does not render"):
        as_gymnasium(Blind()).render()


def test_metadata_has_the_keys_of_today():
    env = as_gymnasium(OldestApi())
    assert env.metadata["render_modes"] == ["rgb_array", "ansi"]
    assert env.metadata["render_fps"] == 15
    bare = OldestApi()
    bare.metadata = None
    assert as_gymnasium(bare).metadata == {"render_modes": []}


def test_a_spec_is_understood_where_its_id_is():
    class Spec:
        id, reward_threshold, nondeterministic, max_episode_steps = "Old-v3", 5.0, True, 77

    env = OldestApi()
    env.spec = Spec()
    spec = as_gymnasium(env).spec
    assert (spec.id, spec.reward_threshold, spec.nondeterministic, spec.max_episode_steps) == ("Old-v3", 5.0, True, 77)
    env.spec = gymnasium.spec("CartPole-v1")
    assert as_gymnasium(env).spec is env.spec
    env.spec = type("Spec", (), {"id": "not an id"})()
    assert as_gymnasium(env).spec is None


def test_other_attributes_are_those_of_the_environment_inside():
    env = as_gymnasium(OldestApi(limit=9))
    assert env.limit == 9
    assert env.get_wrapper_attr("limit") == 9
    with pytest.raises(AttributeError):
        _ = env._hidden
    with pytest.raises(AttributeError):
        _ = env.nothing


def test_what_has_no_reset_is_no_environment():
    with pytest.raises(EnvironmentExecutionError, match="reset"):
        as_gymnasium(object())


def test_close_closes_the_environment_inside_if_it_can_be_closed():
    class Closing(OldestApi):
        closed = False

        def close(self):
            self.closed = True

    env = as_gymnasium(Closing())
    env.close()
    assert env.legacy_env.closed
    as_gymnasium(OldestApi()).close()


def test_a_failing_modern_environment_is_modern():
    assert not looks_legacy(Failing())


def test_an_attribute_is_set_where_it_is() -> None:
    class Inside:
        observation_space = action_space = gymnasium.spaces.Discrete(2)
        mood = "calm"

        def reset(self) -> int:
            return 0

        def step(self, action: Any) -> Any:
            return 0, 1.0, False, {}

    env = LegacyEnv(Inside())
    assert env.set_wrapper_attr("mood", "glad")
    assert env.set_wrapper_attr("render_mode", "ansi")
    assert not env.set_wrapper_attr("new", 1, force=False)
    assert env.set_wrapper_attr("new", 1)
    assert (env.legacy_env.mood, env.legacy_env.new, env.render_mode) == ("glad", 1, "ansi")
    assert not hasattr(env.legacy_env, "render_mode")
