"""Tests of ``openenv_gym.remote_tools``, on this project's servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from mcp import McpError

from openenv_gym.remote_tools import OVER, AskedTools, SteppedTools, open_remote_tools
from openenv_gym.tool_server import Tools
from openenv_gym.tool_wire import ERROR_TYPE
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym_server.app import HTTPEnvServer
from tests.interop.mcp_playground import Playground, playground
from tests.sockets import until

WAYS = pytest.mark.parametrize("production", [True, False], ids=["asked", "stepped"])


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, HTTPEnvServer]]:
    with playground("simulation", max_concurrent_envs=4) as served:
        yield served


def use(url: str, production: bool, play: Callable[[Tools], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with open_remote_tools(url, ConnectionSettings(), production=production) as tools:
            return await play(tools)

    return asyncio.run(main())


@WAYS
def test_tools_are_listed_and_called_in_one_session_that_ends(
    served: tuple[str, HTTPEnvServer], production: bool
) -> None:
    url, server = served

    async def play(tools: Tools) -> None:
        listed = {each.name: each for each in await tools.list_tools()}
        assert listed["add"].description == "Add two numbers."
        assert listed["add"].inputSchema["required"] == ["a"]
        assert ("reward" in json.dumps(listed["add"].outputSchema)) is not production
        given = await tools.call_tool("add", {"a": 1, "b": 2})
        assert [each.text for each in given.content] == ["3"]
        rewarded = {"result": 3, "reward": 0.5, "terminated": False, "truncated": False}
        assert given.structuredContent == ({"result": 3} if production else rewarded)
        assert [(await tools.call_tool("next_number", {})).content[0].text for _ in range(2)] == ["1", "2"]

    use(url, production, play)
    until(lambda: server.active_sessions == 0)


@WAYS
def test_concurrent_first_calls_begin_one_episode(served: tuple[str, HTTPEnvServer], production: bool) -> None:
    made = len(Playground.made)

    async def play(tools: Tools) -> list[str]:
        given = await asyncio.gather(*(tools.call_tool("next_number", {}) for _ in range(5)))
        return sorted(each.content[0].text for each in given)

    assert use(served[0], production, play) == ["1", "2", "3", "4", "5"]
    assert [each.resets for each in Playground.made[made:]] == [1]


@WAYS
@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [("add", {"a": "1"}, "invalid_args"), ("fail", {}, "execution_error"), ("dawdle", {}, "timeout")],
)
def test_failed_calls_are_results_of_their_kind(
    served: tuple[str, HTTPEnvServer], production: bool, name: str, arguments: dict[str, Any], kind: str
) -> None:
    given = use(served[0], production, lambda tools: tools.call_tool(name, arguments))
    assert given.isError is True
    assert given.meta == {ERROR_TYPE: kind}
    assert "(type:" not in given.content[0].text


@WAYS
def test_an_unknown_tool_is_an_error_of_the_protocol(served: tuple[str, HTTPEnvServer], production: bool) -> None:
    with pytest.raises(McpError) as caught:
        use(served[0], production, lambda tools: tools.call_tool("no_such_tool", {}))
    assert caught.value.error.code == -32602


def test_in_simulation_the_end_of_the_episode_is_told_and_kept(served: tuple[str, HTTPEnvServer]) -> None:
    async def play(tools: Tools) -> tuple[Any, Any]:
        return await tools.call_tool("finish", {}), await tools.call_tool("add", {"a": 1})

    last, after = use(served[0], False, play)
    assert last.structuredContent["terminated"] is True
    assert (after.isError, after.content[0].text) == (True, OVER)


@WAYS
def test_a_server_that_is_not_there_is_told_of(production: bool) -> None:
    async def play(tools: Tools) -> Any:
        with pytest.raises(McpError) as caught:
            await tools.list_tools()
        assert caught.value.error.code == -32603
        return await tools.call_tool("add", {"a": 1})

    given = use("http://127.0.0.1:9", production, play)
    assert (given.isError, given.meta) == (True, {ERROR_TYPE: "transport_error"})


@pytest.mark.parametrize(
    ("value", "text", "structured"),
    [("a door", "a door", None), ({"door": 1}, '{"door":1}', {"door": 1}), (5, "5", None)],
)
def test_a_value_in_no_usual_shape_is_content_all_the_same(
    value: Any, text: str, structured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = AskedTools("http://127.0.0.1:9", ConnectionSettings())

    async def call_tool(name: str, arguments: object) -> Any:
        return value

    monkeypatch.setattr(tools._calls, "call_tool", call_tool)
    given = asyncio.run(tools.call_tool("look", {}))
    assert (given.content[0].text, given.structuredContent) == (text, structured)


def test_an_observation_of_the_environments_own_kind_is_content(monkeypatch: pytest.MonkeyPatch) -> None:
    from openenv_gym.mcp_client import OpenObservation
    from openenv_gym.types import StepResult

    tools = SteppedTools("http://127.0.0.1:9", ConnectionSettings())

    async def reset() -> None:
        return None

    async def step(action: object) -> Any:
        return StepResult(
            OpenObservation.model_validate({"echo": "hello"}), 1.0, True, {"truncated": True, "terminated": False}
        )

    monkeypatch.setattr(tools._client, "reset", reset)
    monkeypatch.setattr(tools._client, "step", step)
    given = asyncio.run(tools.call_tool("look", {}))
    assert given.structuredContent == {
        "result": {"echo": "hello"},
        "reward": 1.0,
        "terminated": False,
        "truncated": True,
    }


@WAYS
def test_every_setting_of_the_connection_holds(served: tuple[str, HTTPEnvServer], production: bool) -> None:
    small = ConnectionSettings(max_message_size_mb=0.01)

    async def main() -> Any:
        async with open_remote_tools(served[0], small, production=production) as tools:
            return await tools.call_tool("add", {"a": 1, "b": "x" * 20_000})

    given = asyncio.run(main())
    assert given.meta == {ERROR_TYPE: "transport_error"}
    assert "max_message_size_mb" in given.content[0].text
