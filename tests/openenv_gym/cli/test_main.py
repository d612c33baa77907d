"""``python -m openenv_gym.cli``."""

import subprocess
import sys

import openenv_gym


def test_the_command_runs_as_a_module():
    command = [sys.executable, "-m", "openenv_gym.cli", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == openenv_gym.__version__
