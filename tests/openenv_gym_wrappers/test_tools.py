"""``MCPTools`` over real servers, in both modes."""

import json
import pickle

import gymnasium
import pytest
from gymnasium.spaces import Dict, Discrete, OneOf

from openenv_gym.env import RemoteEnv
from openenv_gym.errors import (
    EnvironmentExecutionError,
    InvalidActionError,
    ModeError,
    OpenEnvGymWarning,
    SettingsError,
    ValueMappingError,
)
from openenv_gym.spaces import UnicodeText
from openenv_gym_server import create_app
from openenv_gym_wrappers import MCPTools
from tests.openenv_gym_wrappers.doors import doors_app
from tests.serving import serve
from tests.text_envs import Heard, Say, make_echo

FAILURES = {
    "execution_error": ("fall", {}),
    "invalid_args": ("count", {"much": 1}),
    "tool_not_found": ("fly", {}),
    "timeout": ("sleep", {}),
    "transport_error": ("phone", {}),
}


@pytest.fixture(scope="module")
def url():
    with serve(doors_app()) as url:
        yield url


@pytest.fixture(scope="module")
def closed():
    """The same for agents alone."""
    with serve(doors_app("production")) as url:
        yield url


def make(url, *, mode=None, **options):
    return MCPTools(gymnasium.make("openenv/remote-v0", base_url=url, mode=mode), **options)


@pytest.fixture(params=["simulation", "production"])
def env(request, url, closed):
    env = make(url if request.param == "simulation" else closed, mode=request.param)
    yield env
    env.close()


def test_the_spaces_are_those_of_the_tools_of_the_mode(env):
    names = ["go", "count", "fall", "sleep", "phone"]
    assert env.tool_names == ([*names, "cheat"] if env.mode == "simulation" else names)
    assert isinstance(env.action_space, OneOf)
    assert env.action_space.spaces[0]["direction"] == Discrete(2)
    assert env.action_space.spaces[1] == Dict()
    assert env.observation_space == UnicodeText()
    assert env.action_space is env.unwrapped.action_space


def test_a_reset_has_the_tools_in_its_info(env):
    _, info = env.reset()
    assert info["tools"] == env.tools
    assert info["tools"][0]["input_schema"]["required"] == ["direction"]
    info["tools"].clear()
    assert env.reset()[1]["tools"] == env.tools


def test_in_simulation_calls_count_are_rewarded_and_end_the_episode(url):
    with make(url) as env:
        assert env.reset(seed=3)[0] == '{"room":0,"said":"seed 3"}'
        assert env.step((0, {"direction": 0, "steps": 2}))[:4] == ("room 2", 1.0, False, False)
        assert env.step(("count", {}))[:4] == ('{"steps":1,"room":2}', -0.5, False, False)
        assert env.step(("go", {"direction": 0}))[:4] == ("room 3", 1.0, True, False)
        assert env.unwrapped.state()["step_count"] == 3
        assert env.reset(options={"room": 1})[0] == '{"room":1,"said":"seed None"}'


def test_in_production_neither_reward_nor_end_is_told(closed):
    with make(closed, mode="production") as env:
        assert env.reset()[0] == ""
        assert env.step((0, {"direction": 0, "steps": 3})) == ("room 3", 0.0, False, False, {})
        observation, *rest, info = env.step(("count", {}))
        assert rest == [0.0, False, False]
        assert "over" in info["tool_error"]["message"] == observation
        env.reset()
        assert env.step(("count", {}))[0] == '{"steps":0,"room":0}'


@pytest.mark.parametrize("kind", FAILURES)
def test_each_failure_of_a_call_is_told_by_its_type_and_the_episode_goes_on(url, closed, kind):
    name, arguments = FAILURES[kind]
    text = json.dumps({"name": name, "arguments": arguments})
    for mode, address in (("simulation", url), ("production", closed)):
        with make(address, mode=mode, action_space="text", observations="json") as env:
            env.reset()
            observation, reward, terminated, truncated, info = env.step(text)
            assert info["tool_error"]["error_type"] == kind
            assert observation["error_type"] == kind
            assert observation["text"] == info["tool_error"]["message"] != ""
            assert observation["data"] == "null"
            assert (reward, terminated, truncated) == (-0.5 if mode == "simulation" else 0.0, False, False)
            assert "tool_error" not in env.step('{"name": "count"}')[4]


