"""Code written for OpenEnv runs here after its imports are changed: the Python blocks of OpenEnv's own READMEs.

The two documents beside this file hold them as they were published. Each block is run against a real server, with its
imports changed by ``IMPORTS`` and the addresses of its servers by the real ones, and must do what it says.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import openenv_gym
import openenv_gym.providers
from openenv_gym_envs.echo import create_app as create_echo_app
from openenv_gym_server import Environment, HTTPEnvServer
from tests.serving import serve

HERE = Path(__file__).parent

# In this order: the longer names first.
IMPORTS = {
    "openenv.core.containers.runtime": "openenv_gym.providers",
    "openenv.core.env_server": "openenv_gym_server",
    "openenv.core": "openenv_gym",
    "echo_env": "openenv_gym_envs.echo",
}

# The listing cuts the document off in the middle of its last statement.
CUT, COMPLETED = "    print(result.obse\n", "    print(result.observation.result)\n"

# Where a block begins a heading of its own, the heading names it; else its first line.
RUN = {
    "openenv.md: import asyncio",
    "openenv.md: from echo_env import CallToolAction, EchoEnv",
    "openenv_core.md: Creating an Environment Client",
    "openenv_core.md: Creating an Environment Server",
    "openenv_core.md: SyncEnvClient",
}

# Blocks that start containers, which this version does not do: it has no such providers, and says so when asked.
WITH_CONTAINERS = {
    "openenv_core.md: Local Docker Provider": "LocalDockerProvider",
    "openenv_core.md: Kubernetes Provider (Coming Soon)": "KubernetesProvider",
}


def published_blocks() -> dict[str, str]:
    """Every Python block of the documents, by the document's name and its own."""
    blocks: dict[str, str] = {}
    for document in sorted(HERE.glob("*.md")):
        text = document.read_text(encoding="utf-8")
        for match in re.finditer(r"```python\n(.*?)(?:```|\Z)", text, re.DOTALL):
            heading = re.search(r"^### ([^\n]+)\n(?:(?!^#).)*\Z", text[: match.start()], re.DOTALL | re.MULTILINE)
            name = heading[1] if heading else match[1].partition("\n")[0]
            blocks[f"{document.name}: {name}"] = match[1]
    return blocks


BLOCKS = published_blocks()


def test_every_block_is_run_or_waits_for_containers() -> None:
    assert set(BLOCKS) == RUN | set(WITH_CONTAINERS)
    assert [name for name, block in BLOCKS.items() if block.endswith(CUT)] == [
        "openenv.md: from echo_env import CallToolAction, EchoEnv"
    ]


@pytest.fixture
def echo() -> Iterator[str]:
    with serve(create_echo_app()) as url:
        yield url


@pytest.mark.parametrize(
    ("name", "promised"),
    [
        ("openenv.md: import asyncio", ["Echo environment ready!", "Hello, World!"]),
        ("openenv.md: from echo_env import CallToolAction, EchoEnv", ["Hello, World!"]),
    ],
)
def test_the_quick_start_prints_what_its_comments_say(
    name: str, promised: list[str], echo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(name, tmp_path, {"https://openenv-echo-env.hf.space": echo})
    printed = capsys.readouterr().out.splitlines()
    assert printed[: len(promised)] == promised
    assert [float(line) for line in printed[len(promised) :]] in ([], [pytest.approx(0.1 * len("Hello, World!"))])


def test_the_core_client_plays_the_core_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = run("openenv_core.md: Creating an Environment Server", tmp_path)
    with serve(server["app"]) as url:
        containers = Containers(url)
        monkeypatch.setattr(openenv_gym.providers, "default_container_provider", lambda: containers)
        client = run("openenv_core.md: Creating an Environment Client", tmp_path, {"http://localhost:8000": url})
        assert containers.calls == ["start my-env:latest", "wait", "stop"]
        assert client["result"].observation == client["MyObservation"](response="Ready")
        assert client["step_result"].observation == client["MyObservation"](response="Echo: hello")
        assert (client["step_result"].reward, client["step_result"].done) == (1.0, False)

        given = {"async_client": client["MyEnvClient"](base_url=url), "action": client["MyAction"](text="again")}
        synchronous = run("openenv_core.md: SyncEnvClient", tmp_path, given=given)
        assert isinstance(synchronous["sync_client"], openenv_gym.SyncEnvClient)
        assert synchronous["result"].observation == client["MyObservation"](response="Echo: again")


def test_every_name_of_the_api_reference_exists() -> None:
    text = (HERE / "openenv_core.md").read_text(encoding="utf-8")
    owners = {
        "EnvClient": openenv_gym.EnvClient,
        "HTTPEnvServer": HTTPEnvServer,
        "Environment Interface": Environment,
    }
    for heading, owner in owners.items():
        section = text.partition(f"### {heading}\n\n")[2].partition("\n#")[0]
        names = re.findall(r"^- `(?:async )?(\w+)", section, re.MULTILINE)
        assert names
        assert [name for name in names if not hasattr(owner, name)] == []


@pytest.mark.parametrize("name", WITH_CONTAINERS)
def test_blocks_that_start_containers_wait_for_their_provider(name: str) -> None:
    assert not hasattr(openenv_gym.providers, WITH_CONTAINERS[name]), "it is there now: run the block too"


class Containers:
    """A container provider, as one plugs it in: its container is a server that runs already."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.calls: list[str] = []

    def start_container(self, image: str, **keywords: Any) -> str:
        self.calls.append(f"start {image}")
        return self.url

    def wait_for_ready(self, base_url: str) -> None:
        assert base_url == self.url
        self.calls.append("wait")

    def stop_container(self) -> None:
        self.calls.append("stop")


def run(
    name: str, folder: Path, addresses: dict[str, str] | None = None, given: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Run a block as a program, and give its names."""
    block = BLOCKS[name]
    if block.endswith(CUT):
        block = block.removesuffix(CUT) + COMPLETED
    for theirs, ours in IMPORTS.items():
        block = re.sub(rf"^(from|import) {re.escape(theirs)}\b(?!\.)", rf"\1 {ours}", block, flags=re.MULTILINE)
    assert not re.search(r"^(?:from|import) (?:openenv|echo_env)\b", block, re.MULTILINE)
    for theirs, real in (addresses or {}).items():
        assert theirs in block
        block = block.replace(theirs, real)
    program = folder / "program.py"
    program.write_text(block, encoding="utf-8")
    return runpy.run_path(str(program), init_globals=given, run_name="program")
