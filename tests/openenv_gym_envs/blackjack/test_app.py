"""The application, spoken to as any OpenEnv client does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from openenv_gym_envs.blackjack.app import app, create_app
from openenv_gym_server.settings import ServerSettings
from tests.sockets import ask


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(create_app(), base_url="http://127.0.0.1:8000") as client:
        yield client


def step(move: object) -> dict[str, Any]:
    return {"type": "step", "data": {"move": move}}


def test_there_is_an_app_for_uvicorn() -> None:
    assert isinstance(app, FastAPI)


def test_a_game_is_told_in_one_text_each_time(client: TestClient) -> None:
    with client.websocket_connect("/ws") as socket:
        first = ask(socket, {"type": "reset", "data": {"seed": 0}})["data"]
        assert set(first["observation"]) == {"text"}
        assert first["observation"]["text"].endswith(" Reply hit or stand.")
        last = ask(socket, step(" STAND "))["data"]
        assert last["done"] is True
        assert last["reward"] in {-1.0, 0.0, 1.0}
        refusal = ask(socket, step("hit"))["data"]
        assert refusal["code"] == "VALIDATION_ERROR"
        assert "reset() begins another" in refusal["message"]
        assert ask(socket, {"type": "reset"})["type"] == "observation"


def test_another_word_leaves_the_game_where_it_is(client: TestClient) -> None:
    with client.websocket_connect("/ws") as socket, client.websocket_connect("/ws") as twin:
        for one in (socket, twin):
            ask(one, {"type": "reset", "data": {"seed": 1}})
        for word in ("fold", "", 1, None, ["hit"], "x" * 100_000):
            answer = ask(socket, step(word))["data"]
            assert answer["code"] == "VALIDATION_ERROR"
            assert answer["errors"][0]["loc"] == ["move"]
        assert ask(socket, {"type": "state"})["data"]["step_count"] == 0
        assert ask(socket, step("hit"))["data"] == ask(twin, step("hit"))["data"]


def test_the_action_schema_is_one_text(client: TestClient) -> None:
    schema = client.get("/schema").json()
    assert schema["action"]["required"] == ["move"]
    assert set(schema["observation"]["properties"]) - {"reward", "done"} == {"text"}


def test_settings_are_passed_on() -> None:
    production = create_app(settings=ServerSettings(mode="production"))
    with TestClient(production, base_url="http://127.0.0.1:8000") as client:
        assert client.post("/reset").status_code == 404
