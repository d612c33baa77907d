"""The process's own end of the line; the parent's end has its tests with the provider."""

import json
import subprocess
import sys

import httpx
import pytest

from openenv_gym.providers.process import _BOOT


def start(**config):
    process = subprocess.Popen([sys.executable, "-c", _BOOT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write(json.dumps({"module": "openenv_gym_server.embedded", "sys_path": sys.path, **config}) + "\n")
    process.stdin.flush()
    return process, json.loads(process.stdout.readline())


@pytest.fixture
def parent():
    import os

    return os.getpid()


def test_it_serves_on_loopback_and_ends_with_its_line(parent):
    process, report = start(target="openenv_gym_envs.echo", parent=parent)
    url = f"http://127.0.0.1:{report['port']}"
    assert httpx.get(f"{url}/health", trust_env=False).json() == {"status": "healthy"}
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
    assert report["summary"].startswith("SettingsError: ")
    assert "Traceback" in report["error"]
    assert process.wait(20) == 0
    process.stdin.close()
    process.stdout.close()
