"""What the echo package gives, and what it does not bring along."""

import subprocess
import sys

import pytest

import openenv_gym_envs.echo


def test_the_package_alone_brings_no_web_server():
    code = "import openenv_gym_envs.echo, sys; sys.exit('fastapi' in sys.modules or 'uvicorn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_the_application_is_made_by_the_package():
    assert openenv_gym_envs.echo.create_app().title


@pytest.mark.parametrize("name", openenv_gym_envs.echo.__all__)
def test_each_public_name_is_there(name):
    assert getattr(openenv_gym_envs.echo, name).__name__ == name
    assert name in dir(openenv_gym_envs.echo)


def test_a_client_brings_no_web_server_either():
    code = "from openenv_gym_envs.echo import EchoEnv; import sys; sys.exit('fastapi' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_the_package_has_nothing_else():
    with pytest.raises(AttributeError, match="nothing"):
        _ = openenv_gym_envs.echo.nothing
