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


def test_the_package_has_nothing_else():
    with pytest.raises(AttributeError, match="nothing"):
        _ = openenv_gym_envs.echo.nothing
