"""Tests of ``openenv_gym_server.vector_sessions``: sessions of several environments written for OpenEnv."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest
from starlette.testclient import TestClient

from openenv_gym.errors import InvalidActionError
from openenv_gym.messages import SUBPROTOCOL, OpenSettings
from openenv_gym.types import Observation
from openenv_gym_server.app import create_app
from openenv_gym_server.factories import EnvironmentFactory
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.tool_functions import tool
from openenv_gym_server.vector_sessions import check_opening
from tests.sockets import WAIT_S, ask, client_of, until
from tests.text_envs import Echo, Heard, Say, make_bare, make_echo

ALL = ServerSettings(remote_names="all", allowed_env_kwargs="all")


class Counting(Echo):
    """Counts its episodes; says what it did in its envelope's metadata; ends at "bye"."""

    made: ClassVar[list[Counting]] = []

    def __init__(self, fail_at: int = 99) -> None:
        super().__init__()
        self.made.append(self)
        if len(self.made) >= fail_at:
            raise OSError("no more of these")
        self.episodes = 0

    def reset(self, seed: int | None = None, start: str = "ready") -> Heard:
        self.threads.add(threading.get_ident())
        self.episodes += 1
        return Heard(echo=f"{start} {seed}")


@pytest.fixture(autouse=True)
def none_made() -> None:
    Counting.made = []


@contextmanager
def opened(env: Any = Counting, settings: ServerSettings = ALL, **opening: Any) -> Iterator[Any]:
    with (
        client_of(env, settings) as client,
        client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket,
    ):
        socket.opened = ask(socket, {"type": "x-open", "data": {"num_envs": 3, **opening}})
        socket.client = client
        yield socket


def step(socket: Any, *messages: str, **data: Any) -> dict[str, Any]:
    actions = [{"message": message} for message in messages]
    return ask(socket, {"type": "x-vector_step", "data": {"actions": actions, **data}})["data"]


def begin(socket: Any, **data: Any) -> dict[str, Any]:
    return ask(socket, {"type": "x-vector_reset", "data": data})["data"]


def heard(outcome: dict[str, Any]) -> list[str]:
    return [each["echo"] for each in outcome["observations"]]


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_environments_of_models_play_as_one_session(vectorization: str) -> None:
    with opened(vectorization=vectorization) as socket:
        data = socket.opened["data"]
        assert (data["num_envs"], data["autoreset_mode"], data["partial"], data["binary"]) == (
            3,
            "NextStep",
            True,
            False,
        )
        assert heard(begin(socket, seeds=[1, None, 3], options={"start": "go"})) == ["go 1", "go None", "go 3"]
        outcome = step(socket, "a", "bye", "c")
        assert heard(outcome) == ["a", "bye", "c"]
        assert outcome["rewards"] == [1.0] * 3
        assert outcome["terminations"] == [False, True, False]
        assert outcome["truncations"] == [False] * 3
        outcome = step(socket, "d", "ignored", "f")
        assert heard(outcome) == ["d", "ready None", "f"]
        assert outcome["rewards"] == [1.0, 0.0, 1.0]
        assert heard(step(socket, "g", env_ids=[2])) == ["g"]
        state = ask(socket, {"type": "state"})["data"]
        assert (state["num_envs"], state["step_counts"]) == (3, [2, 0, 3])
        assert len({frozenset(env.threads) for env in Counting.made}) == (1 if vectorization == "sync" else 3)
    assert [env.closed for env in Counting.made] == [1] * 3


def test_the_next_episode_begins_within_the_step_that_ends_one() -> None:
    with opened(autoreset_mode="SameStep", max_episode_steps=2) as socket:
        begin(socket)
        outcome = step(socket, "a", "bye", "c")
        assert heard(outcome) == ["a", "ready None", "c"]
        assert outcome["final"]["1"]["echo"] == "bye"
        assert outcome["terminations"] == [False, True, False]
        outcome = step(socket, "d", "e", "f")
        assert outcome["truncations"] == [True, False, True]
        assert sorted(outcome["final"]) == ["0", "2"]


