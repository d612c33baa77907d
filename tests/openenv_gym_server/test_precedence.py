"""Whose word holds where several have spoken."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI

from openenv_gym.errors import SettingsError
from openenv_gym.types import ConcurrencyConfig
from openenv_gym_server import ServerSettings, create_app, create_fastapi_app, create_gym_app
from openenv_gym_server.app import HTTPEnvServer
from openenv_gym_server.precedence import Operator, acting, current, held, serving_options
from tests.text_envs import Echo, Heard, Say

OPTIONS = {
    "mode": ("production", "--mode"),
    "max_concurrent_envs": (3, "--max-concurrent-envs"),
    "allowed_env_kwargs": (frozenset({"size"}), "--allow-env-kwarg"),
    "remote_names": (frozenset({"score"}), "--allow-remote"),
    "token": ("secret", "--token"),
    "session_timeout_s": (7.0, "--session-timeout"),
    "step_timeout_s": (5.0, "--step-timeout"),
    "max_message_size_mb": (2.0, "--max-message-size-mb"),
}
AUTHORS = ServerSettings(
    mode="simulation",
    allowed_env_kwargs=frozenset({"a"}),
    remote_names=frozenset({"b"}),
    token="authors",
    session_timeout_s=1.0,
    step_timeout_s=1.0,
    max_message_size_mb=1.0,
)


def operator_of(*names: str) -> Operator:
    fields: dict[str, Any] = {name: OPTIONS[name][0] for name in names}
    return Operator(ServerSettings(**fields), {name: OPTIONS[name][1] for name in names})


def registered(settings: ServerSettings | None) -> FastAPI:
    app = FastAPI()
    HTTPEnvServer(Echo, Say, Heard, settings=settings).register_routes(app)
    return app


WAYS = {
    "create_app": lambda settings: create_app(Echo, Say, Heard, settings=settings),
    "create_fastapi_app": lambda settings: create_fastapi_app(Echo, Say, Heard, settings=settings),
    "create_gym_app": lambda settings: create_gym_app("CartPole-v1", settings=settings),
    "HTTPEnvServer": registered,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("authors", [None, AUTHORS], ids=["no settings", "the author's settings"])
def test_an_option_holds_however_an_app_is_made(way: str, name: str, authors: ServerSettings | None) -> None:
    with acting(operator_of(name)):
        (server,) = held(WAYS[way](authors))
    assert getattr(server.settings, name) == OPTIONS[name][0]


@pytest.mark.parametrize("name", OPTIONS)
def test_what_was_not_given_leaves_the_authors_own_as_it_is(name: str) -> None:
    others = [each for each in OPTIONS if each != name]
    with acting(operator_of(*others)):
        (server,) = held(create_app(Echo, Say, Heard, settings=AUTHORS))
    assert getattr(server.settings, name) == getattr(AUTHORS, name)


def test_a_default_of_the_operator_is_none_of_the_authors() -> None:
    with acting(Operator(ServerSettings(step_timeout_s=9.0, max_concurrent_envs="unlimited"))):
        assert HTTPEnvServer(Echo, Say, Heard).settings.step_timeout_s == 9.0
        assert HTTPEnvServer(Echo, Say, Heard, settings=AUTHORS).settings.step_timeout_s == 1.0
        assert HTTPEnvServer(Echo, Say, Heard, max_concurrent_envs=2).settings.max_concurrent_envs == 2


def test_the_capacity_that_was_given_goes_over_the_authors_arguments() -> None:
    config = ConcurrencyConfig(max_concurrent_envs=2, session_timeout=4.0)
    with acting(operator_of("max_concurrent_envs")):
        assert HTTPEnvServer(Echo, Say, Heard, max_concurrent_envs=2).max_concurrent_envs == 3
        server = HTTPEnvServer(Echo, Say, Heard, concurrency_config=config)
        assert (server.max_concurrent_envs, server.settings.session_timeout_s) == (3, 4.0)
    with acting(operator_of("session_timeout_s")):
        server = HTTPEnvServer(Echo, Say, Heard, concurrency_config=config)
        assert (server.max_concurrent_envs, server.settings.session_timeout_s) == (2, 7.0)


def test_settings_handed_on_beside_an_argument_are_no_contradiction() -> None:
    operator = Operator(ServerSettings(max_concurrent_envs=5))
    with acting(operator):
        server = HTTPEnvServer(Echo, Say, Heard, max_concurrent_envs=2, settings=operator.settings)
    assert server.max_concurrent_envs == 2
    with pytest.raises(SettingsError, match=r"got both max_concurrent_envs and settings\.max_concurrent_envs"):
        HTTPEnvServer(Echo, Say, Heard, max_concurrent_envs=2, settings=operator.settings)


@pytest.mark.parametrize("mode", ["simulation", None])
def test_an_operator_may_close_what_its_author_has_open(mode: str | None) -> None:
    with acting(operator_of("mode")):
        (server,) = held(create_app(Echo, Say, Heard, mode=mode))
    assert server.settings.production


@pytest.mark.parametrize(
    "more", [{"mode": "production"}, {"settings": ServerSettings(mode="production")}], ids=["argument", "settings"]
)
def test_nobody_opens_by_an_option_what_its_author_has_closed(more: Any) -> None:
    operator = Operator(ServerSettings(mode="simulation"), {"mode": "--mode"})
    with acting(operator), pytest.raises(SettingsError, match=r"--mode production .*got simulation") as caught:
        create_app(Echo, Say, Heard, **more)
    assert caught.value.setting == "mode"


def test_an_operator_acts_as_long_as_the_block_and_no_longer() -> None:
    operator = operator_of("step_timeout_s")
    with acting(operator):
        assert current() is operator
    assert current().given == {}
    assert HTTPEnvServer(Echo, Say, Heard).settings.step_timeout_s is None


def test_the_servers_of_mounted_apps_are_found_too() -> None:
    outer = FastAPI()
    outer.mount("/one", create_app(Echo, Say, Heard, settings=AUTHORS))
    outer.mount("/two", create_app(Echo, Say, Heard))
    assert [server.settings.token for server in held(outer)] == ["authors", None]
    assert held(FastAPI()) == []


def test_uvicorn_holds_what_the_app_itself_has() -> None:
    mine = ServerSettings(max_message_size_mb=2.0)
    assert serving_options(FastAPI(), mine)["ws_max_size"] == 3 * 2**20
    app = create_app(Echo, Say, Heard, settings=ServerSettings(max_message_size_mb=100.0))
    assert serving_options(app, mine)["ws_max_size"] == 101 * 2**20
