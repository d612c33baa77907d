"""Tests of ``openenv_gym_server.app``."""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from openenv.core.env_server import http_server as reference
from starlette.testclient import TestClient

from openenv_gym.errors import SettingsError
from openenv_gym.types import ConcurrencyConfig, State
from openenv_gym_server.app import HTTPEnvServer, create_app, create_fastapi_app
from openenv_gym_server.errors import ConcurrencyConfigurationError
from openenv_gym_server.settings import ServerSettings
from tests.openenv_gym_server.climbing import climber, rpc, server_of
from tests.text_envs import Bare, Echo, Heard, Say, make_bare, make_broken, make_echo


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (create_app, reference.create_app),
        (create_fastapi_app, reference.create_fastapi_app),
        (HTTPEnvServer.__init__, reference.HTTPEnvServer.__init__),
    ],
)
def test_signatures_are_openenvs_with_settings_at_the_end(ours: Any, theirs: Any) -> None:
    mine = list(inspect.signature(ours).parameters.values())
    stock = list(inspect.signature(theirs).parameters.values())
    assert mine[-1].name == "settings"
    assert [(p.name, p.kind) for p in mine[:-1]] == [(p.name, p.kind) for p in stock]
    assert [p.default for p in mine[:-1] if p.name != "state_cls"] == [
        p.default for p in stock if p.name != "state_cls"
    ]


def test_the_application_has_openenvs_title_unless_it_is_given_one() -> None:
    app = create_app(Echo, Say, Heard)
    assert (app.title, app.version) == ("OpenEnv Environment HTTP API", "1.0.0")
    assert create_app(Echo, Say, Heard, title_override="Mine").title == "Mine"


def test_a_web_interface_is_not_silently_missing() -> None:
    with pytest.warns(UserWarning, match="gradio_builder"):
        create_app(Echo, Say, Heard, gradio_builder=lambda: None)


def test_capacity_is_given_once() -> None:
    config = ConcurrencyConfig(max_concurrent_envs=2, session_timeout=5.0)
    server = HTTPEnvServer(Echo, Say, Heard, concurrency_config=config)
    assert server.concurrency_config == config
    assert server.max_concurrent_envs == 2
    for more in (
        {"max_concurrent_envs": 2, "concurrency_config": config},
        {"max_concurrent_envs": 2, "settings": ServerSettings(max_concurrent_envs=2)},
    ):
        with pytest.raises(SettingsError) as caught:
            HTTPEnvServer(Echo, Say, Heard, **more)  # type: ignore[arg-type]
        assert caught.value.setting == "max_concurrent_envs"


def test_several_sessions_need_an_environment_that_bears_them() -> None:
    for env in (Bare, make_bare):
        with pytest.raises(ConcurrencyConfigurationError) as caught:
            HTTPEnvServer(env, Say, Heard, max_concurrent_envs=2)
        assert caught.value.max_concurrent_envs == 2
    with pytest.raises(SettingsError, match="one instance"):
        HTTPEnvServer(Echo(), Say, Heard, max_concurrent_envs=2)
    assert HTTPEnvServer(make_echo, Say, Heard, max_concurrent_envs=2).max_concurrent_envs == 2
    assert HTTPEnvServer(Bare, Say, Heard, max_concurrent_envs=1).is_concurrency_safe is False


def test_a_factory_that_fails_when_asked_does_not_keep_the_server_from_starting() -> None:
    assert HTTPEnvServer(make_broken, Say, Heard, max_concurrent_envs=2).max_concurrent_envs == 2


def test_no_limit_means_as_many_as_the_environment_bears() -> None:
    unlimited = ServerSettings(max_concurrent_envs="unlimited")
    for env, limit in ((Echo, sys.maxsize), (make_echo, sys.maxsize), (Bare, 1), (make_bare, 1), (make_broken, 1)):
        assert HTTPEnvServer(env, Say, Heard, settings=unlimited).max_concurrent_envs == limit


def test_without_a_limit_the_status_is_still_a_status() -> None:
    server = HTTPEnvServer(Echo, Say, Heard, settings=ServerSettings(max_concurrent_envs="unlimited"))
    assert server.get_capacity_status().max_sessions == sys.maxsize
    assert server.is_concurrency_safe


