"""Another release of a package in a folder of its own, ahead of the one that the other tests meet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.house.repository import ROOT

__all__ = ["install", "run"]


def install(requirement: str, folder: Path) -> dict[str, str]:
    """Install it; gives the environment variables under which Python finds it."""
    command = ["-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), requirement]
    # The pinned release may be another.
    run(command, {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"})
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return {**inherited, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}


def run(arguments: list[str], environment: dict[str, str]) -> str:
    """What a Python program prints."""
    result = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=550
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