def test_a_server_that_is_gone_is_a_transport_error_in_production():
    with serve(doors_app("production")) as url:
        env = make(url, mode="production")
        env.reset()
    observation, *rest, info = env.step(("count", {}))
    assert info["tool_error"] == {"error_type": "transport_error", "message": observation}
    assert rest == [0.0, False, False]
    env.close()


def test_every_sample_is_a_valid_call(env):
    env.reset()
    env.action_space.seed(5)
    for _ in range(20):
        info = env.step(env.action_space.sample())[4]
        assert info.get("tool_error", {}).get("error_type") not in {"invalid_args", "tool_not_found"}


def test_structured_observations_are_members_of_their_space(env):
    with MCPTools(env, observations="json") as env:
        observation, _ = env.reset()
        assert observation in env.observation_space
        observation = env.step(("count", {}))[0]
        assert observation in env.observation_space
        assert json.loads(observation["data"]) == {"steps": 0, "room": 0}
        assert (observation["tool_name"], observation["error_type"]) == ("count", "")


def test_an_action_that_is_no_member_is_not_sent(url):
    with make(url) as env:
        env.reset()
        actions: list[object] = [(9, {}), ("go", {}), ("go", {"direction": "off"}), "go"]
        for action in actions:
            with pytest.raises(ValueMappingError):
                env.step(action)
        assert env.unwrapped.state()["step_count"] == 0


def test_what_a_schema_lists_may_be_named(url):
    with make(url) as env:
        env.reset()
        assert env.step(("go", {"direction": "on"}))[0] == "room 1"
        assert env.step(("go", {"direction": "back", "steps": 1}))[0] == "room 0"
        with pytest.raises(ValueMappingError, match="0: 'on', 1: 'back'") as caught:
            env.step(("go", {"direction": "up"}))
        assert caught.value.path == "$.arguments.direction"


def test_a_text_that_is_no_call_is_an_outcome_of_which_the_server_is_not_told(url):
    with make(url, action_space="text") as env:
        env.reset()
        observation, reward, terminated, truncated, info = env.step("I would like to go on, please.")
        assert info == {"tool_error": {"error_type": "invalid_args", "message": observation}}
        assert (reward, terminated, truncated) == (0.0, False, False)
        assert env.unwrapped.state()["step_count"] == 0
        assert env.step(env.action_space.sample())[0]


def test_a_wrapper_may_change_the_mode_of_a_live_environment():
    with serve(doors_app(max_concurrent_envs=1)) as url, make(url) as env:
        env.reset()
        env.step(("go", {"direction": 0, "steps": 2}))
        agent = MCPTools(env, mode="production")
        assert (agent.mode, agent.unwrapped.base_url) == ("production", url)
        assert agent.reset()[0] == ""
        assert agent.step(("go", {"direction": 0}))[:2] == ("room 1", 0.0)
        trainer = MCPTools(agent, mode="Simulation")
        trainer.reset()
        assert trainer.step(("go", {"direction": 0}))[:2] == ("room 1", 1.0)


def test_the_wrapper_gives_what_the_keyword_gives(closed):
    with make(closed, mode="production") as named:
        tools, first = named.tools, named.reset()
    with serve(doors_app()) as url, make(url, mode=None) as env:
        wrapped = MCPTools(env, mode="production")
        assert wrapped.reset()[0] == first[0]
        assert wrapped.step(("count", {}))[1:] == (0.0, False, False, {})
    assert [tool["name"] for tool in tools] == ["go", "count", "fall", "sleep", "phone"]


def test_wrapping_in_the_middle_of_an_episode_leaves_it_alone(url):
    with RemoteEnv(url) as env:
        env.reset(seed=7)
        env.step({"tool_name": "go", "arguments": '{"direction":"on"}'})
        assert MCPTools(env).step(("count", {}))[0] == '{"steps":1,"room":1}'


