"""``RemoteEnv`` against real servers."""

import pickle

import gymnasium
import httpx
import numpy as np
import pytest

import openenv_gym
from openenv_gym.env import RemoteEnv
from openenv_gym.errors import (
    CapacityError,
    EnvironmentExecutionError,
    InvalidActionError,
    OpenEnvGymWarning,
    RequestTimeoutError,
    SessionLostError,
    SessionStateError,
    SettingsError,
    SpaceMappingError,
    UnreachableError,
    ValueMappingError,
)
from openenv_gym.session import SessionState
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym_server import create_gym_app
from tests.openenv_gym.sleepy import Sleepy, release
from tests.serving import serve


def test_four_lines_give_what_the_local_environment_gives():
    env, local = gymnasium.make("openenv/gym-v0", env_id="CartPole-v1"), gymnasium.make("CartPole-v1")
    with env, local:
        np.testing.assert_array_equal(env.reset(seed=0)[0], local.reset(seed=0)[0])
        observation, reward, terminated, truncated, info = env.step(1)
        np.testing.assert_array_equal(observation, local.step(1)[0])
    assert (reward, terminated, truncated, info) == (1.0, False, False, {})


def test_text_goes_in_and_comes_out():
    with gymnasium.make("openenv/echo-v0") as env:
        env.reset(seed=0)
        assert env.step("Hello, World!")[0] == "Hello, World!"


def test_the_module_in_the_id_registers_it(cartpole):
    gymnasium.make("openenv_gym:openenv/gym-v0", env_id="CartPole-v1", base_url=cartpole).close()


def test_it_is_a_gymnasium_env_of_its_own(env):
    assert isinstance(env, gymnasium.Env)
    assert env.unwrapped is env
    assert env.action_space == gymnasium.spaces.Discrete(2)
    assert env.metadata == {"render_modes": ["human", "rgb_array"], "render_fps": 50}


def test_a_spec_makes_an_equal_environment(cartpole):
    with gymnasium.make("openenv/gym-v0", env_id="CartPole-v1", base_url=cartpole) as env:
        with gymnasium.make(env.spec) as twin:
            np.testing.assert_array_equal(env.reset(seed=3)[0], twin.reset(seed=3)[0])
        assert gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()) == env.spec


def test_the_spec_has_what_the_server_knows(cartpole):
    with gymnasium.make("openenv/gym-v0", env_id="CartPole-v1", base_url=cartpole) as env:
        assert (env.spec.max_episode_steps, env.spec.reward_threshold) == (500, 475.0)
        timed = gymnasium.wrappers.TimeAwareObservation(env)
        assert timed.reset(seed=0)[0] in timed.observation_space


def test_the_flags_and_the_reward_are_python_values(env):
    env.reset(seed=0)
    terminated, reward = False, 0.0
    while not terminated:
        _, reward, terminated, truncated, _ = env.step(0)
        assert truncated is False
    assert terminated is True
    assert type(reward) is float


def test_the_time_limit_of_the_served_environment_truncates(cartpole):
    with serve(create_gym_app("CartPole-v1", env_kwargs={"max_episode_steps": 3})) as url, RemoteEnv(url) as env:
        env.reset(seed=0)
        assert [env.step(index % 2)[2:4] for index in range(3)] == [(False, False), (False, False), (False, True)]


def test_a_step_before_the_first_reset_is_refused(env):
    with pytest.raises(SessionStateError) as caught:
        env.step(0)
    assert caught.value.state == "open"


def test_an_action_outside_the_space_is_refused_and_nothing_moves(env):
    first = env.reset(seed=0)[0]
    with pytest.raises(InvalidActionError) as caught:
        env.step(7)
    assert caught.value.errors[0]["loc"] == ["action"]
    assert env.state()["step_count"] == 0
    local = gymnasium.make("CartPole-v1").unwrapped
    np.testing.assert_array_equal(local.reset(seed=0)[0], first)
    np.testing.assert_array_equal(env.step(1)[0], local.step(1)[0])


