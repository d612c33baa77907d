"""Tools with arguments and results of every kind, and code that calls them, over the wire in both modes."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Annotated, Any, Literal, Self
from uuid import UUID

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image
from pydantic import BaseModel, Field

from openenv_gym.errors import SettingsError
from openenv_gym.tools import CallToolAction, CallToolObservation, ListToolsAction
from openenv_gym.types import Observation
from openenv_gym_server.app import create_app
from openenv_gym_server.code_act import CodeLimits
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.tool_functions import tool

FRAME = np.arange(20 * 30 * 3, dtype=np.uint8).reshape(20, 30, 3)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    x: int
    y: int = 0


@dataclass
class Route:
    stops: list[Place]
    colour: Colour = Colour.RED


class Deep(MCPEnvironment):
    """Each tool says what it was given, or gives a value of its kind."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    MAX_RESULT_MB = 0.5
    CODE_LIMITS = CodeLimits(time_s=20.0)

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Observation:
        return Observation(reward=0.0)

    def after_tool(self, action: CallToolAction, observation: CallToolObservation) -> CallToolObservation:
        observation.reward = 0.0 if observation.error else 1.0
        return observation

    @tool
    def plan(self, route: Route, via: dict[str, list[Place]] | None = None) -> str:
        assert isinstance(route, Route)
        return repr((route.stops, route.colour, via))

    @tool
    def paint(
        self, colour: Colour = Colour.BLUE, kind: Literal["flat", 2] = "flat", coats: int | str | None = 1
    ) -> str:
        return repr((colour.name, kind, coats))

    @tool
    async def size(self, many: Annotated[int, Field(ge=1, le=9)], pair: tuple[int, str] = (0, "a")) -> str:
        await asyncio.sleep(0)
        return repr((many, pair))

    @tool
    def keep(self, data: bytes, who: UUID, wait: timedelta, tags: set[str] = frozenset()) -> str:  # type: ignore[assignment]
        return repr((data, who.int, wait.total_seconds(), sorted(tags)))

    @tool
    def give(self, kind: str) -> Any:
        values: dict[str, Any] = {
            "array": np.array([[1.5, np.nan]]),
            "scalar": np.float32(0.5),
            "bytes": b"\x00\xff",
            "frame": FRAME,
            "pillow": Image.fromarray(FRAME),
            "dataclass": Route([Place(x=1)]),
            "model": Place(x=1),
            "nothing": None,
            "mixed": ["here", Image.fromarray(FRAME)],
            "object": object(),
        }
        return values[kind]

    @tool
    def fill(self, size: int) -> str:
        return "a" * size

    @tool
    async def draw(self, size: int) -> Any:
        return Image.frombytes("RGB", (size, size), np.random.default_rng(1).bytes(size * size * 3))

    @tool(timeout_s=0.1)
    async def sleep(self) -> None:
        await asyncio.Event().wait()

    @tool
    async def sleep_on(self) -> None:
        await asyncio.Event().wait()


def client_of(**settings: Any) -> TestClient:
    app = create_app(Deep, CallToolAction, CallToolObservation, settings=ServerSettings(**settings))
    return TestClient(app, base_url="http://127.0.0.1:8000")


class OverStep:
    """Calls as steps of a socket, in simulation."""

    def __init__(self, **settings: Any) -> None:
        self._client = client_of(**settings)

    def __enter__(self) -> Self:
        self._client.__enter__()
        self._socket = self._client.websocket_connect("/ws").__enter__()
        self.ask(type="reset", data={})
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.__exit__(None, None, None)
        self._client.__exit__(None, None, None)

    def ask(self, **message: Any) -> Any:
        self._socket.send_json(message)
        return self._socket.receive_json()["data"]

    def call(self, name: str, **arguments: Any) -> Any:
        """The result, or the error's type and message."""
        observation = self.ask(type="step", data=CallToolAction(tool_name=name, arguments=arguments).model_dump())
        error = observation["observation"]["error"]
        return (error["error_type"], error["message"]) if error else observation["observation"]["result"]

    def names(self) -> set[str]:
        observation = self.ask(type="step", data=ListToolsAction().model_dump())["observation"]
        return {each["name"] for each in observation["tools"]}


