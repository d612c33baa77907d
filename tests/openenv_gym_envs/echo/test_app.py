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


def call(socket, tool, **arguments):
    return ask(socket, type="step", data={"type": "call_tool", "tool_name": tool, "arguments": arguments})["data"]


def test_the_greeting_has_the_one_field(client):
    with client.websocket_connect("/ws") as socket:
        greeting = ask(socket, type="reset")["data"]
        assert greeting["observation"] == {"echoed_message": "Echo environment ready!"}
        assert greeting["reward"] == 0.0


def test_its_tools_echo_what_they_are_told(client):
    with client.websocket_connect("/ws") as socket:
        ask(socket, type="reset")
        reply = call(socket, "echo_message", message="Hello, World!")
        assert reply["observation"]["result"]["data"] == "Hello, World!"
        assert reply["observation"]["error"] is None
        assert (reply["reward"], reply["done"]) == (0.1 * 13, False)
        reply = call(socket, "echo_with_length", message="ab")
        assert reply["observation"]["result"]["data"] == {"message": "ab", "length": 2}


def test_its_tools_are_listed_without_a_step(client):
    with client.websocket_connect("/ws") as socket:
        ask(socket, type="reset")
        tools = ask(socket, type="step", data={"type": "list_tools"})["data"]["observation"]["tools"]
        assert [tool["name"] for tool in tools] == ["echo_message", "echo_with_length"]
        assert tools[0]["input_schema"]["required"] == ["message"]
        assert ask(socket, type="state")["data"]["step_count"] == 0


def test_a_call_that_fails_is_a_step_without_reward(client):
    with client.websocket_connect("/ws") as socket:
        ask(socket, type="reset")
        reply = call(socket, "echo_message", message=3)
        assert reply["observation"]["error"]["error_type"] == "invalid_args"
        assert reply["reward"] == 0.0
        assert ask(socket, type="state")["data"]["step_count"] == 1


def test_the_older_action_of_a_bare_message_is_understood(client):
    with client.websocket_connect("/ws") as socket:
        ask(socket, type="reset")
        for data in ({"message": "Hello"}, {"message": "Hello", "metadata": {}}):
            reply = ask(socket, type="step", data=data)["data"]
            assert reply["observation"] == {"echoed_message": "Hello", "message_length": 5}
            assert reply["reward"] == 0.5


def test_a_bad_action_leaves_the_session_alive(client):
    with client.websocket_connect("/ws") as socket:
        ask(socket, type="reset")
        for data in ({}, {"message": 3}, {"message": "a", "extra": 1}):
            assert ask(socket, type="step", data=data)["data"]["code"] == "VALIDATION_ERROR"
        assert ask(socket, type="step", data={"message": "still here"})["type"] == "observation"
        assert ask(socket, type="state")["data"]["step_count"] == 1


def test_the_schema_is_that_of_calls_and_of_the_greeting(client):
    schema = client.get("/schema").json()
    assert schema["action"]["required"] == ["tool_name"]
    assert {"tool_name", "result", "error"} < set(schema["observation"]["properties"])
    assert set(schema["reset_observation"]["properties"]) - {"reward", "done"} == {"echoed_message"}


def test_settings_are_passed_on():
    production = create_app(settings=ServerSettings(mode="production"))
    with TestClient(production, base_url="http://127.0.0.1:8000") as client:
        assert client.post("/reset").status_code == 404