def test_an_action_without_a_json_form_is_not_sent(env):
    env.reset(seed=0)
    with pytest.raises(ValueMappingError):
        env.step("left")
    assert env.state()["step_count"] == 0


def test_a_reset_seeds_the_local_generator_too(env):
    env.reset(seed=11)
    local = gymnasium.utils.seeding.np_random(11)[0]
    assert env.np_random.bit_generator.state == local.bit_generator.state


def test_options_reach_the_environment_exactly(sleepy):
    options = {"low": 0.5, "array": np.arange(3, dtype=np.int16), "pair": (1, 2)}
    with RemoteEnv(sleepy) as env:
        came = env.reset(options=options)[1]["options"]
    assert list(came) == ["low", "array", "pair"]
    assert came["array"].dtype == np.int16
    assert came["pair"] == (1, 2)


def test_env_kwargs_reach_the_making_where_the_operator_allows_them(sleepy):
    with RemoteEnv(sleepy, env_kwargs={"start": 40}) as env:
        assert env.reset()[0] == 40
    with pytest.raises(InvalidActionError) as caught:
        RemoteEnv(sleepy, env_kwargs={"render_fps": 1})
    assert "render_fps" in str(caught.value)


def test_state_counts_the_steps(env):
    env.reset(seed=0)
    env.step(0)
    state = env.state()
    assert (state["step_count"], state["env_id"]) == (1, "CartPole-v1")


def test_methods_and_attributes_are_used_by_name_where_allowed(sleepy):
    with RemoteEnv(sleepy) as env:
        env.reset()
        assert env.call("add", 2, right=(3.5)) == 5.5
        assert env.get_attr("colour") == "blue"
        for forbidden in (lambda: env.call("secret"), lambda: env.get_attr("start"), lambda: env.get_attr("__class__")):
            with pytest.raises(InvalidActionError):
                forbidden()
        with pytest.raises(EnvironmentExecutionError):
            env.call("add", 2, right="x")


def test_after_a_timeout_every_call_raises_until_a_reset_opens_a_new_session():
    with serve(create_gym_app(Sleepy)) as url, RemoteEnv(url, step_timeout_s=0.2) as env:
        env.reset()
        with pytest.raises(RequestTimeoutError):
            env.step(1)
        for call in (lambda: env.step(0), env.state, lambda: env.get_attr("colour")):
            with pytest.raises(SessionLostError):
                call()
        release.set()
        env.unwrapped._connection = ConnectionSettings()
        assert env.reset()[0] == 0
        assert env.step(0)[0] == 1


def test_a_server_that_comes_back_is_found_again_by_reset():
    app = create_gym_app("CartPole-v1")
    with serve(app) as url:
        env = RemoteEnv(url)
        env.reset(seed=0)
    with pytest.raises(SessionLostError):
        env.step(0)
    with pytest.raises(UnreachableError):
        env.reset()
    assert env._shell.session.state is SessionState.BROKEN
    env.close()


def test_a_server_that_comes_back_with_other_spaces_is_refused():
    with serve(create_gym_app("CartPole-v1")) as first, serve(create_gym_app("Acrobot-v1")) as second:  # noqa: SIM117
        with RemoteEnv(first) as env:
            env.reset(seed=0)
            env._shell.session.lose("the test says so")
            env._lease.renew = lambda: second
            for _ in range(2):
                with pytest.raises(SpaceMappingError):
                    env.reset()
            env._lease.renew = lambda: first
            env.reset(seed=0)
            assert env.step(0)[0] in env.observation_space


def test_a_reset_opens_a_new_session_where_the_old_one_ended_unnoticed():
    with serve(create_gym_app("CartPole-v1")) as second:
        with serve(create_gym_app("CartPole-v1")) as first:
            env = RemoteEnv(first)
            start = env.reset(seed=3)[0]
        env._lease.renew = lambda: second
        np.testing.assert_array_equal(env.reset(seed=3)[0], start)
        assert env.step(0)[0] in env.observation_space
        env.close()


def test_a_reset_that_loses_its_session_twice_says_so():
    with serve(create_gym_app("CartPole-v1")) as url:
        env = RemoteEnv(url)
        env.reset(seed=0)
    with pytest.raises(UnreachableError):
        env.reset()
    env.close()