class OverMcp:
    """Calls over POST /mcp, in production."""

    def __init__(self, **settings: Any) -> None:
        self._client = client_of(mode="production", **settings)

    def __enter__(self) -> Self:
        self._client.__enter__()
        self._session = self.ask("openenv/session/create")["result"]["session_id"]
        return self

    def __exit__(self, *error: object) -> None:
        self._client.__exit__(None, None, None)

    def ask(self, method: str, **params: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self._client.post("/mcp", json=message).json()

    def call(self, name: str, **arguments: Any) -> Any:
        reply = self.ask("tools/call", name=name, arguments=arguments, session_id=self._session)
        error = reply.get("error")
        return (error["data"]["error_type"], error["message"]) if error else reply["result"]

    def names(self) -> set[str]:
        return {each["name"] for each in self.ask("tools/list", session_id=self._session)["result"]["tools"]}


WAYS = {"step": OverStep, "mcp": OverMcp}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Iterator[Any]:
    with WAYS[request.param]() as made:
        yield made


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("plan", {"route": {"stops": [{"x": 1}]}}, "([Place(x=1, y=0)], <Colour.RED: 'red'>, None)"),
        (
            "plan",
            {"route": {"stops": [], "colour": "blue"}, "via": {"a": [{"x": 1, "y": 2}]}},
            "([], <Colour.BLUE: 'blue'>, {'a': [Place(x=1, y=2)]})",
        ),
        ("paint", {}, "('BLUE', 'flat', 1)"),
        ("paint", {"colour": "red", "kind": 2, "coats": "two"}, "('RED', 2, 'two')"),
        ("paint", {"coats": None}, "('BLUE', 'flat', None)"),
        ("size", {"many": 9, "pair": [1, "b"]}, "(9, (1, 'b'))"),
        (
            "keep",
            {"data": "/w==", "who": str(UUID(int=7)), "wait": "PT1M", "tags": ["b", "a"]},
            "(b'\\xff', 7, 60.0, ['a', 'b'])",
        ),
    ],
)
def test_arguments_of_every_kind_arrive(way: Any, name: str, arguments: dict[str, Any], said: str) -> None:
    assert way.call(name, **arguments)["data"] == said


@pytest.mark.parametrize(
    ("name", "arguments", "where"),
    [
        ("plan", {}, "route: Missing required"),
        ("plan", {"route": {"stops": [{"x": "one"}]}}, "route.stops.0.x: Input should be a valid integer"),
        ("plan", {"route": {"stops": []}, "more": 1}, "more: Unexpected"),
        ("paint", {"colour": "green"}, "colour: Input should be 'red' or 'blue'"),
        ("paint", {"kind": 3}, "kind: Input should be 'flat' or 2"),
        ("paint", {"coats": 1.5}, "coats.int: Input should be a valid integer"),
        ("size", {"many": 10}, "many: Input should be less than or equal to 9"),
        ("size", {"many": True}, "many: Input should be a valid integer"),
        ("keep", {"data": "é", "who": str(UUID(int=7)), "wait": "PT1M"}, "data: Data should be valid base64"),
    ],
)
def test_an_argument_of_another_kind_is_told_by_its_place(way: Any, name: str, arguments: Any, where: str) -> None:
    kind, message = way.call(name, **arguments)
    assert kind == "invalid_args"
    assert where in message


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("array", [[1.5, "NaN"]]),
        ("scalar", 0.5),
        ("bytes", "AP8="),
        ("frame", FRAME.tolist()),
        ("dataclass", {"stops": [{"x": 1, "y": 0}], "colour": "red"}),
        ("model", {"x": 1, "y": 0}),
        ("nothing", None),
    ],
)
def test_results_of_every_kind_arrive(way: Any, kind: str, data: Any) -> None:
    result = way.call("give", kind=kind)
    assert (result["data"], result["is_error"]) == (data, False)


