"""Tools and sessions of standard MCP as ``mcp_requirements.py`` lists them, in both modes."""

from __future__ import annotations

import base64
import json
import threading
from typing import Any

import httpx
import jsonschema
import pytest
from fastapi import FastAPI

from openenv_gym.tools import CallToolAction, CallToolObservation
from openenv_gym_server.app import HTTPEnvServer
from openenv_gym_server.gym_app import create_gym_app
from openenv_gym_server.settings import ServerSettings
from tests.interop.mcp_playground import MODES, Playground, playground
from tests.interop.mcp_requirements import covers
from tests.interop.mcp_wire import Wire
from tests.serving import serve
from tests.sockets import until


@covers("tools.list")
def test_each_tool_has_a_name_a_description_and_a_schema(wire: Wire) -> None:
    tools = wire.result("tools/list")["tools"]
    names = [each["name"] for each in tools]
    assert sorted(names) == ["add", "dawdle", "describe", "fail", "finish", "hold", "next_number", "nothing"]
    for each in tools:
        assert each["description"]
        assert each["inputSchema"]["type"] == "object"
        jsonschema.Draft202012Validator.check_schema(each["inputSchema"])
        jsonschema.Draft202012Validator.check_schema(each.get("outputSchema", {}))


@covers("tools.cursor")
def test_an_unknown_cursor_is_an_invalid_parameter(wire: Wire) -> None:
    assert wire.error("tools/list", {"cursor": "page-2"})["code"] == -32602


@covers("tools.call", "tools.text", "tools.output-schema")
@pytest.mark.parametrize(("name", "arguments", "value"), [("add", {"a": 1, "b": 2}, 3), ("nothing", {}, None)])
def test_a_call_is_answered_by_content_and_by_what_its_schema_says(
    wire: Wire, mcp_mode: str, name: str, arguments: dict[str, Any], value: object
) -> None:
    given = wire.call(name, **arguments)
    schemas = {each["name"]: each.get("outputSchema", {}) for each in wire.result("tools/list")["tools"]}
    assert given["isError"] is False
    if value is not None:
        assert [(each["type"], each["text"]) for each in given["content"]] == [("text", json.dumps(value))]
    if mcp_mode == "simulation":
        rewarded = {"result": value, "reward": 0.5, "terminated": False, "truncated": False}
        assert given["structuredContent"] == rewarded
        jsonschema.validate(given["structuredContent"], schemas[name])
    else:
        assert given.get("structuredContent") == (None if value is None else {"result": value})
        assert "reward" not in json.dumps(given)


def test_a_reward_among_a_tools_own_fields_is_the_tools_own(wire: Wire, mcp_mode: str) -> None:
    own = {"colour": "blue", "reward": "none of yours"}
    given = wire.call("describe")["structuredContent"]
    assert (given["result"] if mcp_mode == "simulation" else given) == own


@covers("tools.image", "tools.annotations")
@pytest.mark.parametrize("mode", MODES)
def test_a_rendered_frame_is_an_image_and_hints_are_told(mode: str) -> None:
    app = create_gym_app("CartPole-v1", settings=ServerSettings(mode=mode), env_kwargs={"render_mode": "rgb_array"})
    with serve(app) as url, Wire(url) as wire:
        wire.begin()
        tools = {each["name"]: each for each in wire.result("tools/list")["tools"]}
        images = [each for each in wire.call("render")["content"] if each["type"] == "image"]
        acted = wire.call("act", action=1)
    assert tools["render"]["annotations"]["readOnlyHint"] is True
    assert tools["act"]["annotations"].get("readOnlyHint") is not True
    assert images[0]["mimeType"] == "image/png"
    assert base64.b64decode(images[0]["data"], validate=True).startswith(b"\x89PNG")
    assert acted["isError"] is False
    jsonschema.validate(acted["structuredContent"], tools["act"]["outputSchema"])
    assert ("reward" in acted["structuredContent"]) is (mode == "simulation")


@covers("tools.unknown", "tools.malformed")
def test_an_unknown_tool_and_a_call_without_a_name_are_errors_of_the_protocol(wire: Wire) -> None:
    unknown = wire.error("tools/call", {"name": "no_such_tool", "arguments": {}})
    assert unknown["code"] == -32602
    assert "no_such_tool" in unknown["message"]
    assert wire.error("tools/call", {"arguments": {}})["code"] == -32602


@covers("tools.invalid")
@pytest.mark.parametrize("arguments", [{"a": "1"}, {}, {"a": 1, "c": 2}])
def test_arguments_against_the_schema_are_a_failed_call(wire: Wire, arguments: dict[str, Any]) -> None:
    given = wire.call("add", **arguments)
    assert given["isError"] is True
    assert given["_meta"]["openenv-gym/error_type"] == "invalid_args"
    assert given["content"][0]["text"]


