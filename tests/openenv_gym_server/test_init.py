"""Tests of the package's lazy names."""

from __future__ import annotations

import subprocess
import sys

import pytest

import openenv_gym_server


@pytest.mark.parametrize("name", sorted(openenv_gym_server.__all__))
def test_every_public_name_loads(name: str) -> None:
    assert getattr(openenv_gym_server, name) is getattr(openenv_gym_server, name)
    assert name in dir(openenv_gym_server)


def test_every_public_name_has_a_home() -> None:
    assert set(openenv_gym_server._HOMES) == set(openenv_gym_server.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        openenv_gym_server.Nothing  # noqa: B018


def test_importing_the_package_loads_no_framework() -> None:
    code = "import sys, openenv_gym_server; print(sorted({'fastapi', 'pydantic', 'uvicorn'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
