"""The official SDK's next generation as a client: version 2 falls back to the revision that this server speaks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from openenv_gym_envs.echo.app import create_app
from openenv_gym_server.settings import ServerSettings
from tests.interop.installed import run
from tests.interop.mcp_playground import MODES
from tests.serving import serve

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]

PROGRAM = """
import asyncio, importlib.metadata, json, sys
from mcp import Client

async def main():
    async with Client(sys.argv[1]) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        given = await client.call_tool("echo_message", {"message": "Hello"})
        failed = await client.call_tool("echo_message", {"message": 5})
        print(json.dumps([importlib.metadata.version("mcp"), names, given.structured_content, failed.is_error]))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment variables under which Python finds it, with what it needs."""
    folder = tmp_path_factory.mktemp("newer")
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PIP_CONSTRAINT"))
    }
    run(["-m", "pip", "install", "--quiet", "--target", str(folder), "mcp>=2,<3"], inherited)
    return {**inherited, "PYTHONPATH": str(folder)}


@pytest.mark.parametrize("mode", MODES)
def test_it_lists_and_calls(newer: dict[str, str], mode: str, tmp_path: Path) -> None:
    program = tmp_path / "client.py"
    program.write_text(PROGRAM, encoding="utf-8")
    with serve(create_app(ServerSettings(mode=mode))) as url:
        version, names, structured, failed = json.loads(run([str(program), f"{url}/mcp"], newer))
    assert version.startswith("2.")
    assert names == ["echo_message", "echo_with_length"]
    assert structured["result"] == "Hello"
    assert ("reward" in structured) is (mode == "simulation")
    assert failed is True