def test_routes_join_an_application_of_ones_own_and_end_with_it() -> None:
    order: list[str] = []

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, int]]:
        order.append("begin")
        yield {"mine": 1}
        order.append("end")

    app = FastAPI(lifespan=lifespan)
    server = HTTPEnvServer(Echo, Say, Heard)
    server.register_routes(app)

    @app.get("/mine")
    async def mine() -> str:
        return "mine"

    with TestClient(app) as client:
        assert client.get("/mine", headers={"Origin": "https://page.example"}).json() == "mine"
        kept = client.post("/reset", headers={"X-OpenEnv-Session": "new"}).headers["X-OpenEnv-Session"]
        assert server.active_sessions == 1
        assert server.get_capacity_status().active_sessions == 1
        info = server.get_session_info(kept)
        assert info is not None
        assert info.environment_type == "Echo"
        assert server.get_session_info("none") is None
    assert server.active_sessions == 0
    assert order == ["begin", "end"]


def test_the_mode_of_the_routes_may_be_given_with_them() -> None:
    app = FastAPI()
    HTTPEnvServer(Echo, Say, Heard).register_routes(app, "production")
    with TestClient(app) as client:
        assert client.post("/reset").status_code == 404
    with pytest.raises(SettingsError):
        HTTPEnvServer(Echo, Say, Heard).register_routes(FastAPI(), "training")


def test_one_server_in_two_applications_has_each_applications_mode_in_its_sessions() -> None:
    server, training, serving = server_of(climber()), FastAPI(), FastAPI()
    server.register_routes(serving, "production")
    server.register_routes(training, "simulation")
    with TestClient(training) as trainer, TestClient(serving) as agent:
        tools = {
            name: {tool["name"] for tool in client.post("/mcp", json=rpc("tools/list")).json()["result"]["tools"]}
            for name, client in (("training", trainer), ("serving", agent))
        }
        assert tools["serving"] - tools["training"] == {"ask"}
        session_id = agent.post("/mcp", json=rpc("openenv/session/create")).json()["result"]["session_id"]
        # Whoever has the other application's address is the operator, who alone controls episodes.
        listed = trainer.post("/mcp", json=rpc("tools/list", session_id=session_id)).json()["result"]["tools"]
        assert "ask" in {tool["name"] for tool in listed}
        assert agent.post("/reset", headers={"X-OpenEnv-Session": session_id}).status_code == 404


def test_what_older_environments_call_is_there() -> None:
    server = HTTPEnvServer(Echo, Say, Heard, state_cls=State)
    action = server._deserialize_action({"message": "x"})
    assert isinstance(action, Say)
    assert server._serialize_observation(Heard(echo="x")) == {
        "observation": {"metadata": {}, "echo": "x", "extra": None},
        "reward": None,
        "done": False,
    }
    assert server._serialize_observation(Heard(metadata={"a": 1}))["metadata"] == {"a": 1}


def test_the_environment_sets_the_capacity_where_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_CONCURRENT_ENVS", "7")
    config = ConcurrencyConfig(max_concurrent_envs=3)
    assert HTTPEnvServer(Echo, Say, Heard).max_concurrent_envs == 7
    assert HTTPEnvServer(Echo, Say, Heard, max_concurrent_envs=2).max_concurrent_envs == 2
    assert HTTPEnvServer(Echo, Say, Heard, concurrency_config=config).max_concurrent_envs == 3
    assert HTTPEnvServer(Echo, Say, Heard, settings=ServerSettings(max_concurrent_envs=4)).max_concurrent_envs == 4
    with pytest.raises(ConcurrencyConfigurationError, match="MAX_CONCURRENT_ENVS"):
        HTTPEnvServer(Bare, Say, Heard)
    monkeypatch.setenv("MAX_CONCURRENT_ENVS", "many")
    with pytest.raises(SettingsError, match="MAX_CONCURRENT_ENVS"):
        HTTPEnvServer(Echo, Say, Heard)
    assert HTTPEnvServer(Echo, Say, Heard, max_concurrent_envs=2).max_concurrent_envs == 2
