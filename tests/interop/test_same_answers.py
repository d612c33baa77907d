"""The same frames to both packages' servers, with the same environment: the answers are the same.

Right frames and wrong ones, made at random. Where this project answers otherwise on purpose is listed, with the reason;
the MCP messages have tests of their own.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from tests.interop.flavours import CASES, Case, our_kit, stock_kit

BEGIN = {"type": "reset", "data": {"seed": 1, "episode_id": "begun"}}

# What ends a session there is refused here, and the session goes on: JSON that is no object, above all.
ON_PURPOSE = {"SESSION_ERROR": "VALIDATION_ERROR"}

names = st.sampled_from(["message", "direction", "speed", "item", "name", "size", "tags", "note", "x", "metadata"])
scalars = st.none() | st.booleans() | st.integers(-3, 5) | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=8,
)


def actions_like(case: Case) -> st.SearchStrategy[dict[str, Any]]:
    """Actions of an episode, some with a field too many, one too few, or one of another kind."""
    right = st.sampled_from([*case.actions, case.refused, case.failing])
    fields = st.sampled_from([*sorted({name for action in case.actions for name in action}), "metadata", "x"])
    other = st.builds(lambda action, name, value: {**action, name: value}, right, fields, values)
    short = st.builds(lambda action, name: {key: action[key] for key in action if key != name}, right, fields)
    # There a type that is no word is the environment's failure, for it is looked up before it is looked at.
    return (right | other | short).filter(lambda action: not isinstance(action.get("type"), list | dict))


def frames_like(case: Case) -> st.SearchStrategy[str]:
    # A seed of another kind is refused here before the environment sees it, as over HTTP; without one, chance decides.
    resets = st.fixed_dictionaries({"seed": st.integers(0, 9)}, optional={"episode_id": values, "x": values})
    kinds = st.sampled_from(["reset", "step", "state", "foo", "", None, 3]) | values.filter(lambda kind: kind != "mcp")
    wrong = st.fixed_dictionaries({"type": kinds, "data": st.just({"seed": 1}) | st.lists(values)})
    messages = (
        st.fixed_dictionaries({"type": st.just("step"), "data": actions_like(case)}, optional={"more": scalars})
        | st.fixed_dictionaries({"type": st.just("reset"), "data": resets}, optional={"more": scalars})
        | st.fixed_dictionaries({"type": st.just("state")}, optional={"data": values})
        | wrong
    )
    return messages.map(json.dumps) | messages.map(json.dumps) | values.map(json.dumps) | st.text(max_size=10)


class Server:
    """A served environment, and a socket to it that is opened anew where the server has closed it."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.socket: Any = None

    def ask(self, text: str) -> Any:
        """The answer to a frame that is the first after the beginning of an episode."""
        if self.socket is None:
            self.socket = self.client.websocket_connect("/ws").__enter__()
        self._exchange(json.dumps(BEGIN))
        return common_part(self._exchange(text))

    def _exchange(self, text: str) -> dict[str, Any]:
        self.socket.send_text(text)
        answer: dict[str, Any] = self.socket.receive_json()
        if answer["data"].get("code") == "SESSION_ERROR":
            with pytest.raises(WebSocketDisconnect):
                self.socket.receive_json()
            self.close()
        return answer

    def close(self) -> None:
        socket, self.socket = self.socket, None
        if socket is not None:
            with contextlib.suppress(WebSocketDisconnect):
                socket.__exit__(None, None, None)


def common_part(answer: dict[str, Any]) -> Any:
    """An answer without what differs between the packages by design: the words of errors, and the place of metadata."""
    data = answer["data"]
    if answer["type"] == "error":
        return ON_PURPOSE.get(data["code"], data["code"])
    if answer["type"] == "observation":
        fields = {name: data["observation"][name] for name in data["observation"] if name != "metadata"}
        return fields, data["reward"], data["done"]
    return data


@pytest.fixture(scope="module", params=CASES)
def servers(request: pytest.FixtureRequest) -> Iterator[tuple[Case, Server, Server]]:
    stock, ours = (CASES[request.param](kit) for kit in (stock_kit(), our_kit()))
    with TestClient(stock.app(4)) as stock_client, TestClient(ours.app(4)) as our_client:
        pair = Server(stock_client), Server(our_client)
        yield ours, *pair
        for server in pair:
            server.close()


def test_any_frame_is_answered_alike(servers: tuple[Case, Server, Server]) -> None:
    case, stock, ours = servers

    @settings(max_examples=100, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(text=frames_like(case))
    def compare(text: str) -> None:
        assert ours.ask(text) == stock.ask(text)

    compare()
