"""The process's own end of the line; the parent's end has its tests with the provider."""

import json
import subprocess
import sys

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from openenv_gym.providers._boot import boot_command
from openenv_gym_server.app import create_app
from tests.sockets import ask, socket_of
from tests.text_envs import Echo, Heard, Say

TOKEN = "made-up_by.the~parent"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def start(**config):
    process = subprocess.Popen(boot_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    config = {"module": "openenv_gym_server.guard", "sys_path": sys.path, "token": TOKEN, **config}
    process.stdin.write(json.dumps(config) + "\n")
    process.stdin.flush()
    return process, json.loads(process.stdout.readline())


@pytest.fixture
def parent():
    import os

    return os.getpid()


def test_it_serves_on_loopback_and_ends_with_its_line(parent):
    process, report = start(target="openenv_gym_envs.echo", parent=parent)
    url = f"http://127.0.0.1:{report['port']}"
    assert httpx.get(f"{url}/health", headers=BEARER, trust_env=False).json() == {"status": "healthy"}
    process.stdin.close()
    assert process.wait(20) == 0
    process.stdout.close()


def test_it_is_there_to_be_played_on_whatever_mode_servers_of_their_own_have(parent, monkeypatch):
    monkeypatch.setenv("OPENENV_MODE", "production")
    process, report = start(target="openenv_gym_envs.echo", parent=parent)
    with socket_of(f"http://127.0.0.1:{report['port']}", additional_headers=BEARER) as socket:
        assert ask(socket, {"type": "reset"})["type"] == "observation"
    process.stdin.close()
    assert process.wait(20) == 0
    process.stdout.close()


def test_it_ends_where_its_parent_is_another_already():
    process, report = start(target="openenv_gym_envs.echo", parent=1)
    assert report["port"] > 0
    assert process.wait(20) == 0
    process.stdin.close()
    process.stdout.close()


def test_it_reports_why_it_cannot_serve(parent):
    process, report = start(target="no_such_package_anywhere", parent=parent)
    assert report["summary"].startswith("expected a Gymnasium id")
    assert report["typed"] is True
    assert "Traceback" in report["error"]
    assert process.wait(20) == 0
    process.stdin.close()
    process.stdout.close()


@pytest.mark.parametrize("target", ["openenv_gym_envs.echo", "tests.openenv_gym_server.test_embedded:ready_made"])
def test_strangers_get_nothing_whatever_is_served(parent, target):
    process, report = start(target=target, parent=parent)
    url = f"http://127.0.0.1:{report['port']}"
    for path in ("/health", "/docs", "/openapi.json", "/nowhere"):
        answer = httpx.get(url + path, trust_env=False)
        assert answer.status_code == 401
        assert "no Authorization header" in answer.json()["detail"]
    with pytest.raises(InvalidStatus) as caught, socket_of(url):
        pass
    assert caught.value.response.status_code == 401
    with socket_of(url, additional_headers=BEARER) as socket:
        assert ask(socket, {"type": "reset"})["type"] == "observation"
    process.stdin.close()
    assert process.wait(20) == 0
    process.stdout.close()


def __getattr__(name):
    """An app that was made before anybody knew of a token."""
    if name != "ready_made":
        raise AttributeError(name)
    return create_app(Echo, Say, Heard)
