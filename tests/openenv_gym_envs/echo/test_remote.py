"""``openenv/echo-v0`` on this project's echo server and on OpenEnv's own."""

import pickle

import gymnasium
import pytest

from openenv_gym import UnicodeText
from openenv_gym.errors import SettingsError, ToolCallError, ValueMappingError
from openenv_gym.providers.process import ProcessProvider
from openenv_gym.tools import CallToolAction, CallToolObservation
from openenv_gym_envs.echo.remote import RemoteEcho, RemoteEchoVector, heard, said
from openenv_gym_server import create_app, create_gym_app
from tests.openenv_gym_server.test_mcp_environment_stock import NativeNotes
from tests.serving import serve


def test_one_text_is_one_call(echo_url):
    with gymnasium.make("openenv/echo-v0", base_url=echo_url) as env:
        assert env.action_space == env.observation_space == UnicodeText()
        assert env.reset(seed=0)[0] == "Echo environment ready!"
        for text in ("Hello, World!", "", "ünï ☃ \U0001f600"):
            observation, reward, terminated, truncated, _ = env.step(text)
            assert observation == text
            assert isinstance(reward, float)
            assert (terminated, truncated) == (False, False)
        assert env.unwrapped.state()["step_count"] == 3


def test_our_server_rewards_the_length():
    with gymnasium.make("openenv/echo-v0") as env:
        env.reset()
        assert env.step("Hello")[1] == 0.5


def test_a_provider_may_start_the_server():
    with gymnasium.make("openenv/echo-v0", provider=ProcessProvider("openenv_gym_envs.echo")) as env:
        assert env.reset()[0] == "Echo environment ready!"


def test_a_spec_and_a_pickle_make_it_again(echo_url):
    with gymnasium.make("openenv/echo-v0", base_url=echo_url) as env:
        spec = gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json())
        with gymnasium.make(spec) as twin, pickle.loads(pickle.dumps(env.unwrapped)) as copy:
            assert isinstance(twin.unwrapped, RemoteEcho)
            for each in (twin, copy):
                each.reset()
                assert each.step("again")[0] == "again"


def test_a_server_of_something_else_is_told_when_it_is_made():
    with (
        serve(create_gym_app("CartPole-v1")) as url,
        pytest.raises(SettingsError, match=r"expected an echo server.*CartPole") as caught,
    ):
        gymnasium.make("openenv/echo-v0", base_url=url)
    assert caught.value.setting == "base_url"


def test_a_server_of_other_tools_is_told_at_the_first_step():
    with (
        serve(create_app(NativeNotes, CallToolAction, CallToolObservation)) as url,
        gymnasium.make("openenv/echo-v0", base_url=url, disable_env_checker=True) as env,
    ):
        env.reset()
        with pytest.raises(SettingsError, match="no tool 'echo_message'"):
            env.step("x")


@pytest.mark.parametrize("text", [3, None, b"x", "half \ud800"])
def test_what_is_no_text_is_not_sent(text):
    with pytest.raises(ValueMappingError):
        said(text)


def test_what_a_server_answers_is_read_strictly():
    assert heard({"tool_name": "echo_message", "result": {"data": "x"}, "error": None}) == "x"
    assert heard({"tool_name": "echo_message", "result": "x"}) == "x"
    with pytest.raises(ValueMappingError, match="expected the text"):
        heard({"tool_name": "echo_message", "result": {"data": 3}})
    with pytest.raises(SettingsError, match="no greeting"):
        heard({"observation": 3})
    with pytest.raises(ToolCallError) as caught:
        heard({"tool_name": "echo_message", "error": {"error_type": "timeout", "message": "late"}})
    assert caught.value.error_type == "timeout"


def test_many_are_stepped_together(echo_url):
    envs = gymnasium.make_vec("openenv/echo-v0", num_envs=2, base_url=echo_url)
    assert isinstance(envs.unwrapped, RemoteEchoVector)
    assert envs.single_action_space == envs.single_observation_space == UnicodeText()
    assert envs.reset(seed=0)[0] == ("Echo environment ready!",) * 2
    assert envs.step(("Hello,", "ünï ☃"))[0] == ("Hello,", "ünï ☃")
    twin = pickle.loads(pickle.dumps(envs.unwrapped))
    envs.close()
    twin.reset()
    assert twin.step(("a", "b"))[0] == ("a", "b")
    twin.close()


def test_many_need_no_address():
    envs = gymnasium.make_vec("openenv/echo-v0", num_envs=3, autoreset_mode="Disabled")
    assert envs.reset()[0] == ("Echo environment ready!",) * 3
    envs.close()


def test_a_server_of_something_else_is_told_when_many_are_made():
    with serve(create_gym_app("CartPole-v1")) as url, pytest.raises(SettingsError, match=r"expected an echo server"):
        gymnasium.make_vec("openenv/echo-v0", num_envs=1, base_url=url)
