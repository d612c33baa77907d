"""``openenv-gym serve module:app``: every option has its effect on the app that the module makes, or is refused."""

import itertools
import sys

import pytest
import typer
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from openenv_gym.cli import app, serving
from openenv_gym.errors import SettingsError
from openenv_gym.messages import SUBPROTOCOL
from openenv_gym_server.precedence import held
from tests.sockets import ask

_numbers = itertools.count()

HEAD = """
import openenv_gym_server as server
from openenv_gym.types import Action, Observation, State


class Say(Action):
    message: str


class Shout(server.Environment[Say, Observation, State]):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, size=1):
        super().__init__()
        self.size = size

    def reset(self, seed=None):
        return Observation()

    def step(self, action):
        return Observation(reward=1.0)


"""
PLAIN = "app = server.create_app(Shout, Say, Observation)"
FULL = """
settings = server.ServerSettings(
    mode="simulation", max_concurrent_envs=2, allowed_env_kwargs={"other"}, remote_names={"other"}, token="authors",
    session_timeout_s=60.0, step_timeout_s=60.0, max_message_size_mb=8.0,
)
app = server.create_app(Shout, Say, Observation, mode="simulation", settings=settings)
"""


@pytest.fixture
def served(monkeypatch, tmp_path):
    """Runs the command on a module of that text, up to the place where uvicorn would begin; gives its ``Config``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    configs = []
    listeners: list[tuple[str, int]] = []

    class Recorder:
        def __init__(self, config, tell):
            configs.append(config)

        def run(self, sockets):
            listeners.extend(listener.getsockname() for listener in sockets)
            for listener in sockets:
                listener.close()

    monkeypatch.setattr(serving, "_Telling", Recorder)

    def run(text, *options, env=None, port="0"):
        name = f"a_module_to_serve_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(HEAD + text)
        result = CliRunner(env=env).invoke(app, ["serve", f"{name}:app", *options, "--port", port])
        if result.exception is not None:
            raise result.exception
        return configs[-1], listeners[-1]

    return run


def client_of(config, **headers):
    return TestClient(config.app, headers=headers, base_url="http://127.0.0.1:8000")


def opened(config, data=None):
    """The answer to the opening of a session, and to what an attribute is."""
    token = held(config.app)[0].settings.token
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with client_of(config, **headers) as client, client.websocket_connect("/ws", [SUBPROTOCOL]) as socket:
        answer = ask(socket, {"type": "x-open", "data": data or {}, "id": 1})
        if answer["type"] == "error":
            return answer, None
        return answer, ask(socket, {"type": "x-get_attr", "data": {"name": "size"}, "id": 2})


def field(name, value):
    def check(config, listener):
        assert getattr(held(config.app)[0].settings, name) == value

    return check


def has_no_reset(config, listener):
    field("mode", "production")(config, listener)
    assert not any(getattr(route, "path", "") == "/reset" for route in config.app.routes)


def makes_it_of_a_size(config, listener):
    assert opened(config, {"env_kwargs": {"size": 3}})[0]["type"] == "x-open"


def tells_its_size(config, listener):
    assert opened(config)[1]["data"]["value"] == 1


def wants_the_token(config, listener):
    with client_of(config) as client:
        assert client.get("/schema").status_code == 401
        assert client.get("/schema", headers={"Authorization": "Bearer secret"}).status_code == 200


def takes_small_messages(config, listener):
    field("max_message_size_mb", 1.5)(config, listener)
    assert config.ws_max_size == int(2.5 * 2**20)


def of_uvicorn(name, value):
    def check(config, listener):
        assert getattr(config, name) == value

    return check


EFFECTS = {
    "--host": ("127.0.0.2", lambda config, listener: listener[0] == "127.0.0.2" or pytest.fail(str(listener))),
    "--port": ("0", lambda config, listener: listener[1] > 0 or pytest.fail(str(listener))),
    "--mode": ("production", has_no_reset),
    "--max-concurrent-envs": ("3", field("max_concurrent_envs", 3)),
    "--allow-env-kwarg": ("size", makes_it_of_a_size),
    "--allow-code": (None, field("allow_code", True)),
    "--allow-remote": ("size", tells_its_size),
    "--workers": ("1", field("shards", ())),
    "--shard-url": ("http://a:1/one", field("shards", ("http://a:1/one",))),
    "--seed": ("5", field("seed", 5)),
    "--token": ("secret", wants_the_token),
    "--session-timeout": ("none", field("session_timeout_s", None)),
    "--step-timeout": ("5", field("step_timeout_s", 5.0)),
    "--ping-interval": ("3", of_uvicorn("ws_ping_interval", 3.0)),
    "--ping-timeout": ("4", of_uvicorn("ws_ping_timeout", 4.0)),
    "--max-message-size-mb": ("1.5", takes_small_messages),
    "--log-level": ("critical", of_uvicorn("log_level", "critical")),
    "--no-proxy-headers": (None, of_uvicorn("proxy_headers", False)),
}
REFUSED = {"--env-kwarg", "--named-actions"}
OF_THE_APP = {
    "--mode": "production",
    "--max-concurrent-envs": "3",
    "--allow-env-kwarg": "size",
    "--allow-remote": "size",
    "--session-timeout": "none",
    "--shard-url": "http://a",
    "--step-timeout": "5",
    "--max-message-size-mb": "1.5",
}


def test_every_option_of_the_command_is_tested_here():
    parameters = typer.main.get_command(app).commands["serve"].params
    names = {parameter.opts[0] for parameter in parameters if parameter.opts[0].startswith("--")}
    names = {"--no-proxy-headers" if name == "--proxy-headers" else name for name in names}
    assert names - {"--help"} == EFFECTS.keys() | REFUSED


@pytest.mark.parametrize("option", EFFECTS)
@pytest.mark.parametrize("text", [PLAIN, FULL], ids=["an app without settings", "an app with settings of its own"])
def test_an_option_has_its_effect_on_the_app_of_a_module(served, text, option):
    value, check = EFFECTS[option]
    arguments = [option] if value is None else [option, value]
    check(*(served(text, port=value) if option == "--port" else served(text, *arguments)))


def test_options_that_were_not_given_leave_the_apps_own(served):
    config, _ = served(FULL)
    settings = held(config.app)[0].settings
    assert (settings.max_concurrent_envs, settings.step_timeout_s, settings.token) == (2, 60.0, "authors")
    assert (settings.allowed_env_kwargs, settings.remote_names) == ({"other"}, {"other"})
    assert config.ws_max_size == 9 * 2**20


def test_variables_of_the_server_leave_the_apps_own_and_hold_where_there_is_none(served):
    env = {"MAX_CONCURRENT_ENVS": "5", "OPENENV_MODE": "production"}
    assert held(served(PLAIN, env=env)[0].app)[0].settings.max_concurrent_envs == 5
    assert held(served(PLAIN, env=env)[0].app)[0].settings.production
    assert held(served(FULL, env=env)[0].app)[0].settings.max_concurrent_envs == 2
    assert not held(served(FULL, env=env)[0].app)[0].settings.production


def test_a_token_of_the_variables_holds_as_one_of_the_options(served):
    wants_the_token(*served(FULL, env={"OPENENV_TOKEN": "secret"}))


def test_the_keywords_of_an_environment_are_refused_by_the_options_name(served):
    with pytest.raises(SettingsError, match="--env-kwarg"):
        served(PLAIN, "--env-kwarg", "size=3")


def test_names_of_actions_are_refused_by_the_options_name(served):
    with pytest.raises(SettingsError, match="--named-actions"):
        served(PLAIN, "--named-actions", "left=0")


@pytest.mark.parametrize("option", OF_THE_APP)
def test_an_app_of_another_make_is_refused_its_options(served, option):
    with pytest.raises(SettingsError, match=f"^{option} cannot hold for"):
        served("from fastapi import FastAPI\napp = FastAPI()", option, OF_THE_APP[option])


def test_an_app_that_its_author_closed_is_not_opened_by_an_option(served):
    text = "app = server.create_app(Shout, Say, Observation, mode='production')"
    with pytest.raises(SettingsError, match="--mode production or none at all"):
        served(text, "--mode", "simulation")


@pytest.mark.parametrize("kind", ["ValueError", "TypeError", "RuntimeError", "KeyError", "SystemError"])
def test_what_a_module_raises_is_told_in_a_few_lines_with_its_own(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = f"a_module_to_serve_{next(_numbers)}"
    (tmp_path / f"{name}.py").write_text(f"x = 1\nraise {kind}('its own words')\n")
    result = CliRunner().invoke(app, ["serve", f"{name}:app"])
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[0].startswith(f"openenv-gym: {name}:app cannot be loaded: {kind}: ")
    assert "its own words" in lines[0]
    assert f'{name}.py", line 2' in lines[1]
    assert len(lines) == 3
