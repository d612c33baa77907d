"""``openenv-gym serve``: real processes for what is served, plain calls for how options are read."""

import json
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import gymnasium
import httpx
import pytest
from typer.testing import CliRunner
from websockets.sync.client import connect

import openenv_gym  # noqa: F401  (registers the ids)
from openenv_gym.cli import app
from openenv_gym.cli.serve import _announce, _announce_all, _capacity, _names, _seconds
from openenv_gym.errors import SettingsError


@contextmanager
def command(*arguments, cwd=None):
    """``openenv-gym serve`` in a process of its own, for as long as the block lasts; gives its URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "openenv_gym.cli", "serve", *arguments, "--port", "0", "--log-level", "warning"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=cwd,
    )
    try:
        line = process.stdout.readline()
        found = re.search(r"http://[\w.:\[\]]+", line)
        assert found, line
        yield found[0]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        process.stdout.close()


def socket_of(url):
    return connect(f"ws{url.removeprefix('http')}/ws", proxy=None)


@pytest.mark.parametrize(
    ("target", "action"),
    [("CartPole-v1", 1), ("openenv_gym_envs.echo", "hello"), ("openenv_gym_envs.echo:create_app", "hello")],
)
def test_a_target_is_served_and_played(target, action):
    env_id = "openenv/echo-v0" if action == "hello" else "openenv/remote-v0"
    with command(target) as url, gymnasium.make(env_id, base_url=url) as env:
        env.reset(seed=0)
        assert env.step(action)[0] in env.observation_space


def test_keyword_arguments_reach_the_environment():
    with (
        command("FrozenLake-v1", "--env-kwarg", "is_slippery=false", "--env-kwarg", "map_name=8x8") as url,
        gymnasium.make("openenv/remote-v0", base_url=url) as env,
    ):
        assert env.observation_space.n == 64
        env.reset(seed=0)
        assert [env.step(2)[0] for _ in range(3)] == [1, 2, 3]


def test_the_operator_decides_what_a_client_may():
    arguments = (
        "FrozenLake-v1",
        "--allow-env-kwarg",
        "map_name",
        "--allow-remote",
        "all",
        "--max-concurrent-envs",
        "2",
    )
    with (
        command(*arguments) as url,
        gymnasium.make("openenv/remote-v0", base_url=url, env_kwargs={"map_name": "8x8"}) as env,
    ):
        assert env.observation_space.n == 64
        assert env.unwrapped.get_attr("nrow") == 8


def test_actions_have_the_names_that_the_operator_gives_them():
    with command("FrozenLake-v1", "--named-actions", "left=0,right=2") as url, socket_of(url) as ws:
        ws.send(json.dumps({"type": "step", "data": {"type": "list_tools"}}))
        tools = json.loads(ws.recv(10))["data"]["observation"]["tools"]
        assert [tool["name"] for tool in tools] == ["act", "left", "right", "observe"]


@pytest.mark.parametrize("text", ["left", "left=9", "reset=0", "{"])
def test_names_of_actions_that_cannot_be_are_a_typed_error(text):
    result = CliRunner().invoke(app, ["serve", "FrozenLake-v1", "--named-actions", text])
    assert isinstance(result.exception, SettingsError)
    assert result.exception.setting == "named_actions"


def test_production_has_no_reset():
    with command("CartPole-v1", "--mode", "PRODUCTION") as url:
        assert httpx.post(f"{url}/reset", json={}, trust_env=False).status_code == 404
        assert httpx.get(f"{url}/health", trust_env=False).status_code == 200


@pytest.mark.parametrize(
    "arguments",
    [
        ["CartPole-v1", "--max-concurrent-envs", "many"],
        ["CartPole-v1", "--env-kwarg", "novalue"],
        ["CartPole-v1", "--step-timeout", "soon"],
        ["CartPole-v1", "--mode", "dream"],
        ["openenv_gym_envs.echo", "--env-kwarg", "a=1"],
    ],
)
def test_an_option_that_cannot_be_is_a_typed_error(arguments):
    result = CliRunner().invoke(app, ["serve", *arguments])
    assert isinstance(result.exception, SettingsError)


def test_a_port_in_use_is_a_typed_error():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, ["serve", "openenv_gym_envs.echo", "--port", str(port)])
    assert isinstance(result.exception, SettingsError)
    assert result.exception.setting == "port"


def test_the_environment_gives_the_port_unless_the_option_does():
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as also_taken:
        port, other = taken.getsockname()[1], also_taken.getsockname()[1]
        runner = CliRunner(env={"PORT": str(port)})
        assert f"port {port}," in str(runner.invoke(app, ["serve", "openenv_gym_envs.echo"]).exception)
        arguments = ["serve", "openenv_gym_envs.echo", "--port", str(other)]
        assert f"port {other}," in str(runner.invoke(app, arguments).exception)


@pytest.mark.parametrize("port", ["http", "70000", "-1"])
def test_a_port_of_the_environment_that_is_none_is_named(port):
    result = CliRunner(env={"PORT": port}).invoke(app, ["serve", "openenv_gym_envs.echo"])
    assert result.exit_code == 2
    assert "PORT" in result.output


def test_a_capacity_of_the_environment_that_is_none_is_named():
    result = CliRunner(env={"MAX_CONCURRENT_ENVS": "many"}).invoke(app, ["serve", "CartPole-v1"])
    assert isinstance(result.exception, SettingsError)
    assert "MAX_CONCURRENT_ENVS" in str(result.exception)


def test_what_lies_in_the_current_directory_can_be_served(tmp_path):
    (tmp_path / "local_app_module.py").write_text("from openenv_gym_envs.echo import create_app\n")
    with command("local_app_module:create_app", cwd=tmp_path) as url:
        assert httpx.get(f"{url}/health", trust_env=False).status_code == 200


def test_with_a_token_only_those_who_have_it_are_served():
    with command("openenv_gym_envs.echo", "--token", "secret") as url:
        assert httpx.get(f"{url}/metadata", trust_env=False).status_code == 401
        headers = {"Authorization": "Bearer secret"}
        with gymnasium.make("openenv/echo-v0", base_url=url, headers=headers) as env:
            env.reset()
            assert env.step("hi")[0] == "hi"


@pytest.mark.parametrize("text", ["none", "None", "off", "0"])
def test_no_limit_can_be_said_in_words_and_as_zero(text):
    assert _seconds("ping-interval", text) is None


def test_options_are_read_as_meant():
    assert _seconds("ping-interval", "2.5") == 2.5
    assert (_capacity(None), _capacity("unlimited"), _capacity("8")) == (None, "unlimited", 8)
    assert (_names(None), _names(["a", "b"]), _names(["a", "all"])) == ([], ["a", "b"], "all")


def test_the_ports_of_all_workers_have_to_exist():
    result = CliRunner().invoke(app, ["serve", "CartPole-v1", "--workers", "3", "--port", "65534"])
    assert isinstance(result.exception, SettingsError)
    assert result.exception.setting == "port"


def test_no_port_stays_taken_where_a_later_one_is_not_free():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, ["serve", "CartPole-v1", "--workers", "2", "--port", str(port - 1)])
        assert isinstance(result.exception, SettingsError)
        assert f"port {port}" in str(result.exception) or f"port {port - 1}" in str(result.exception)


@pytest.mark.parametrize(("mode", "said"), [(None, ")"), ("simulation", ")"), (" Production", ', mode="production")')])
def test_the_line_that_makes_an_environment_has_the_servers_mode(mode, said, capsys):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        _announce("openenv_gym_envs.echo", mode, listener)
        _announce_all("CartPole-v1", mode, [listener, listener])
    one, several = capsys.readouterr().out.splitlines()
    assert re.search(r'gymnasium\.make\("openenv/echo-v0", base_url="http://127\.0\.0\.1:\d+"(.*)$', one)[1] == said
    assert ("gymnasium.make_vec(" in several) is (said == ")")
    assert several.endswith(said)
