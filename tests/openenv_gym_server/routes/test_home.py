"""Tests of ``openenv_gym_server.routes.home``."""

from __future__ import annotations

from starlette.testclient import TestClient

from openenv_gym_server.app import create_app
from tests.text_envs import Echo, Heard, Say


def test_the_root_says_what_runs_here() -> None:
    with TestClient(create_app(Echo, Say, Heard, env_name="<b>mine</b>")) as client:
        told = client.get("/").json()
        assert told["name"] == "<b>mine</b>"
        assert told["websocket"] == "/ws"
        page = client.get("/", headers={"Accept": "text/html"})
        assert page.headers["content-type"].startswith("text/html")
        assert "<b>mine" not in page.text
        assert 'href="/docs"' in page.text
