"""Lists of tools, by a step and as they are on the wire."""

from typing import Any

import pytest

from openenv_gym import messages
from openenv_gym.errors import InvalidActionError, ProtocolError, SessionStateError, SettingsError
from openenv_gym.shell import Shell
from openenv_gym.tool_catalogue import listed, read_tools
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym_envs.echo import create_app
from tests.serving import serve

SCHEMA = {"type": "object", "properties": {}}


@pytest.mark.parametrize("key", ["input_schema", "inputSchema"])
def test_a_tool_is_the_same_whatever_the_peer_calls_its_schema(key):
    tool = {"name": "look", "description": "Look.", key: SCHEMA, "title": None}
    assert read_tools([tool], "url") == [{"name": "look", "description": "Look.", "input_schema": SCHEMA}]


def test_a_tool_may_have_neither_description_nor_schema():
    assert read_tools([{"name": "look", "description": None}], "url") == [
        {"name": "look", "description": "", "input_schema": {}}
    ]


@pytest.mark.parametrize("tools", [{}, "look", ["look"], [{"name": 3}], [{"name": "look", "inputSchema": 3}]])
def test_what_is_no_list_of_tools_is_a_protocol_error(tools):
    with pytest.raises(ProtocolError):
        read_tools(tools, "url")


@pytest.fixture
def shell(request):
    with serve(request.param()) as url:
        shell = Shell(url, ConnectionSettings(), messages.OpenSettings())
        shell.open()
        yield shell
        shell.close()


@pytest.mark.parametrize("shell", [create_app], indirect=True)
def test_tools_are_listed_before_the_first_episode_and_steps_still_need_one(shell):
    assert [tool["name"] for tool in listed(shell)] == ["echo_message", "echo_with_length"]
    with pytest.raises(SessionStateError):
        shell.request(messages.Step, 20.0, data={"type": "list_tools"})


@pytest.mark.parametrize("shell", [create_app], indirect=True)
def test_tools_are_listed_in_the_middle_of_an_episode_which_goes_on(shell):
    shell.request(messages.Reset, 20.0, data={"episode_id": "mine"})
    assert len(listed(shell)) == 2
    state = shell.request(messages.State, 20.0).data
    assert (state["episode_id"], state["step_count"]) == ("mine", 0)


@pytest.mark.parametrize("answer", ["refused", "taken"])
def test_an_environment_without_tools_is_a_settings_error(answer):
    class Peer:
        base_url = "http://host"
        settings = ConnectionSettings()

        class session:
            state = None

        def request(self, kind, timeout_s, **fields):
            if answer == "refused":
                raise InvalidActionError("no such action")
            return messages.ObservationReply(data=messages.Outcome(observation={"room": 1}))

    with pytest.raises(SettingsError, match="with tools") as caught:
        listed(Peer())
    assert caught.value.setting == "mode"


def test_a_schema_nested_without_end_is_a_protocol_error():
    schema: dict[str, Any] = {}
    for _ in range(1000):
        schema = {"items": [schema]}
    with pytest.raises(ProtocolError, match="192 deep"):
        read_tools([{"name": "look", "input_schema": schema}], "url")