@pytest.mark.parametrize("kind", ["pillow", "mixed"])
def test_pictures_arrive_as_images_without_loss(way: Any, kind: str) -> None:
    block = way.call("give", kind=kind)["content"][-1]
    assert (block["type"], block["mimeType"]) == ("image", "image/png")
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(base64.b64decode(block["data"])))), FRAME)


def test_a_result_that_cannot_be_sent_is_an_error_and_the_session_lives(way: Any) -> None:
    kind, message = way.call("give", kind="object")
    assert kind == "execution_error"
    assert "is lost" in message
    assert way.call("paint")["is_error"] is False


@pytest.mark.parametrize(("name", "small", "large"), [("fill", 500_000, 600_000), ("draw", 100, 600)])
def test_a_result_above_the_limit_is_an_error_and_the_session_lives(
    way: Any, name: str, small: int, large: int
) -> None:
    assert way.call(name, size=small)["is_error"] is False
    kind, message = way.call(name, size=large)
    assert kind == "execution_error"
    assert "is above the limit of 0.5 MiB" in message
    assert way.call(name, size=small)["is_error"] is False


def test_a_tools_own_limit_holds(way: Any) -> None:
    kind, message = way.call("sleep")
    assert kind == "timeout"
    assert "after 0.1 seconds" in message
    assert way.call("paint")["is_error"] is False


def test_a_calls_own_limit_holds() -> None:
    with OverMcp() as way:
        params = {"name": "sleep_on", "session_id": way._session, "timeout_s": 0.1}
        error = way.ask("tools/call", **params)["error"]
        assert (error["data"]["error_type"], "after 0.1 seconds" in error["message"]) == ("timeout", True)


# ------------------------------------------------------------------------------------------------------------- code


def test_nobody_gives_code_unless_the_operator_allows_it(way: Any) -> None:
    assert "execute_code" not in way.names()
    assert way.call("execute_code", code="result = 1")[0] == "tool_not_found"


@pytest.mark.parametrize("kind", WAYS)
def test_code_calls_the_tools_where_the_operator_allows_it(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENENV_TOKEN", "hush")
    with WAYS[kind](allow_code=True) as way:
        assert "execute_code" in way.names()
        code = (
            "import os\nprint(len(os.environ) < 9)\nresult = [fill(3), paint(colour='red'), os.getenv('OPENENV_TOKEN')]"
        )
        data = way.call("execute_code", code=code)["data"]
        assert data == {"result": ["aaa", "('RED', 'flat', 1)", None], "output": "True\n"}
        assert way.call("execute_code", code="paint(colour=3)")[0] == "execution_error"
        assert way.call("execute_code", code="fill(600_000)")[0] == "execution_error"
        assert way.call("execute_code", code="result = 'a' * 600_000")[0] == "execution_error"
        assert way.call("execute_code", code="while True: pass", more=1)[0] == "invalid_args"
        assert way.call("paint")["is_error"] is False


def test_the_rewards_of_codes_steps_are_the_calls_reward_in_simulation_and_nobodys_in_production() -> None:
    with OverStep(allow_code=True) as stepping:
        action = CallToolAction(tool_name="execute_code", arguments={"code": "fill(1); fill(2)"}).model_dump()
        assert stepping.ask(type="step", data=action)["reward"] == 2.0
    with OverMcp(allow_code=True) as producing:
        assert "reward" not in str(producing.call("execute_code", code="fill(1)"))


def test_allow_code_is_true_or_false() -> None:
    with pytest.raises(SettingsError) as refused:
        ServerSettings(allow_code="yes")  # type: ignore[arg-type]
    assert refused.value.setting == "allow_code"
