"""``EchoEnv`` on this project's echo server and on OpenEnv's own."""

import asyncio

import pytest

from openenv_gym.errors import SessionStateError, ToolCallError
from openenv_gym.types import Observation
from openenv_gym_envs.echo import CallToolAction, EchoAction, EchoEnv, ListToolsAction, create_app
from openenv_gym_envs.echo.client import Greeting, greeting_in
from tests.serving import serve


def said(message):
    return CallToolAction(tool_name="echo_message", arguments={"message": message})


def test_it_is_greeted_and_echoed(echo_url):
    async def main():
        async with EchoEnv(base_url=echo_url) as client:
            result = await client.reset()
            assert result.observation.echoed_message == "Echo environment ready!"
            assert (result.reward, result.done) == (0.0, False)
            result = await client.step(said("Hello, World!"))
            assert result.observation.result == "Hello, World!"
            assert result.observation.tool_result["data"] == "Hello, World!"
            assert result.observation.error is None
            return await client.state()

    assert asyncio.run(main()).step_count == 1


def test_it_is_the_same_without_await(echo_url):
    with EchoEnv(base_url=echo_url).sync() as client:
        assert client.reset(episode_id="mine").observation.echoed_message == "Echo environment ready!"
        assert client.step(said("Hello, World!")).observation.result == "Hello, World!"
        assert {"echo_message", "echo_with_length"} <= {tool.name for tool in client.list_tools()}
        assert client.call_tool("echo_with_length", message="ab") == {"message": "ab", "length": 2}
        assert client.call_tool(name="echo_message", message="ab") == "ab"
        assert client.has_tool("echo_message")
        assert client.get_tool("shout") is None
        assert client.state().episode_id == "mine"
        with pytest.raises(ToolCallError) as caught:
            client.call_tool("shout", message="ab")
        assert (caught.value.error_type, caught.value.tool_name) == ("tool_not_found", "shout")


def test_the_first_thing_is_a_reset(echo_url):
    with EchoEnv(base_url=echo_url).sync() as client, pytest.raises(SessionStateError):
        client.list_tools()


def test_rewards_are_of_our_server():
    with serve(create_app()) as url, EchoEnv(base_url=url).sync() as client:
        client.reset()
        assert client.step(said("Hello, World!")).reward == 0.1 * 13
        assert client.step(ListToolsAction()).reward is None


def test_the_older_action_still_works():
    with serve(create_app()) as url, EchoEnv(base_url=url).sync() as client:
        client.reset()
        for action in (EchoAction(message="Hello"), {"message": "Hello"}):
            observation = client.step(action).observation
            assert (observation.echoed_message, observation.message_length) == ("Hello", 5)


def test_without_an_address_it_has_a_server_of_its_own():
    with EchoEnv().sync() as client:
        assert client.reset().observation.echoed_message == "Echo environment ready!"


def test_a_greeting_counts_itself_where_the_server_has_not():
    assert Greeting(echoed_message="four").message_length == 4
    assert Greeting(echoed_message="four", message_length=7).message_length == 7


@pytest.mark.parametrize(
    ("fields", "greeting"),
    [
        ({"echoed_message": "a", "metadata": {"message": "b"}}, "a"),
        ({"metadata": {"message": "b"}}, "b"),
        ({"metadata": {"message": 3}}, None),
        ({"metadata": None}, None),
        ({}, None),
        ({"tool_name": "x", "metadata": {"message": "b"}}, None),
        ({"tools": [], "metadata": {"message": "b"}}, None),
    ],
)
def test_a_greeting_is_told_from_any_other_observation(fields, greeting):
    assert greeting_in(fields) == greeting


def test_another_observation_is_taken_as_it_comes():
    client = EchoEnv("http://127.0.0.1:1")
    observation = client._parse_result({"observation": {"x": 1}, "reward": None, "done": True}).observation
    assert isinstance(observation, Observation)
    assert (observation.x, observation.done) == (1, True)