def test_a_step_where_an_episode_is_over_moves_nothing() -> None:
    with opened(autoreset_mode="Disabled") as socket:
        refused = step(socket, "too", "early", "here")
        assert refused["errors"][0]["type"] == "not_reset"
        begin(socket)
        step(socket, "a", "bye", "c")
        refused = step(socket, "d", "e", "f")
        assert refused["code"] == "VALIDATION_ERROR"
        assert "environment 1" in refused["message"]
        assert 'options["reset_mask"]' in refused["message"]
        assert [env.calls.count("d") for env in Counting.made] == [0] * 3
        begin(socket, env_ids=[1])
        assert heard(step(socket, "d", "e", "f")) == ["d", "e", "f"]


def test_a_refused_action_is_named_and_nothing_has_moved() -> None:
    with opened() as socket:
        begin(socket)
        refused = step(socket, "a", "rude", "c")
        assert refused["code"] == "VALIDATION_ERROR"
        assert refused["errors"][0]["loc"] == ["data", "actions", 1, "message"]
        assert [env.calls for env in Counting.made] == [[], [], []]
        assert heard(step(socket, "a", "b", "c")) == ["a", "b", "c"]


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_one_that_raises_ends_the_session_and_no_other(vectorization: str) -> None:
    with opened(vectorization=vectorization) as socket:
        client = socket.client
        with client.websocket_connect("/ws") as bystander:
            ask(bystander, {"type": "reset"})
            assert client.get("/ready").json()["capacity"]["active_sessions"] == 4
            begin(socket)
            failed = step(socket, "a", "b", "exit")
            assert (failed["code"], failed["env_index"]) == ("EXECUTION_ERROR", 2)
            assert failed["exception_type"] == "SystemExit"
            assert socket.receive()["type"] == "websocket.close"
            until(lambda: client.get("/ready").json()["capacity"]["active_sessions"] == 1)
            assert [env.closed for env in Counting.made[:3]] == [1] * 3
            assert ask(bystander, {"type": "step", "data": {"message": "x"}})["type"] == "observation"


def test_environments_on_threads_are_stepped_at_the_same_time() -> None:
    class Meeting(Echo):
        barrier = threading.Barrier(3)

        def step(self, action: Say) -> Heard:
            self.barrier.wait(WAIT_S)
            return super().step(action)

    with opened(Meeting, vectorization="async") as socket:
        begin(socket)
        assert heard(step(socket, "a", "b", "c")) == ["a", "b", "c"]


def test_an_asynchronous_environment_is_awaited() -> None:
    class Awaited(Echo):
        async def step(self, action: Say) -> Heard:  # type: ignore[override]
            return super().step(action)

    for vectorization in ("sync", "async"):
        with opened(Awaited, vectorization=vectorization) as socket:
            begin(socket)
            assert heard(step(socket, "a", "b", "c")) == ["a", "b", "c"]


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_those_that_were_made_are_closed_where_one_cannot_be(vectorization: str) -> None:
    with opened(vectorization=vectorization, env_kwargs={"fail_at": 3}) as socket:
        assert socket.opened["data"]["code"] == "FACTORY_ERROR"
        assert "no more of these" in socket.opened["data"]["message"]
        until(lambda: socket.client.get("/ready").json()["capacity"]["active_sessions"] == 0)
    assert sorted(env.closed for env in Counting.made[:3]) == [0, 1, 1]


def test_what_no_model_environment_offers_is_refused() -> None:
    with opened(vectorization="vector_entry_point") as socket:
        assert socket.opened["data"]["errors"][0]["loc"] == ["data", "vectorization"]

    class Bound(Echo):
        REQUIRES_SINGLE_THREAD_EXECUTOR = True

    with opened(Bound, vectorization="async") as socket:
        assert "share one thread" in socket.opened["data"]["message"]


