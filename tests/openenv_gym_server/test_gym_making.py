"""Making an environment from an id, a spec or a factory."""

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from openenv_gym.errors import EnvironmentExecutionError
from openenv_gym_server.gym_making import is_classic_control, make_env, portable
from openenv_gym_server.legacy import LegacyEnv
from tests.exactness.synthetic import OldestApi, Synthetic


def wrappers(env):
    found = []
    while isinstance(env, gymnasium.Wrapper):
        found.append(type(env))
        env = env.env
    return found


def make_old(limit=3):
    return OldestApi(limit)


def make_modern():
    return Synthetic()


def test_an_id_gets_the_wrappers_of_make_but_the_checker():
    env = make_env("CartPole-v1", None, {})
    assert wrappers(env) == [TimeLimit, OrderEnforcing]
    env.close()


def test_the_checker_can_be_asked_for():
    env = make_env("CartPole-v1", None, {"disable_env_checker": False})
    assert PassiveEnvChecker in wrappers(env)
    env.close()


def test_keyword_arguments_reach_make_and_the_environment():
    env = make_env("FrozenLake-v1", "ansi", {"is_slippery": False, "max_episode_steps": 7})
    assert env.spec.max_episode_steps == 7
    assert env.spec.kwargs["is_slippery"] is False
    assert env.render_mode == "ansi"
    env.close()


def test_a_module_is_imported_for_its_ids():
    env = make_env("tests.exactness.synthetic:synthetic/Discrete-v0", None, {})
    assert env.spec.id == "synthetic/Discrete-v0"


def test_a_spec_and_a_class_and_a_function_are_made():
    spec = gymnasium.spec("CartPole-v1")
    assert isinstance(spec, EnvSpec)
    for source in (spec, Synthetic, make_modern, make_old):
        make_env(source, None, {}).close()


def test_a_spec_with_a_callable_entry_point_keeps_it():
    spec = EnvSpec("synthetic/Function-v0", entry_point=make_modern, max_episode_steps=3)
    env = make_env(spec, None, {})
    assert env.spec.entry_point is make_modern
    assert isinstance(env.unwrapped, Synthetic)
    assert wrappers(env) == [TimeLimit, OrderEnforcing]


def test_an_old_environment_is_bridged_under_the_wrappers():
    env = make_env("synthetic/OldestApi-v0", "rgb_array", {"limit": 100})
    assert isinstance(env.unwrapped, LegacyEnv)
    assert env.unwrapped.legacy_env.limit == 100
    assert wrappers(env) == [TimeLimit, OrderEnforcing]
    assert env.spec.entry_point == "tests.exactness.synthetic:OldestApi"
    env.reset(seed=0)
    assert env.render().shape == (2, 2, 3)


def test_an_old_environment_of_a_function_takes_the_render_mode_itself():
    env = make_env(make_old, "ansi", {"limit": 5})
    assert env.render_mode == "ansi"
    assert env.legacy_env.limit == 5


def test_a_modern_factory_that_takes_no_render_mode_is_an_error_that_names_it():
    with pytest.raises(TypeError, match=r"make_modern.*render_mode"):
        make_env(make_modern, "rgb_array", {})


def test_a_spec_without_an_entry_point_is_refused_by_make():
    spec = EnvSpec("synthetic/Nothing-v0", vector_entry_point=make_modern)
    with pytest.raises(gymnasium.error.Error, match="entry_point"):
        make_env(spec, None, {})


@pytest.mark.parametrize(
    ("env_id", "hint"), [("CartPole1-v1", "CartPole"), ("CartPole-v99", "v1"), ("no.such.module:X-v0", "no.such")]
)
def test_an_unknown_id_is_an_error_with_a_hint(env_id, hint):
    with pytest.raises((gymnasium.error.Error, ModuleNotFoundError), match=hint):
        make_env(env_id, None, {})


def test_a_function_of_c_is_asked_by_calling_it():
    with pytest.raises(EnvironmentExecutionError, match="dict without reset"):
        make_env(dict, "ansi", {})


@pytest.mark.parametrize("source", [Synthetic(), 3, None])
def test_anything_else_is_a_type_error(source):
    with pytest.raises(TypeError, match="environment id, an EnvSpec or a callable"):
        make_env(source, None, {})


def test_only_classic_control_is_known_to_be_fast():
    assert is_classic_control("CartPole-v1")
    assert is_classic_control(gymnasium.spec("Pendulum-v1"))
    assert not is_classic_control("FrozenLake-v1")
    assert not is_classic_control("Nothing-v7")
    assert not is_classic_control(Synthetic)
    assert not is_classic_control(EnvSpec("synthetic/Function-v0", entry_point=make_modern))


def test_an_id_is_carried_to_another_process_as_its_spec() -> None:
    assert portable("CartPole-v1") is gymnasium.registry["CartPole-v1"]
    assert portable("NoSuch-v0") == "NoSuch-v0"
    assert portable(str) is str
