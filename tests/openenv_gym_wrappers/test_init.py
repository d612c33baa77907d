"""The package passes its names on, and loads what is behind them when it is first used."""

import subprocess
import sys

import openenv_gym_wrappers
from openenv_gym_wrappers.tools import MCPTools


def test_its_names_are_those_of_its_modules():
    assert openenv_gym_wrappers.MCPTools is MCPTools
    assert openenv_gym_wrappers.__all__ == ["MCPTools"]


def test_importing_it_loads_neither_http_nor_pydantic():
    script = "import sys, openenv_gym_wrappers; print(*({'httpx', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "")