def test_a_binary_frame_for_models_is_refused_and_the_session_goes_on() -> None:
    with opened() as socket:
        begin(socket)
        socket.send_bytes(bytes.fromhex("0102000003000000" + "09" + "00" * 7))
        refused = socket.receive_json()
        assert refused["id"] == 9
        assert refused["data"]["code"] == "VALIDATION_ERROR"
        assert heard(step(socket, "a", "b", "c")) == ["a", "b", "c"]


# --------------------------------------------------------------------------------------------------- capacity


def test_a_session_takes_as_many_places_as_it_has_environments() -> None:
    with (
        client_of(settings=ServerSettings(max_concurrent_envs=4)) as client,
        client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as first,
    ):
        assert ask(first, {"type": "x-open", "data": {"num_envs": 3}})["type"] == "x-open"
        assert client.get("/ready").json()["capacity"] == {"active_sessions": 3, "max_sessions": 4}
        with client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as second:
            refused = ask(second, {"type": "x-open", "id": 1, "data": {"num_envs": 2}})["data"]
            assert refused["code"] == "CAPACITY_REACHED"
            assert (refused["active_sessions"], refused["max_sessions"]) == (3, 4)
            for part in ("3/4", "2 environments", "max_concurrent_envs", "--max-concurrent-envs"):
                assert part in refused["message"]
        with client.websocket_connect("/ws") as third:
            assert ask(third, {"type": "reset"})["type"] == "observation"
    with client_of(settings=ServerSettings(max_concurrent_envs=4)) as client:
        for _ in range(3):
            with client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket:
                assert ask(socket, {"type": "x-open", "data": {"num_envs": 4}})["type"] == "x-open"
                assert ask(socket, {"type": "x-vector_reset"})["type"] == "x-vector"


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_what_a_function_makes_is_looked_at_before_several_are_made(vectorization: str) -> None:
    with opened(make_echo, vectorization=vectorization) as socket:
        assert socket.opened["type"] == "x-open"
        begin(socket)
        assert heard(step(socket, "a", "b", "c")) == ["a", "b", "c"]
    with opened(make_bare, vectorization=vectorization) as socket:
        assert socket.opened["data"]["code"] == "CAPACITY_REACHED"
        assert "SUPPORTS_CONCURRENT_SESSIONS" in socket.opened["data"]["message"]


def test_a_function_is_looked_at_for_one_environment_on_a_thread_too() -> None:
    with opened(make_echo, num_envs=1, vectorization="async") as socket:
        begin(socket)
        assert heard(step(socket, "a")) == ["a"]


def test_an_instance_is_a_vector_of_one_at_most() -> None:
    env = Echo()
    with opened(env, num_envs=1, autoreset_mode="NextStep") as socket:
        begin(socket)
        assert heard(step(socket, "a")) == ["a"]
    with opened(env) as socket:
        assert socket.opened["data"]["code"] == "CAPACITY_REACHED"
    assert env.closed == 0


# ------------------------------------------------------------------------------------------- limits and ends


def test_a_step_that_takes_too_long_ends_the_session() -> None:
    leave = threading.Event()

    class Slow(Echo):
        def step(self, action: Say) -> Heard:
            leave.wait(WAIT_S)
            return super().step(action)

    with opened(Slow, ServerSettings(step_timeout_s=0.05, reset_timeout_s=30)) as socket:
        assert begin(socket)["observations"]
        ended = step(socket, "a", "b", "c")
        assert ended["code"] == "SESSION_ERROR"
        assert "step_timeout_s=0.05" in ended["message"]
        leave.set()


def test_an_idle_session_of_several_ends_as_one() -> None:
    with opened(Echo, ServerSettings(session_timeout_s=0.05)) as socket:
        begin(socket)
        ended = socket.receive_json()["data"]
        assert "idle" in ended["message"]
        until(lambda: socket.client.get("/ready").json()["capacity"]["active_sessions"] == 0)


