"""``openenv-gym inspect`` on servers of several makes."""

import json

import pytest
from typer.testing import CliRunner

from openenv_gym.cli import app
from openenv_gym.cli.inspect import describe
from openenv_gym.errors import SettingsError, UnreachableError
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym_server import ServerSettings, create_gym_app
from tests.serving import serve


@pytest.fixture(scope="module")
def cartpole():
    with serve(create_gym_app("CartPole-v1", settings=ServerSettings(max_concurrent_envs=3))) as url:
        yield url


def run(*arguments):
    return CliRunner().invoke(app, ["inspect", *arguments], env={"COLUMNS": "200"})


def test_the_json_has_spaces_schema_capacity_and_mode(cartpole):
    description = json.loads(run(cartpole, "--json").output)
    assert description["mode"] == "simulation"
    assert description["capacity"] == {"active_sessions": 0, "max_sessions": 3}
    assert description["spaces"]["action"] == "Discrete(2)"
    assert description["spaces"]["observation"].startswith("Box(")
    assert description["gymnasium"]["env_id"] == "CartPole-v1"
    assert set(description["schema"]) >= {"action", "observation", "state"}


def test_the_table_says_the_same_in_rows(cartpole):
    output = run(cartpole).output
    for words in ("CartPole-v1", "Discrete(2)", "0 of 3 sessions in use", "simulation"):
        assert words in output


def test_a_production_server_is_told_from_a_simulation():
    with serve(create_gym_app("CartPole-v1", settings=ServerSettings(mode="production"))) as url:
        assert describe(url, ConnectionSettings())["mode"] == "production"


def test_headers_go_along(cartpole):
    assert run(cartpole, "--header", "Authorization=Bearer x", "--json").exit_code == 0
    assert isinstance(run(cartpole, "--header", "nonsense").exception, SettingsError)


def test_an_address_without_a_server_is_a_typed_error():
    result = run("http://127.0.0.1:9", "--timeout", "2")
    assert isinstance(result.exception, UnreachableError)


def test_a_server_that_wants_a_token_is_told_in_options_of_the_command():
    with serve(create_gym_app("CartPole-v1", settings=ServerSettings(token="right"))) as url:
        error = run(url).exception
        assert isinstance(error, UnreachableError)
        assert error.status == 401
        assert '--header "Authorization=Bearer <token>"' in str(error)
        assert "lacks the word Bearer" in str(run(url, "--header", "Authorization=right").exception)
        assert run(url, "--header", "Authorization=Bearer right").exit_code == 0


def json_server(documents):
    async def answer(scope, receive, send):
        body = documents.get(scope["path"])
        status = 200 if body is not None else 404
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(body).encode()})

    return serve(answer, lifespan="off")


def test_a_server_that_publishes_little_is_shown_as_far_as_it_goes():
    nothing = {"type": "object", "properties": {"x": {"type": "file"}}, "required": ["x"]}
    with json_server(
        {"/schema": {"action": nothing, "observation": nothing, "state": {}}, "/metadata": {"name": "bare"}}
    ) as url:
        output = run(url).output
    assert "not published" in output
    assert "error space" in output


def test_a_schema_that_is_no_object_is_no_openenv_server():
    with json_server({"/schema": [], "/metadata": {}}) as url, pytest.raises(UnreachableError):
        describe(url, ConnectionSettings())
