"""``openenv-gym mcp``: what it refuses; what it does, ``tests/interop/test_standard_mcp.py`` asks over its streams."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from openenv_gym.cli import app
from openenv_gym.errors import SettingsError, UnreachableError
from openenv_gym_envs.echo.app import create_app
from openenv_gym_server.settings import ServerSettings
from tests.serving import serve


def run(*arguments: str, **environment: str) -> Any:
    return CliRunner().invoke(app, ["mcp", *arguments], env=environment)


def test_a_server_that_is_not_there_is_an_error_at_once() -> None:
    assert isinstance(run("http://127.0.0.1:9").exception, UnreachableError)


def test_the_address_is_the_servers_and_not_the_one_of_its_tools() -> None:
    error = run("http://127.0.0.1:9/env/mcp/").exception
    assert isinstance(error, SettingsError)
    assert "leave out /mcp" in str(error)


@pytest.mark.parametrize("mode", ["training", ""])
def test_a_wrong_mode_is_refused_with_the_valid_ones(mode: str) -> None:
    error = run("http://127.0.0.1:9", "--mode", mode).exception
    assert isinstance(error, SettingsError)
    assert error.setting == "mode"
    assert "production" in str(error)
    assert "simulation" in str(error)


def test_the_mode_may_be_in_any_letter_case_and_in_the_environment() -> None:
    assert isinstance(run("http://127.0.0.1:9", "--mode", " Simulation").exception, UnreachableError)
    assert isinstance(run("http://127.0.0.1:9", OPENENV_CLIENT_MODE="nonsense").exception, SettingsError)
    assert isinstance(
        run("http://127.0.0.1:9", "--mode", "PRODUCTION", OPENENV_CLIENT_MODE="x").exception, UnreachableError
    )


def test_a_missing_token_is_named_by_the_option() -> None:
    with serve(create_app(ServerSettings(token="secret"))) as url:
        error = run(url).exception
    assert isinstance(error, UnreachableError)
    assert "--header" in str(error)


def test_without_the_extra_the_message_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        name
        for name in sys.modules
        if name in {"openenv_gym.tool_server", "openenv_gym.remote_tools", "openenv_gym.tool_wire"}
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    error = run("http://127.0.0.1:9").exception
    assert isinstance(error, SettingsError)
    assert "openenv-gym[mcp]" in str(error)


def test_numbers_that_json_has_not_are_no_arguments() -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "lines", "version": "1"}}
    call = (
        '{"jsonrpc": "2.0", "id": ID, "method": "tools/call", "params": '
        '{"name": "echo_message", "arguments": {"message": MESSAGE}}}'
    )
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        '{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        call.replace("ID", "2").replace("MESSAGE", "NaN"),
        call.replace("ID", "3").replace("MESSAGE", '"hi"'),
    ]
    with serve(create_app()) as url:
        command = [sys.executable, "-m", "openenv_gym.cli", "mcp", url]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            answers = []
            for line in lines:
                program.stdin.write(line + "\n")
                program.stdin.flush()
                if '"id"' in line:
                    answers.append(json.loads(program.stdout.readline()))
            program.stdin.close()
            assert program.wait(20) == 0
    assert [each["id"] for each in answers] == [1, 2, 3]
    assert answers[1]["error"]["code"] == -32700
    assert answers[2]["result"]["content"][0]["text"] == "hi"
