"""The application that serves a Gymnasium environment as tools."""

import threading
from typing import ClassVar

import pytest
from gymnasium.envs.registration import EnvSpec

from openenv_gym.errors import SettingsError
from openenv_gym_server.closed_mode import FAILED
from openenv_gym_server.gym_app import create_gym_app
from openenv_gym_server.settings import ServerSettings
from tests.exactness.synthetic import Synthetic
from tests.openenv_gym_server.test_gym_app import Filming, ask, client_of, socket_of


def tools_of(app):
    with client_of(app) as client:
        answer = client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).json()
        return [tool["name"] for tool in answer["result"]["tools"]]


class Unlit(Filming):
    """Cannot be made to render."""

    def __init__(self, render_mode=None):
        if render_mode is not None:
            raise RuntimeError("no light")
        super().__init__()


class Lettered(Filming):
    """Renders texts alone."""

    metadata: ClassVar = {"render_modes": ["human", "ansi"]}


@pytest.mark.parametrize("source", ["CartPole-v1", "FrozenLake-v1", Lettered])
def test_in_production_an_environment_that_renders_is_made_to(source):
    assert tools_of(create_gym_app(source, mode="Production")) == ["act", "observe", "render"]
    assert tools_of(create_gym_app(source)) == ["act", "observe"]


@pytest.mark.parametrize("source", [Unlit, Synthetic], ids=["it fails", "it has no mode"])
def test_in_production_an_environment_that_cannot_render_is_served_without(source):
    assert tools_of(create_gym_app(source, settings=ServerSettings(mode="production"))) == ["act", "observe"]


@pytest.mark.parametrize(("mode", "there"), [(None, False), ("ansi", True)])
def test_what_the_operator_says_of_rendering_holds_in_production(mode, there):
    app = create_gym_app("FrozenLake-v1", env_kwargs={"render_mode": mode}, mode="production")
    assert ("render" in tools_of(app)) is there


def test_a_specs_own_render_mode_holds_in_production():
    spec = EnvSpec("Lettered-v0", entry_point=Lettered, kwargs={"render_mode": "human"})
    assert tools_of(create_gym_app(spec, mode="production")) == ["act", "observe"]


def test_named_actions_are_tools_of_every_session():
    app = create_gym_app("FrozenLake-v1", named_actions={"left": 0, "right": 2}, env_kwargs={"is_slippery": False})
    assert tools_of(app) == ["act", "left", "right", "observe"]
    with socket_of(app) as (socket, _):
        ask(socket, type="reset", data={"seed": 0})
        reply = ask(socket, type="step", data={"type": "call_tool", "tool_name": "right"})["data"]
        assert reply["observation"]["result"]["data"] == 1
        assert (reply["reward"], reply["done"], reply["metadata"]["truncated"]) == (0.0, False, False)


@pytest.mark.parametrize("named", [{"left": 4}, {"close": 0}, {"observe": 0}])
def test_a_name_that_cannot_be_fails_when_the_application_is_made(named):
    with pytest.raises(SettingsError) as caught:
        create_gym_app("FrozenLake-v1", named_actions=named)
    assert caught.value.setting == "named_actions"


def test_a_failed_call_is_told_and_the_session_goes_on():
    with client_of(create_gym_app("CartPole-v1")) as client, client.websocket_connect("/ws") as socket:
        ask(socket, type="reset", data={"seed": 0})
        for arguments, kind in (({"action": 2}, "invalid_args"), ({"action": 1}, None)):
            data = {"type": "call_tool", "tool_name": "act", "arguments": arguments}
            error = ask(socket, type="step", data=data)["data"]["observation"]["error"]
            assert (error and error["error_type"]) == kind


class Stuck(Filming):
    """Its steps end when the test says so."""

    release = threading.Event()

    def step(self, action):
        self.release.wait(20)
        return super().step(action)


def test_a_call_may_have_a_limit_which_the_session_outlives():
    def rpc(client, method, **params):
        return client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).json()

    with client_of(create_gym_app(Stuck)) as client:
        session = {"session_id": rpc(client, "openenv/session/create")["result"]["session_id"]}
        call = {"name": "act", "arguments": {"action": 0}, **session}
        error = rpc(client, "tools/call", **call, timeout_s=0.05)["error"]
        assert error["data"] == {"error_type": "timeout", "tool_name": "act"}
        Stuck.release.set()
        assert rpc(client, "tools/call", **call)["result"]["is_error"] is False


class Leaking(Filming):
    """Says in its errors what is on the server's disk."""

    def step(self, action):
        raise FileNotFoundError("/srv/answers.json")


@pytest.mark.parametrize("mode", ["simulation", "production"])
def test_what_the_environment_raised_is_told_in_simulation_and_in_the_log(mode, caplog):
    with client_of(create_gym_app(Leaking, mode=mode)) as client:
        params = {"name": "act", "arguments": {"action": 0}}
        answer = client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).json()
    assert answer["error"]["data"] == {"error_type": "execution_error", "tool_name": "act"}
    expected = FAILED if mode == "production" else "Error calling tool 'act': /srv/answers.json"
    assert answer["error"]["message"] == expected
    assert "/srv/answers.json" in caplog.text
