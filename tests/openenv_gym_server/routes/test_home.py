"""Tests of ``openenv_gym_server.routes.home``."""

from __future__ import annotations

from starlette.testclient import TestClient

from openenv_gym_server.app import create_app
from tests.text_envs import Echo, Heard, Say


def test_the_root_says_what_runs_here() -> None:
    with TestClient(create_app(Echo, Say, Heard, env_name="<b>mine</b>")) as client:
        told = client.get("/").json()
        assert told["name"] == "<b>mine</b>"
        assert (told["websocket"], told["mcp"]) == ("/ws", "/mcp")
        page = client.get("/", headers={"Accept": "text/html"})
        assert page.headers["content-type"].startswith("text/html")
        assert "<b>mine" not in page.text
        assert 'href="/docs"' in page.text


def test_the_page_sends_clients_to_ws_in_simulation_alone() -> None:
    for mode, told in (("simulation", True), ("production", False)):
        with TestClient(create_app(Echo, Say, Heard, mode=mode)) as client:
            page = client.get("/", headers={"Accept": "text/html"}).text
            assert ("<code>/ws</code>" in page) is told
            assert "<code>/mcp</code>" in page