def test_a_seed_and_options_have_no_place_in_production(closed):
    with make(closed, mode="production") as env:
        with pytest.warns(OpenEnvGymWarning, match="seed is not sent"):
            env.reset(seed=1)
        with pytest.raises(ModeError):
            env.reset(options={"room": 2})


def test_gymnasiums_own_wrappers_work_below_and_above(url):
    with MCPTools(gymnasium.wrappers.TimeLimit(RemoteEnv(url), 2)) as tools:
        env = gymnasium.wrappers.RecordEpisodeStatistics(tools)
        env.reset()
        env.step(("count", {}))
        observation, _, _, truncated, info = env.step(("count", {}))
        assert (observation, truncated) == ('{"steps":1,"room":0}', True)
        assert info["episode"]["r"] == -1.0


def test_a_spec_makes_it_again(url):
    with make(url, action_space="text", observations="json") as env:
        spec = gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json())
        with gymnasium.make(spec) as twin:
            assert isinstance(twin, MCPTools)
            assert (twin.action_space, twin.observation_space) == (env.action_space, env.observation_space)


def test_a_pickle_makes_it_again(closed):
    with make(closed, mode="production") as env, pickle.loads(pickle.dumps(env)) as twin:
        assert (twin.mode, twin.action_space) == ("production", env.action_space)
        twin.reset()
        assert twin.step(("count", {}))[0] == '{"steps":0,"room":0}'


@pytest.mark.parametrize("mode", ["simulation", "production"])
def test_many_are_played_as_a_vector(url, closed, mode):
    envs = gymnasium.make_vec(
        "openenv/remote-v0",
        num_envs=2,
        vectorization_mode="sync",
        wrappers=[lambda env: MCPTools(env, action_space="text")],
        base_url=url if mode == "simulation" else closed,
        mode=mode,
    )
    try:
        _, infos = envs.reset()
        assert len(infos["tools"]) == 2
        observations, rewards, *_, infos = envs.step(('{"name": "count"}', '{"name": "fly"}'))
        assert observations[0] == '{"steps":0,"room":0}'
        assert list(rewards) == ([-0.5, -0.5] if mode == "simulation" else [0.0, 0.0])
        assert infos["tool_error"]["error_type"][1] == "tool_not_found"
    finally:
        envs.close()


def test_an_environment_of_this_machine_is_refused():
    with gymnasium.make("CartPole-v1") as env, pytest.raises(SettingsError) as caught:
        MCPTools(env)
    assert caught.value.setting == "env"


def test_a_wrapper_with_spaces_of_its_own_has_to_be_above(url):
    with RemoteEnv(url) as env:
        other = gymnasium.wrappers.TransformAction(env, lambda action: action, Discrete(2))
        with pytest.raises(SettingsError, match="below"):
            MCPTools(other)


@pytest.mark.parametrize("options", [{"action_space": "calls "}, {"observations": "dict"}, {"mode": "training"}])
def test_an_option_that_is_none_is_named(url, options):
    with RemoteEnv(url) as env:
        with pytest.raises(SettingsError) as caught:
            MCPTools(env, **options)
        assert caught.value.setting == next(iter(options))
        env.reset()


@pytest.mark.parametrize("mode", [None, "production"])
def test_an_environment_without_tools_is_refused_and_stays_as_it_is(mode):
    with serve(create_app(make_echo, Say, Heard)) as url, RemoteEnv(url) as env:
        space = env.action_space
        with pytest.raises(SettingsError if mode is None else EnvironmentExecutionError):
            MCPTools(env, mode=mode)
        assert (env.mode, env.action_space) == ("simulation", space)
        env.reset()


def test_a_failed_change_of_mode_leaves_the_old_one(closed):
    with RemoteEnv(closed, mode="production") as env:
        with pytest.raises(InvalidActionError):
            MCPTools(env, mode="simulation")
        env.reset()
        assert env.mode == "production"
