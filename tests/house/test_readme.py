"""Every snippet of the README does what it shows."""

from __future__ import annotations

import ast
import re
import shlex
import signal
import subprocess
import sys
import tomllib

import gymnasium
import pytest
from fastapi import FastAPI

from openenv_gym_server import create_gym_app
from tests.house.repository import ROOT
from tests.serving import serve
from tests.trainers import TRAINERS

README = (ROOT / "README.md").read_text(encoding="utf-8")
HOST = "http://host:8000"
PYTHON = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
COMMANDS = [
    line.partition("#")[0].strip()
    for block in re.findall(r"^```bash\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if line.strip()
]


@pytest.fixture(scope="module")
def url():
    with serve(create_gym_app("CartPole-v1")) as url:
        yield url


def test_the_python_snippets_run_one_after_the_other(url):
    namespace: dict[str, object] = {"gym": gymnasium}
    for snippet in PYTHON:
        if "openenv_gym.sb3" in snippet and not TRAINERS:
            continue
        exec(compile(snippet.replace(HOST, url), "README.md", "exec"), namespace)
    assert isinstance(namespace["app"], FastAPI)
    assert len(PYTHON) >= 6


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_does_what_it_is_shown_for(command, url):
    program, *arguments = shlex.split(command)
    if program == "make":
        assert subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True).returncode == 0
    elif program == "pip":
        check_extras(arguments[-1])
    elif arguments[0] == "serve":
        check_serving(arguments)
    else:
        done = openenv_gym(*(url if argument == HOST else argument for argument in arguments))
        assert done.returncode == 0, done.stderr
        assert "CartPole-v1" in done.stdout


def check_extras(requirement):
    """The installation itself is the packaging tests' matter; here: the extra exists."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = re.fullmatch(r"\.(?:\[([\w,-]+)\])?", requirement)
    assert named, requirement
    assert set((named[1] or "").split(",")) - {""} <= extras.keys()


def check_serving(arguments):
    place = arguments.index("--port") + 1
    command = [sys.executable, "-m", "openenv_gym.cli", *arguments[:place], "0", *arguments[place + 1 :]]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        said = re.search(r"gymnasium\.(\w+)\((.+)\)$", process.stdout.readline().rstrip())
        assert said
        positional, *keywords = said[2].split(", ")
        given = {name: ast.literal_eval(value) for name, value in (each.split("=") for each in keywords)}
        env = getattr(gymnasium, said[1])(ast.literal_eval(positional), **given)
        try:
            env.reset(seed=0)
        finally:
            env.close()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        process.stdout.close()


def openenv_gym(*arguments):
    command = [sys.executable, "-m", "openenv_gym.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)
