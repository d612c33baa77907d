"""The echo application, spoken to as any OpenEnv client does."""

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from openenv_gym_envs.echo.app import app, create_app
from openenv_gym_server.settings import ServerSettings


def ask(socket, **message):
    socket.send_json(message)
    return socket.receive_json()


@pytest.fixture
def client():
    with TestClient(create_app(), base_url="http://127.0.0.1:8000") as client:
        yield client


def test_there_is_an_app_for_uvicorn():
    assert isinstance(app, FastAPI)


def test_an_observation_has_the_one_field(client):
    with client.websocket_connect("/ws") as socket:
        first = ask(socket, type="reset")["data"]
        assert first["observation"] == {"echoed_message": "Echo environment ready!"}
        reply = ask(socket, type="step", data={"message": "Hello, World!"})["data"]
        assert reply["observation"] == {"echoed_message": "Hello, World!"}
        assert reply["reward"] == 0.1 * 13
        assert reply["done"] is False


def test_an_action_as_openenvs_own_models_write_it_is_understood(client):
    with client.websocket_connect("/ws") as socket:
        ask(socket, type="reset")
        assert ask(socket, type="step", data={"message": "a", "metadata": {}})["type"] == "observation"


def test_a_bad_action_leaves_the_session_alive(client):
    with client.websocket_connect("/ws") as socket:
        ask(socket, type="reset")
        for data in ({}, {"message": 3}, {"message": "a", "extra": 1}):
            assert ask(socket, type="step", data=data)["data"]["code"] == "VALIDATION_ERROR"
        assert ask(socket, type="step", data={"message": "still here"})["type"] == "observation"
        assert ask(socket, type="state")["data"]["step_count"] == 1


def test_the_action_schema_needs_the_message_alone(client):
    schema = client.get("/schema").json()
    assert schema["action"]["required"] == ["message"]
    assert set(schema["observation"]["properties"]) - {"reward", "done"} == {"echoed_message"}


def test_settings_are_passed_on():
    production = create_app(settings=ServerSettings(mode="production"))
    with TestClient(production, base_url="http://127.0.0.1:8000") as client:
        assert client.post("/reset").status_code == 404