def test_production_has_no_session_of_several() -> None:
    with (
        client_of(Echo, ServerSettings(mode="production")) as client,
        client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket,
    ):
        for message in (
            {"type": "x-open", "data": {"num_envs": 2}},
            {"type": "x-vector_reset"},
            {"type": "x-vector_step", "data": {"actions": []}},
            {"type": "x-set_attr", "data": {"name": "a", "values": [1]}},
        ):
            assert "production" in ask(socket, message)["data"]["message"]
        socket.send_bytes(bytes.fromhex("0102000001000000" + "09" + "00" * 7))
        assert socket.receive_json()["data"]["code"] == "VALIDATION_ERROR"


class Tools(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Observation:
        return Observation(reward=0.0)

    @tool(timeout_s=0.1)
    def wait(self, leave: bool) -> str:
        if not leave:
            LEAVE.wait(WAIT_S)
        return "left"


LEAVE = threading.Event()


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_tools_that_are_called_together_have_the_limits_of_all(vectorization: str) -> None:
    def call(*, leave: bool) -> dict[str, Any]:
        return {"type": "call_tool", "tool_name": "wait", "arguments": {"leave": leave}}

    LEAVE.clear()
    with (
        TestClient(create_app(Tools, Say, Heard)) as client,
        client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket,
    ):
        ask(socket, {"type": "x-open", "data": {"num_envs": 2, "vectorization": vectorization}})
        begin(socket)
        outcome = ask(socket, {"type": "x-vector_step", "data": {"actions": [call(leave=True)] * 2}})["data"]
        assert [each["result"]["data"] for each in outcome["observations"]] == ["left"] * 2
        actions = [call(leave=False), {"type": "list_tools"}]
        ended = ask(socket, {"type": "x-vector_step", "data": {"actions": actions}})["data"]
        assert ended["code"] == "SESSION_ERROR"
        assert "tools" in ended["message"]
        LEAVE.set()


@pytest.mark.parametrize(
    ("name", "value"),
    [("num_envs", 0), ("num_envs", -3), ("num_envs", 65_537), ("max_episode_steps", 0), ("max_episode_steps", 5)],
)
def test_an_opening_out_of_range_is_refused_by_its_name(name: str, value: int) -> None:
    with pytest.raises(InvalidActionError) as caught:
        check_opening(OpenSettings(**{name: value}), EnvironmentFactory(Echo))
    assert caught.value.errors is not None
    assert caught.value.errors[0]["loc"] == ["data", name]


def test_an_opening_of_several_may_limit_their_steps() -> None:
    check_opening(OpenSettings(num_envs=65_536, max_episode_steps=5), EnvironmentFactory(Echo))
    check_opening(OpenSettings(autoreset_mode="Disabled", max_episode_steps=1), EnvironmentFactory(Echo))


def test_a_refused_opening_keeps_nobody_from_the_next() -> None:
    with client_of(make_echo, ALL) as client:
        for _ in range(2):
            with client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket:
                refused = ask(socket, {"type": "x-open", "data": {"vectorization": "vector_entry_point"}})
                assert refused["data"]["code"] == "VALIDATION_ERROR"
                assert refused["data"]["errors"][0]["loc"] == ["data", "vectorization"]
                assert ask(socket, {"type": "x-open", "data": {}})["type"] == "x-open"


def test_threads_that_were_started_end_where_there_are_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(threading.enumerate())
    start = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if thread.name == "openenv-lane-2":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    with opened(Echo, vectorization="async") as socket:
        assert socket.opened["data"]["code"] == "FACTORY_ERROR"
        assert "can't start new thread" in socket.opened["data"]["message"]
        until(lambda: not [one for one in set(threading.enumerate()) - before if one.name.startswith("openenv-lane")])
