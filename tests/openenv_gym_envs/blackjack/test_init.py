"""What the blackjack package gives, and what it does not bring along."""

from __future__ import annotations

import subprocess
import sys

import pytest

import openenv_gym_envs.blackjack


@pytest.mark.parametrize("names", ["", "BlackjackAction, BlackjackEnv, BlackjackObservation"])
def test_the_client_alone_brings_no_web_server(names: str) -> None:
    imported = f"from openenv_gym_envs.blackjack import {names}" if names else "import openenv_gym_envs.blackjack"
    code = f"{imported}; import sys; sys.exit('fastapi' in sys.modules or 'uvicorn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_every_name_loads() -> None:
    package = openenv_gym_envs.blackjack
    for name in package.__all__:
        assert getattr(package, name) is getattr(package, name)
        assert name in dir(package)
    assert set(package._HOMES) == set(package.__all__)


def test_the_application_is_made_by_the_package() -> None:
    assert openenv_gym_envs.blackjack.create_app().title


def test_the_package_has_nothing_else() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = openenv_gym_envs.blackjack.nothing