@covers("tools.failed")
def test_a_tool_that_raises_is_a_failed_call_without_a_traceback(wire: Wire, mcp_mode: str) -> None:
    given = wire.call("fail")
    assert given["isError"] is True
    reason = "the door is stuck" if mcp_mode == "simulation" else "it raised ValueError"
    assert reason in given["content"][0]["text"]
    assert "Traceback" not in json.dumps(given)
    assert __file__ not in json.dumps(given)


@covers("tools.timeout")
def test_a_tool_that_takes_too_long_is_a_failed_call(wire: Wire) -> None:
    given = wire.call("dawdle")
    assert (given["isError"], given["_meta"]["openenv-gym/error_type"]) == (True, "timeout")
    assert wire.call("add", a=1)["isError"] is False


@covers("tools.access")
def test_without_the_token_nothing_is_served() -> None:
    with playground("production", token="secret") as (url, _), Wire(url) as wire:
        assert wire.initialize().status_code == 401
        wire.headers["authorization"] = "Bearer secret"
        assert wire.begin().call("add", a=1)["isError"] is False


@covers("tools.rate")
@pytest.mark.parametrize("mode", MODES)
def test_a_full_server_says_so_and_serves_those_it_has(mode: str) -> None:
    with playground(mode, max_concurrent_envs=1) as (url, _), Wire(url) as one, Wire(url) as other:
        assert one.begin().call("next_number")["isError"] is False
        refused = other.begin().error("tools/call", {"name": "add", "arguments": {"a": 1}})
        assert refused["code"] == -32000
        assert refused["data"] == {"active_sessions": 1, "max_sessions": 1}
        assert one.call("next_number")["content"][0]["text"] == "2"
        one.http.delete("/mcp", headers=one.headers)
        assert other.call("add", a=1)["isError"] is False


# ----------------------------------------------------------------------------------------------- sessions, episodes


@pytest.mark.parametrize("mode", MODES)
def test_a_client_that_only_looks_around_takes_no_place(mode: str) -> None:
    with playground(mode) as (url, server), Wire(url) as wire:
        wire.begin()
        assert wire.result("ping") == {}
        assert wire.result("tools/list")["tools"]
        assert server.active_sessions == 0


def test_concurrent_first_calls_make_one_environment_and_one_episode(wire: Wire) -> None:
    made = len(Playground.made)
    texts: list[str] = []
    callers = [
        threading.Thread(target=lambda: texts.append(wire.call("next_number")["content"][0]["text"])) for _ in range(8)
    ]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    assert sorted(texts) == [str(number) for number in range(1, 9)]
    assert [each.resets for each in Playground.made[made:]] == [1]


def test_the_end_of_an_episode_is_told_where_there_are_rewards_and_keeps_in_production(
    wire: Wire, mcp_mode: str
) -> None:
    last = wire.call("finish")
    after = wire.call("next_number")
    if mcp_mode == "simulation":
        assert last["structuredContent"]["terminated"] is True
    else:
        assert last["structuredContent"] == {"result": "the end"}
        assert after["isError"] is True
        assert "the episode is over" in after["content"][0]["text"]
        assert after["_meta"] == {"openenv-gym/error_type": "execution_error", "openenv-gym/episode_over": True}


def test_an_idle_sessions_environment_is_freed_and_the_agent_is_told() -> None:
    with playground("production", session_timeout_s=0.5) as (url, server), Wire(url) as wire:
        # An open stream is no use of the environment, but keeps the MCP session.
        wire.begin()
        with httpx.Client(trust_env=False) as http, http.stream("GET", f"{url}/mcp", headers=wire.headers):
            assert wire.call("add", a=1)["isError"] is False
            until(lambda: server.active_sessions == 0)
            given = wire.call("add", a=1)
    assert given["isError"] is True
    assert "open a new MCP session" in given["content"][0]["text"]


@pytest.mark.parametrize("mode", MODES)
def test_one_server_in_two_applications_of_two_modes_serves_each_in_its_own(mode: str) -> None:
    server = HTTPEnvServer(Playground, CallToolAction, CallToolObservation)
    app, outer, other = FastAPI(), FastAPI(), FastAPI()
    server.register_routes(other, "production" if mode == "simulation" else "simulation")
    server.register_routes(app, mode)
    outer.mount("/below", app)  # whose lifespan never runs
    with serve(outer) as url, Wire(f"{url}/below") as wire:
        given = wire.begin().call("add", a=1)
        wire.http.delete("/mcp", headers=wire.headers)
    assert ("reward" in given["structuredContent"]) is (mode == "simulation")
