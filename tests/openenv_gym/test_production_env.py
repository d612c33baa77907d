"""Spaces, resets and steps of a Gymnasium environment in production."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Dict, Discrete

from openenv_gym.env import RemoteEnv
from openenv_gym.errors import (
    CapacityError,
    InvalidActionError,
    ModeError,
    OpenEnvGymWarning,
    SessionLostError,
    SessionStateError,
    SettingsError,
    ToolCallError,
    UnreachableError,
    ValueMappingError,
)
from openenv_gym.interface import SpaceOverrides
from openenv_gym.production_env import (
    ProductionEncoding,
    ProductionInterface,
    encoding_of,
    interface_of,
    require_tools_alone,
)
from openenv_gym.production_shell import ProductionShell
from openenv_gym.spaces import UnicodeText
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym_envs.echo import create_app
from openenv_gym_server import ServerSettings
from tests.openenv_gym.test_production_shell import Server
from tests.serving import serve

SETTINGS = ConnectionSettings()


def encoding(**overrides):
    server = Server()
    shell = ProductionShell("url", SETTINGS, connect=server)
    shell.open()
    return server, encoding_of(shell, interface_of(shell, SpaceOverrides(**overrides)), None)


def test_the_spaces_are_those_of_calls_without_asking_anybody():
    interface = ProductionInterface(SpaceOverrides(), SETTINGS)
    assert interface.action_space == Dict(tool_name=UnicodeText(), arguments=UnicodeText())
    assert interface.observation_space == UnicodeText()
    assert interface.first_observation == ""
    assert interface.spec_fields == {}
    assert interface.metadata == {"render_modes": []}


def test_without_flattening_they_are_the_fields():
    interface = ProductionInterface(SpaceOverrides(flatten=False), SETTINGS)
    assert list(interface.observation_space.spaces) == ["tool_name", "result", "error"]
    assert interface.first_observation == {"tool_name": "", "result": "null", "error": "null"}


def test_other_spaces_are_a_matter_of_the_caller():
    overrides = SpaceOverrides(
        action_space=Discrete(2), observation_space=Discrete(2), encode_action=dict, decode_observation=len
    )
    spoken = ProductionInterface(SpaceOverrides(), SETTINGS).speaking(overrides)
    assert isinstance(spoken, ProductionInterface)
    assert spoken.action_space == Discrete(2)
    assert spoken.first_observation == 3


def test_a_reset_gives_the_empty_observation_and_the_tools():
    _, made = encoding()
    answer = made.reset({}, None)
    assert (answer.observation, answer.reward, answer.flags, answer.notes) == ("", 0.0, (False, False), [])
    assert answer.info == {"tools": [{"name": "look", "description": "", "input_schema": {"type": "object"}}]}
    answer.info["tools"].clear()
    assert len(made.reset({}, None).info["tools"]) == 1


def test_a_step_is_one_call_and_tells_neither_reward_nor_end():
    server, made = encoding()
    made.reset({}, None)
    server.log.clear()
    answer = made.step({"tool_name": "look", "arguments": '{"at":1}'}, None)
    assert server.log == ["call look {'at': 1}"]
    assert answer.observation == '{"tool_name":"look","result":{"data":1},"error":null}'
    assert (answer.reward, answer.flags, answer.info, answer.notes) == (0.0, (False, False), {}, [])
    assert answer.outcome.observation == {"tool_name": "look", "result": {"data": 1}, "error": None}
    assert (answer.outcome.reward, answer.outcome.done) == (None, False)


def test_a_failed_call_is_told_in_the_info():
    server, made = encoding()
    made.reset({}, None)
    server.failures = [ToolCallError("no", error_type="invalid_args")]
    answer = made.step({"tool_name": "look", "arguments": "{}"}, None)
    assert answer.info == {"tool_error": {"error_type": "invalid_args", "message": "no"}}


@pytest.mark.parametrize("fields", [{"action": 1}, {"tool_name": "look", "arguments": [1]}])
def test_an_action_that_is_no_call_does_not_exist(fields):
    server, made = encoding(
        action_space=Discrete(1),
        observation_space=Discrete(1),
        encode_action=lambda _: fields,
        decode_observation=lambda _: 0,
    )
    made.reset({}, None)
    server.log.clear()
    with pytest.raises(ModeError):
        made.step(0, None)
    assert server.log == []


@pytest.mark.parametrize(
    ("setting", "arguments"),
    [("render_mode", ("ansi", None, None)), ("env_kwargs", (None, {"a": 1}, None)), ("binary", (None, None, True))],
)
def test_what_production_has_not_cannot_be_asked_for(setting, arguments):
    with pytest.raises(SettingsError, match="simulation") as caught:
        require_tools_alone(*arguments)
    assert caught.value.setting == setting
    require_tools_alone(None, {}, False)


def test_rendering_and_options_are_refused():
    interface = ProductionInterface(SpaceOverrides(), SETTINGS)
    interface.check_render_mode(None)
    with pytest.raises(SettingsError):
        interface.check_render_mode("ansi")
    assert interface.reset_options({}) == {}
    with pytest.raises(ModeError, match="level"):
        interface.reset_options({"level": 3})


def test_the_encoding_of_a_session_at_mcp_is_productions():
    assert isinstance(encoding()[1], ProductionEncoding)


# ------------------------------------------------------------------------------------------------- with real servers


@pytest.fixture(scope="module")
def echo():
    with serve(create_app(ServerSettings(max_concurrent_envs=1, mode="production"))) as url:
        yield url


@pytest.fixture
def env(echo):
    env = gymnasium.make("openenv/remote-v0", base_url=echo, mode="Production")
    yield env
    env.close()


def call(message):
    return {"tool_name": "echo_message", "arguments": f'{{"message": "{message}"}}'}


def test_an_id_is_played_in_production_by_its_keyword(env):
    observation, info = env.reset()
    assert observation == ""
    assert [tool["name"] for tool in info["tools"]] == ["echo_message", "echo_with_length"]
    observation, reward, terminated, truncated, info = env.step(call("Hello"))
    assert '"data":"Hello"' in observation
    assert (reward, terminated, truncated, info) == (0.0, False, False, {})
    assert env.unwrapped.mode == "production"


def test_the_echo_id_says_and_hears_in_production_too(echo):
    with gymnasium.make("openenv/echo-v0", base_url=echo, mode="production") as env:
        assert env.reset()[0] == ""
        assert env.step("Hello, World!")[:2] == ("Hello, World!", 0.0)


def test_the_environment_variable_chooses_production(echo, monkeypatch):
    monkeypatch.setenv("OPENENV_CLIENT_MODE", "PRODUCTION")
    with RemoteEnv(echo) as env:
        assert env.mode == "production"
    with pytest.raises(SettingsError):
        RemoteEnv(echo, mode="training")


def test_every_reset_has_a_session_of_its_own_and_one_place_is_enough(env):
    for _ in range(3):
        env.reset()
        env.step(call("again"))


def test_a_second_environment_meets_a_full_server(env, echo):
    env.reset()
    with pytest.raises(CapacityError):
        RemoteEnv(echo, mode="production")


def test_a_seed_is_not_sent_and_said_so_once(env):
    with pytest.warns(OpenEnvGymWarning, match="seed is not sent"):
        env.reset(seed=1)
    env.reset(seed=1)
    assert env.unwrapped.np_random.integers(100) == np.random.default_rng(1).integers(100)


def test_options_are_an_error_and_the_episode_goes_on(env):
    env.reset()
    with pytest.raises(ModeError):
        env.reset(options={"level": 3})
    assert env.step(call("still"))[4] == {}


@pytest.mark.parametrize(
    "asked",
    [lambda env: env.state(), lambda env: env.call("reset"), lambda env: env.get_attr("state")],
    ids=["state", "call", "get_attr"],
)
def test_what_a_trainer_asks_does_not_exist(env, asked):
    env.reset()
    with pytest.raises(ModeError):
        asked(env.unwrapped)


def test_a_step_before_the_first_reset_is_refused(env):
    with pytest.raises(SessionStateError):
        env.unwrapped.step(call("early"))


def test_an_action_that_is_no_call_is_not_sent(env):
    env.reset()
    with pytest.raises(ValueMappingError):
        env.step({"tool_name": "echo_message", "arguments": "no JSON"})


def test_a_rendered_or_configured_environment_is_refused_before_a_server_is_asked():
    for keywords in ({"render_mode": "ansi"}, {"env_kwargs": {"a": 1}}, {"binary": True}):
        with pytest.raises(SettingsError):
            RemoteEnv("http://127.0.0.1:9", mode="production", **keywords)


def test_another_environment_than_the_one_asked_for_is_refused(echo):
    with pytest.raises(SettingsError, match="CartPole") as caught:
        RemoteEnv(echo, env_id="CartPole-v1", mode="production")
    assert caught.value.setting == "env_id"


def test_a_server_that_is_gone_loses_the_session_and_a_reset_says_why():
    with serve(create_app(ServerSettings(mode="production"))) as url:
        env = RemoteEnv(url, mode="production", connect_timeout_s=2.0)
        env.reset()
    assert env.step(call("anybody?"))[4]["tool_error"]["error_type"] == "transport_error"
    with pytest.raises(UnreachableError):
        env.reset()
    with pytest.raises(SessionLostError):
        env.step(call("anybody?"))
    env.close()
    env.close()


def test_a_live_environment_changes_its_mode_at_the_same_address():
    with (
        serve(create_app(ServerSettings(max_concurrent_envs=1))) as url,
        gymnasium.make("openenv/echo-v0", base_url=url) as env,
    ):
        assert env.reset()[0] == "Echo environment ready!"
        assert env.step("Hello")[1] == 0.5
        env.unwrapped.set_mode("production")
        assert env.reset()[0] == ""
        assert env.step("Hello")[:2] == ("Hello", 0.0)
        env.unwrapped.set_mode("Production")
        env.unwrapped.set_mode("simulation")
        assert env.unwrapped.base_url == url
        env.reset()
        assert env.step("Hello")[1] == 0.5


def test_a_mode_that_cannot_be_leaves_the_environment_as_it_was(cartpole):
    with RemoteEnv(cartpole, render_mode="rgb_array") as env:
        env.reset(seed=0)
        for mode in ("production", "training"):
            with pytest.raises(SettingsError):
                env.set_mode(mode)
        env.step(1)
        assert env.mode == "simulation"


def test_a_server_for_agents_alone_refuses_simulation_and_the_environment_goes_on(env):
    env.reset()
    with pytest.raises(InvalidActionError, match="production"):
        env.unwrapped.set_mode("simulation")
    assert env.unwrapped.mode == "production"
    env.reset()
    assert env.step(call("still"))[4] == {}


def test_an_embedded_server_is_in_the_mode_that_is_asked_for():
    with RemoteEnv(target="tests.openenv_gym_wrappers.doors:served_doors", mode="production") as env:
        tools = [tool["name"] for tool in env.list_tools()]
        env.set_mode("simulation")
        assert [tool["name"] for tool in env.list_tools()] == [*tools, "cheat"]
        env.reset()
        assert env.step({"tool_name": "go", "arguments": '{"direction":"on"}'})[1] == 1.0


def test_an_embedded_server_that_cannot_be_played_in_a_mode_leaves_the_one_there_was(monkeypatch):
    with gymnasium.make("openenv/echo-v0") as env:
        address = env.unwrapped.base_url

        def refuse(shell):
            raise CapacityError("full", code="CAPACITY_REACHED")

        monkeypatch.setattr(ProductionShell, "open", refuse)
        with pytest.raises(CapacityError):
            env.unwrapped.set_mode("production")
        assert (env.unwrapped.mode, env.unwrapped.base_url) == ("simulation", address)
        env.reset()
        assert env.step("still here")[0] == "still here"
