"""Production over every route, method and frame: nothing resets, steps or reads the state of a session there is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from openenv_gym.json_text import encode_json
from openenv_gym.messages import REQUEST_TYPES, SUBPROTOCOL
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.tool_functions import tool
from tests.openenv_gym_server.climbing import SECRET, Climb, app_of, calling, climber, rpc

LEAKS = ("reward", '"done"', "terminated", "truncated", "step_count", "Traceback", SECRET, ".py")
HIDDEN = ("Traceback", 'File "', "/srv/", "climbing", SECRET)
CLOSED = {*REQUEST_TYPES} - {"mcp", "close"}

TOOLS = st.sampled_from(["climb", "slip", "crash", "ask", "look", "listen", "nope", "execute_code"])

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
data = st.dictionaries(
    st.sampled_from(["type", "tool_name", "seed", "name", "args", "kwargs", "values", "actions", "num_envs"]),
    json_values | st.sampled_from(["call_tool", "climb", "reset", "step", "state", "height"]),
    max_size=4,
)
frames = st.fixed_dictionaries(
    {"type": st.sampled_from(sorted(CLOSED)) | st.text(max_size=8)}, optional={"data": data, "id": st.integers(0, 9)}
)
methods = st.sampled_from(["reset", "step", "state", "openenv/reset", "tools/step", "tools/list", "x-open"])
routes = st.sampled_from(["reset", "step", "state", "session/{}", "ws", "web", "metadata", "schema", "ready", "health"])
verbs = st.sampled_from(["GET", "POST", "PUT", "PATCH"])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(frames, max_size=8), st.booleans(), st.lists(st.binary(max_size=40), max_size=3))
def test_no_frame_of_a_socket_controls_its_episode(
    messages: list[dict[str, Any]], extended: bool, binary: list[bytes]
) -> None:
    env = climber()
    app = app_of(env, "production", ServerSettings(remote_names="all", share_tracebacks=True))
    offered = [SUBPROTOCOL] if extended else None
    with TestClient(app) as client, client.websocket_connect("/ws", subprotocols=offered) as socket:
        socket.send_json({"type": "mcp", "data": calling("climb")})
        socket.receive_json()
        for message in messages:
            socket.send_bytes(encode_json(message))
            socket.receive_json()
            socket.send_text(encode_json(message).decode())
            answer = socket.receive_text()
            assert json.loads(answer)["type"] == "error"
            if message["type"] in CLOSED and set(message) <= {"type", "data"}:
                assert json.loads(answer)["data"]["code"] == "VALIDATION_ERROR"
        for content in binary:
            socket.send_bytes(content)
            assert socket.receive_json()["data"]["code"] == "VALIDATION_ERROR"
        assert [(each.seeds, each.height) for each in env.made] == [([None], 1)]


def leaking() -> type[Climb]:
    """A climber whose FastMCP server's tools leak too, and one of whose own gives an object that does."""
    mcp = FastMCP("leaking")

    @mcp.tool
    def look(how: str) -> str:
        raise ToolError("no such door") if how == "told" else FileNotFoundError(SECRET)

    class Unreadable(list[int]):
        def __iter__(self) -> Iterator[int]:
            raise FileNotFoundError(SECRET)

    class Leaking(Climb):
        made = []

        def __init__(self) -> None:
            super().__init__()
            self.tool_caller.add_server(mcp)
            self.mcp_server = mcp

        @tool
        def listen(self) -> Any:
            return Unreadable([1])

    return Leaking


@contextmanager
def agent_of(client: TestClient, how: str) -> Iterator[Callable[[str, dict[str, Any]], str]]:
    """What calls a tool, and gives the text of the answer."""
    if how in {"post", "kept"}:
        kept = client.post("/mcp", json=rpc("openenv/session/create")).json()["result"]["session_id"]
        session_id = kept if how == "kept" else None
        yield lambda name, arguments: client.post("/mcp", json=calling(name, session_id, **arguments)).text
        return
    with client.websocket_connect("/mcp" if how == "mcp" else "/ws") as socket:

        def ask(name: str, arguments: dict[str, Any]) -> str:
            request = calling(name, **arguments)
            socket.send_json(request if how == "mcp" else {"type": "mcp", "data": request})
            return socket.receive_text()

        yield ask


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(TOOLS, st.dictionaries(st.sampled_from(["steps", "code", "how"]), json_values)), max_size=6),
    st.booleans(),
    st.sampled_from(["post", "kept", "ws", "mcp"]),
)
def test_no_failure_of_a_tool_tells_how_the_environment_is_made(
    calls: list[tuple[str, dict[str, Any]]], code: bool, how: str
) -> None:
    app = app_of(leaking(), "production", ServerSettings(allow_code=code))
    # Two that leak wherever anything does, so that no run goes without.
    asked = [("slip", {}), ("look", {"how": "raise"}), *calls]
    with TestClient(app) as client, agent_of(client, how) as ask:
        for name, arguments in asked:
            answer = ask(name, arguments)
            assert not any(leak in answer for leak in HIDDEN), (name, arguments, answer)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(verbs, routes, data), max_size=8), st.lists(st.tuples(methods, data), max_size=5))
def test_no_request_controls_the_episode_of_a_kept_session(
    requests: list[tuple[str, str, Any]], calls: list[tuple[str, dict[str, Any]]]
) -> None:
    env = climber()
    with TestClient(app_of(env, "production", ServerSettings(remote_names="all"))) as client:
        session_id = client.post("/mcp", json=rpc("openenv/session/create")).json()["result"]["session_id"]
        climbed = client.post("/mcp", json=calling("climb", session_id)).text
        answers = [climbed]
        for verb, route, content in requests:
            path = "/" + route.format(session_id)
            answer = client.request(verb, path, json=content, headers={"X-OpenEnv-Session": session_id})
            if route in {"reset", "step", "state"}:
                assert answer.status_code == 404
            if route not in {"metadata", "schema"}:  # which describe the class and no session
                answers.append(answer.text)
        for method, params in calls:
            answers.append(client.post("/mcp", json=rpc(method, **{**params, "session_id": session_id})).text)
        for answer in answers:
            assert not any(leak in answer for leak in LEAKS), answer
        mine = env.made[[each.height for each in env.made].index(1)]
        assert (mine.seeds, mine.height, mine.closed) == ([None], 1, False)