@pytest.mark.parametrize("options", [None, {}, {"low": 1}])
def test_options_are_none_or_empty_as_given(sleepy, options):
    with RemoteEnv(sleepy) as env:
        assert env.reset(options=options)[1] == {"options": options}


def test_an_embedded_server_that_died_is_started_again_by_reset():
    from openenv_gym.providers import process

    with gymnasium.make("openenv/echo-v0") as env:
        env.reset()
        child = process._shared["openenv_gym_envs.echo", "simulation"].provider._process
        child.kill()
        child.wait()
        env.reset()
        assert env.step("x")[0] == "x"


def test_an_embedded_server_serves_nobody_else():
    with gymnasium.make("openenv/echo-v0") as env:
        with pytest.raises(UnreachableError) as caught:
            RemoteEnv(env.unwrapped.base_url)
        assert caught.value.status == 401
        assert httpx.get(f"{env.unwrapped.base_url}/metadata", trust_env=False).status_code == 401


def test_a_full_server_refuses_and_a_closed_environment_makes_room(sleepy):
    first, second = RemoteEnv(sleepy), RemoteEnv(sleepy)
    with pytest.raises(CapacityError) as caught:
        RemoteEnv(sleepy)
    assert (caught.value.active_sessions, caught.value.max_sessions) == (2, 2)
    second.close()
    RemoteEnv(sleepy).close()
    first.close()


def test_closing_twice_is_allowed_and_using_it_afterwards_is_not(cartpole):
    env = RemoteEnv(cartpole)
    env.reset(seed=0)
    env.close()
    env.close()
    for call in (env.reset, lambda: env.step(0), env.state, env.render):
        with pytest.raises(SessionStateError) as caught:
            call()
        assert caught.value.state == "closed"


def test_a_pickle_holds_the_configuration_and_opens_its_own_session(env):
    env.reset(seed=0)
    twin = pickle.loads(pickle.dumps(env))
    try:
        assert twin.base_url == env.base_url
        with pytest.raises(SessionStateError):
            twin.step(0)
    finally:
        twin.close()


@pytest.mark.parametrize(
    ("keywords", "setting"),
    [
        ({}, "base_url"),
        ({"base_url": "http://host", "provider": openenv_gym.ProcessProvider("CartPole-v1")}, "provider"),
        ({"base_url": "http://host", "nonsense": 1}, "nonsense"),
        ({"base_url": "ftp://host"}, "base_url"),
        ({"target": "openenv_gym_envs.echo", "env_id": "CartPole-v1"}, "env_id"),
    ],
)
def test_arguments_that_name_no_server_or_contradict_each_other_are_refused(keywords, setting):
    with pytest.raises(SettingsError) as caught:
        gymnasium.make("openenv/remote-v0", **keywords)
    assert caught.value.setting == setting


def test_a_server_of_another_environment_is_refused(cartpole):
    with pytest.raises(SettingsError) as caught:
        RemoteEnv(cartpole, env_id="Acrobot-v1")
    assert caught.value.setting == "env_id"
    assert "CartPole-v1" in str(caught.value)
    RemoteEnv(cartpole, env_id="CartPole").close()


def test_a_provider_is_copied_and_its_server_stopped_at_close():
    provider = openenv_gym.ProcessProvider("openenv_gym_envs.echo")
    with gymnasium.make("openenv/echo-v0", provider=provider) as env:
        assert env.spec.kwargs["provider"] is not None
        env.reset()
        assert env.step("hi")[0] == "hi"
        url = env.unwrapped.base_url
    with pytest.raises(UnreachableError):
        RemoteEnv(url)


def test_what_the_server_notes_becomes_a_warning():
    class Float64(Sleepy):
        observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

        def reset(self, *, seed=None, options=None):
            return np.array([0.1]), {}

    with serve(create_gym_app(Float64)) as url, RemoteEnv(url) as env, pytest.warns(OpenEnvGymWarning, match="float64"):
        env.reset()
