"""Tools played through Gymnasium: the mode decides what crosses the wire, and the numbers are those played here.

Against this project's server and OpenEnv's own.
"""

import json
from collections import Counter

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from openenv_gym.errors import CapacityError, InvalidActionError
from openenv_gym_envs.echo import create_app
from openenv_gym_server import ServerSettings, create_gym_app
from openenv_gym_wrappers import MCPTools
from tests.openenv_gym_envs.echo.stock_echo import stock_app
from tests.serving import serve

MODES = ("simulation", "production")


class Tapped:
    """An application, with a note of all that arrived: what was requested, and each WebSocket message's type."""

    def __init__(self, app):
        self.app, self.seen = app, []

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] == "websocket":
            self.seen.append(f"WS {scope['path']}")

        async def tapped():
            message = await receive()
            if message["type"] == "websocket.receive":
                frame = json.loads(message["text"])
                data = frame.get("data")
                self.seen.append(f"WS {frame['type']} {data.get('type', '') if isinstance(data, dict) else ''}".strip())
            elif message["type"] == "http.request":
                asked = json.loads(message["body"] or b"null")
                method = f" {asked['method']}" if isinstance(asked, dict) else ""
                self.seen.append(f"{scope['method']} {scope['path']}{method}")
            return message

        return await self.app(scope, tapped, send)

    def take(self):
        seen, self.seen = self.seen, []
        return seen


def echo_app(mode):
    return create_app(ServerSettings(max_concurrent_envs=2, mode=mode))


SERVERS = {
    "ours, for trainers": lambda: echo_app("simulation"),
    "ours, for agents": lambda: echo_app("production"),
    "stock": stock_app,
}


@pytest.fixture(scope="module", params=SERVERS)
def server(request):
    app = Tapped(SERVERS[request.param]())
    with serve(app) as url:
        yield request.param, app, url


@pytest.mark.parametrize("mode", MODES)
def test_the_mode_decides_what_crosses_the_wire(server, mode):
    name, app, url = server
    if (name, mode) == ("ours, for agents", "simulation"):
        with pytest.raises(InvalidActionError, match="production"):
            gymnasium.make("openenv/echo-v0", base_url=url, mode=mode)
        app.take()
        return
    app.take()
    with MCPTools(gymnasium.make("openenv/echo-v0", base_url=url, mode=mode)) as env:
        made = app.take()
        _, info = env.reset()
        began = app.take()
        assert "echo_message" in [tool["name"] for tool in info["tools"]]
        observation, _, _, _, info = env.step(("echo_message", {"message": "Hello"}))
        assert (observation, info) == ("Hello", {})
        called = app.take()
        env.reset()
        again = app.take()
    ended = app.take()
    if mode == "simulation":
        assert {"WS reset", "WS step list_tools"} <= set(made)
        assert (began, called, again) == (["WS reset"], ["WS step call_tool"], ["WS reset"])
        assert ended == ["WS close"]
        assert not any("/mcp" in each for each in made)
        return
    create, close = "POST /mcp openenv/session/create", "POST /mcp openenv/session/close"
    assert made == [create, "POST /mcp tools/list"]
    assert began == []
    assert called == ["POST /mcp tools/call"]
    assert again == [close, create, "POST /mcp tools/list"]
    assert ended == [close]


@pytest.mark.parametrize("mode", MODES)
def test_a_wrapper_changes_what_crosses_the_wire(mode):
    before = "production" if mode == "simulation" else "simulation"
    app = Tapped(echo_app("simulation"))
    with serve(app) as url, gymnasium.make("openenv/echo-v0", base_url=url, mode=before) as plain:
        plain.reset()
        plain.step("Hello")
        app.take()
        env = MCPTools(plain, mode=mode)
        env.reset()
        env.step(("echo_message", {"message": "Hello"}))
        seen = Counter(each.split(maxsplit=1)[0] for each in app.take())
    if mode == "simulation":
        assert seen["POST"] == 1  # the old session's end
        assert seen["WS"] > 3
    else:
        assert set(seen) == {"WS", "POST"}
        assert seen["WS"] == 1  # likewise


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.filterwarnings("ignore:.*a seed is not sent:openenv_gym.errors.OpenEnvGymWarning")
def test_gymnasiums_own_checker_finds_nothing(mode):
    with serve(echo_app(mode)) as url, gymnasium.make("openenv/echo-v0", base_url=url, mode=mode) as env:
        tools = MCPTools(env)
        check_env(tools.unwrapped, skip_close_check=True)
        check_env(MCPTools(env, action_space="text", observations="json").unwrapped, skip_close_check=True)


def played(env, actions):
    env.reset(seed=11)
    return [env.step(action) for action in actions]


@pytest.mark.parametrize("env_id", ["CartPole-v1", "FrozenLake-v1", "Pendulum-v1"])
def test_in_simulation_the_numbers_are_those_of_the_local_environment(env_id):
    local = gymnasium.make(env_id)
    local.action_space.seed(3)
    actions = [local.action_space.sample() for _ in range(10)]
    with (
        serve(create_gym_app(env_id)) as url,
        MCPTools(gymnasium.make("openenv/gym-v0", env_id=env_id, base_url=url), observations="json") as env,
        local,
    ):
        there = played(env, [("act", {"action": action}) for action in actions])
        for (observation, *rest, info), (expected, *wanted, wanted_info) in zip(
            there, played(local, actions), strict=True
        ):
            np.testing.assert_array_equal(
                np.array(json.loads(observation["data"]), np.asarray(expected).dtype), expected
            )
            assert rest == [float(wanted[0]), *map(bool, wanted[1:])]
            assert info == wanted_info


def test_in_production_a_gymnasium_environment_is_played_from_reset_to_reset():
    settings = ServerSettings(mode="production", max_concurrent_envs=1)
    with (
        serve(create_gym_app("CartPole-v1", settings=settings)) as url,
        MCPTools(gymnasium.make("openenv/gym-v0", env_id="CartPole-v1", base_url=url, mode="production")) as env,
    ):
        with pytest.raises(CapacityError):
            gymnasium.make("openenv/gym-v0", base_url=url, mode="production")
        play_to_the_end(env)
        play_to_the_end(env)


def play_to_the_end(env):
    assert env.reset()[0] == ""
    answers = [env.step(("act", {"action": 0})) for _ in range(30)]
    assert len(json.loads(answers[0][0])) == 4
    assert {answer[1:4] for answer in answers} == {(0.0, False, False)}
    assert "over" in answers[-1][4]["tool_error"]["message"]


@pytest.mark.parametrize("mode", MODES)
def test_without_an_address_a_server_of_this_machine_is_played(mode):
    with MCPTools(gymnasium.make("openenv/echo-v0", mode=mode)) as env:
        env.reset()
        observation, reward, *_ = env.step(("echo_message", {"message": "Hello"}))
        assert (observation, reward) == ("Hello", 0.5 if mode == "simulation" else 0.0)
