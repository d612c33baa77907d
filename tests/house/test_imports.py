"""What an import brings along: little, and only in the allowed direction."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.repository import ROOT

LATE = ("fastapi", "httpx", "pydantic", "starlette", "typer", "uvicorn", "websockets")
"""Packages that cost more than gymnasium itself to import, or that only a server needs."""


def test_importing_the_client_loads_no_server_and_no_validation_library() -> None:
    loaded = modules_after("import openenv_gym")
    assert "gymnasium" in loaded
    assert sorted(loaded.intersection(LATE)) == []


def test_importing_the_client_loads_no_other_package_of_the_project() -> None:
    loaded = modules_after("import openenv_gym")
    assert sorted(loaded.intersection({"openenv_gym_server", "openenv_gym_envs", "openenv_gym_wrappers"})) == []


@pytest.mark.parametrize("module", ["openenv_gym.session", "openenv_gym.messages", "openenv_gym.spaces"])
def test_importing_the_core_loads_no_transport(module: str) -> None:
    loaded = modules_after(f"import {module}")
    assert module in loaded
    assert sorted(name for name in loaded if name.startswith("openenv_gym.transports")) == []


def test_every_contract_on_the_imports_is_kept() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert finished.returncode == 0, finished.stdout


def modules_after(statement: str) -> set[str]:
    """The names in ``sys.modules`` of a fresh interpreter once the statement has run."""
    script = f"{statement}\nimport sys\nprint(*sys.modules)"
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return set(finished.stdout.split())
