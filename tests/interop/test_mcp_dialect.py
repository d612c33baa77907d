"""OpenEnv's JSON-RPC dialect: one text of an environment on both servers, the same requests, and the stock client.

The clients' matrix is in ``test_mcp_clients.py``, the standard's MCP in ``test_standard_mcp.py``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from openenv.core.mcp_client import MCPToolClient as StockClient
from websockets.sync.client import connect

from openenv_gym_envs.echo.app import create_app as create_echo_app
from openenv_gym_server.settings import ServerSettings
from tests.interop.flavours import Kit, our_kit, stock_kit, toolbox
from tests.openenv_gym_server.climbing import TOP, app_of, calling, climber, rpc
from tests.serving import serve
from tests.sockets import until

WAIT_S = 10.0


@pytest.fixture(scope="module")
def ours() -> Iterator[str]:
    with serve(app(our_kit())) as url:
        yield url


@pytest.fixture(scope="module")
def stock() -> Iterator[str]:
    with serve(app(stock_kit())) as url:
        yield url


def app(kit: Kit) -> Any:
    return kit.create_app(
        toolbox(kit), kit.call_tool_action, kit.call_tool_observation, env_name="toolbox", max_concurrent_envs=8
    )


# ------------------------------------------------------------------------------------- the same requests to both


def asked(url: str, transport: str, content: str) -> dict[str, Any]:
    if transport == "post":
        answer = httpx.post(f"{url}/mcp", content=content)
        assert answer.status_code == 200
        return answer.json()
    path = "/mcp" if transport == "mcp" else "/ws"
    with connect(url.replace("http", "ws", 1) + path, proxy=None) as socket:
        socket.send(content if transport == "mcp" else json.dumps({"type": "mcp", "data": json.loads(content)}))
        answer = json.loads(socket.recv(timeout=WAIT_S))
        return answer if transport == "mcp" else answer["data"]


SAME = {
    "a list": rpc("tools/list", "x"),
    "a value": calling("roll", sides=6),
    "an object": calling("spell", word="abc"),
    "a tool that raises": calling("fail"),
    "no name": rpc("tools/call"),
    "an unknown session": calling("roll", "nobody", sides=6),
    "an unknown session, closed": rpc("openenv/session/close", session_id="nobody"),
    "no session to close": rpc("openenv/session/close"),
    "initialize": rpc("initialize"),
    "ping": rpc("ping"),
    "an older version": rpc("tools/list") | {"jsonrpc": "1.0"},
    "params that are null": rpc("tools/list") | {"params": None},
    "params that are a list": rpc("tools/list") | {"params": [1]},
    "no method": {"jsonrpc": "2.0", "id": 1},
    "one member too many": rpc("tools/list") | {"more": 1},
}

BROKEN = {"nothing": "", "half an object": "{", "a number": "5", "a text": '"x"', "null": "null"}


def shape(answer: dict[str, Any]) -> Any:
    """What must be the same of two answers: everything but the words of an error and what chance has rolled."""
    error = answer.get("error")
    if error is not None:
        assert set(error) == {"code", "message", "data"}
        return {"id": answer["id"], "code": error["code"]}
    result = answer["result"]
    if "tools" in result:
        by_name = {tool["name"]: (sorted(tool), tool["inputSchema"], tool["outputSchema"]) for tool in result["tools"]}
        return {"id": answer["id"], "tools": by_name}
    if isinstance(result.get("data"), int):
        assert result["content"][0].pop("text") == str(result["data"])
        assert result["structured_content"] == {"result": result["data"]}
        return {"id": answer["id"], "content": result["content"], "meta": result["meta"], "keys": sorted(result)}
    return answer


@pytest.mark.parametrize(("name", "transport"), [(name, each) for name in SAME for each in ("post", "mcp", "ws")])
def test_both_servers_answer_alike(ours: str, stock: str, name: str, transport: str) -> None:
    content = json.dumps(SAME[name])
    assert shape(asked(ours, transport, content)) == shape(asked(stock, transport, content))


@pytest.mark.parametrize("name", BROKEN)
def test_both_servers_answer_alike_to_what_is_no_object(ours: str, stock: str, name: str) -> None:
    assert shape(asked(ours, "post", BROKEN[name])) == shape(asked(stock, "post", BROKEN[name]))


@pytest.mark.parametrize(
    ("request_", "ours_code", "stock_code"),
    [(calling("nope"), -32602, -32603), (calling("roll", sides="six"), -32602, -32603)],
    ids=["an unknown tool", "bad arguments"],
)
def test_only_here_is_a_failure_of_the_callers_told_from_the_tools(
    ours: str, stock: str, request_: dict[str, Any], ours_code: int, stock_code: int
) -> None:
    content = json.dumps(request_)
    assert asked(ours, "post", content)["error"]["code"] == ours_code
    assert asked(stock, "post", content)["error"]["code"] == stock_code


def test_both_servers_keep_a_session_and_close_it_alike(ours: str, stock: str) -> None:
    told = []
    for url in (ours, stock):
        session_id = asked(url, "post", json.dumps(rpc("openenv/session/create")))["result"]["session_id"]
        called = asked(url, "post", json.dumps(calling("roll", session_id, sides=1)))["result"]["data"]
        closing = json.dumps(rpc("openenv/session/close", session_id=session_id))
        first, second = asked(url, "post", closing), asked(url, "post", closing)
        assert first["result"].pop("session_id") == session_id
        told.append((called, first, shape(second)))
    assert told[0] == told[1]


# ------------------------------------------------------------------------------------------------ the stock client


@pytest.mark.parametrize("mode", ["simulation", "production"])
def test_the_stock_client_lists_and_calls_tools_in_a_session_of_its_own(mode: str) -> None:
    env = climber()

    async def play(url: str) -> None:
        async with StockClient(base_url=url) as client:
            assert "climb" in {tool.name for tool in await client.list_tools()}
            assert [await client.call_tool("climb") for _ in range(2)] == [1, 2]
            with pytest.raises(RuntimeError, match="Error calling tool 'slip'"):
                await client.call_tool("slip")
            with pytest.raises(RuntimeError, match="Unknown tool"):
                await client.call_tool("nope")
            assert await client.call_tool("climb") == TOP
            if mode == "production":
                with pytest.raises(RuntimeError, match="the episode is over"):
                    await client.call_tool("climb")

    with serve(app_of(env, mode)) as url:
        asyncio.run(play(url))
        until(lambda: env.made[0].closed)
    assert [each.seeds for each in env.made] == [[None]]


def test_the_stock_client_resets_the_session_whose_tools_it_calls_in_simulation_and_not_in_production() -> None:
    async def play(url: str, *, production: bool) -> None:
        async with StockClient(base_url=url) as client:
            await client.call_tool("climb")
            if production:
                with pytest.raises(RuntimeError, match="production mode"):
                    await client.reset(seed=3)
                with pytest.raises(RuntimeError, match="production mode"):
                    await client.state()
            else:
                await client.reset(seed=3)
            assert await client.call_tool("climb") == (2 if production else 1)

    for mode in ("simulation", "production"):
        env = climber()
        with serve(app_of(env, mode)) as url:
            asyncio.run(play(url, production=mode == "production"))
        assert env.made[0].seeds == ([None] if mode == "production" else [None, 3])


def test_concurrent_first_calls_of_the_stock_client_share_one_session() -> None:
    env = climber()

    async def play(url: str) -> list[Any]:
        client = StockClient(base_url=url)
        try:
            return await asyncio.gather(*(client.call_tool("climb") for _ in range(TOP)))
        finally:
            await client.close()

    with serve(app_of(env)) as url:
        assert sorted(asyncio.run(play(url))) == [1, 2, 3]
    assert len(env.made) == 1


@pytest.mark.parametrize("mode", ["simulation", "production"])
def test_the_stock_client_echoes_without_being_awaited(mode: str) -> None:
    with serve(create_echo_app(ServerSettings(mode=mode))) as url, StockClient(base_url=url).sync() as client:
        assert client.call_tool("echo_message", message="Hello, World!") == "Hello, World!"
