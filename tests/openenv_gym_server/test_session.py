"""Tests of ``openenv_gym_server.session``: where steps run, and for how long."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from openenv_gym.messages import OpenSettings
from openenv_gym_server import session as session_module
from openenv_gym_server.errors import SessionEndedError
from openenv_gym_server.factories import EnvironmentFactory
from openenv_gym_server.gym_app import GymFactory
from openenv_gym_server.lane_vector import MAX_INLINE
from openenv_gym_server.models import Models
from openenv_gym_server.parsing import Terms
from openenv_gym_server.reading import LARGE
from openenv_gym_server.session import Limit, Session
from openenv_gym_server.sessions import Sessions
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.worker import Worker
from tests.text_envs import Echo, Heard, Say


class Inline(Echo):
    INLINE = True

    def __init__(self) -> None:
        super().__init__()
        self.stepped_on: list[str] = []

    def step(self, action: Say) -> Heard:
        self.stepped_on.append(threading.current_thread().name)
        if action.message == "slow":
            until = time.perf_counter() + 0.01
            while time.perf_counter() < until:
                pass
        return super().step(action)


class Run:
    """One session on one loop."""

    def __init__(self, env: type[Any], settings: ServerSettings | None = None) -> None:
        self.loop = asyncio.new_event_loop()
        self.sessions = Sessions(EnvironmentFactory(env), Models(Say, Heard), settings or ServerSettings())
        self.session = self.loop.run_until_complete(self.sessions.open("socket"))

    @property
    def env(self) -> Any:
        assert self.session.hosted is not None
        return self.session.hosted.env

    def ask(self, kind: str, **data: Any) -> dict[str, Any]:
        message = {"type": kind, **({"data": data} if kind != "state" else {})}
        text = json.dumps(message)
        answer = self.session.inline_answer(text, Terms())
        if answer is None:
            answer = self.loop.run_until_complete(self.session.handle(text, Terms()))
        assert answer is not None
        return json.loads(answer)

    def close(self) -> None:
        self.loop.run_until_complete(self.sessions.shutdown())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()


@pytest.fixture
def inline() -> Iterator[Run]:
    run = Run(Inline)
    yield run
    run.close()


def test_a_fast_environment_steps_on_the_loop_and_is_made_and_reset_on_its_thread(inline: Run) -> None:
    assert inline.session.inline
    inline.ask("reset")
    inline.ask("step", message="x")
    assert inline.ask("state")["data"]["step_count"] == 1
    assert inline.env.stepped_on == [threading.current_thread().name]
    assert threading.get_ident() in inline.env.threads
    assert len(inline.env.threads) == 2


def test_a_step_above_the_limit_moves_the_session_to_its_thread_at_the_next_reset(inline: Run) -> None:
    inline.ask("reset")
    for message in ("slow", "x"):
        inline.ask("step", message=message)
    assert inline.session.inline
    inline.ask("reset")
    assert not inline.session.inline
    inline.ask("step", message="x")
    here = threading.current_thread().name
    assert inline.env.stepped_on[:2] == [here, here]
    assert inline.env.stepped_on[2].startswith("openenv-session-")


def test_the_state_of_several_environments_is_told_on_the_thread() -> None:
    sessions = Sessions(EnvironmentFactory(GymFactory("CartPole-v1")), Models(dict, dict), ServerSettings())

    async def play() -> None:
        for settings, short in ((OpenSettings(), True), (OpenSettings(num_envs=2), False)):
            session = await sessions.open("socket", settings)
            assert bool(session.inline_answer('{"type":"state"}', Terms())) is short
        await sessions.shutdown()

    asyncio.run(play())


def test_a_tool_that_plays_runs_on_the_loop_and_one_that_draws_does_not() -> None:
    sessions = Sessions(EnvironmentFactory(GymFactory("CartPole-v1")), Models(dict, dict), ServerSettings())

    async def play() -> None:
        session = await sessions.open("socket")
        for name, inline in (("observe", True), ("render", False)):
            text = json.dumps({"type": "step", "data": {"type": "call_tool", "tool_name": name}})
            assert bool(session.inline_answer(text, Terms())) is inline
        await sessions.shutdown()

    asyncio.run(play())


def test_many_environments_that_take_turns_are_never_stepped_on_the_loop() -> None:
    sessions = Sessions(
        EnvironmentFactory(GymFactory("CartPole-v1")),
        Models(dict, dict),
        ServerSettings(max_concurrent_envs="unlimited"),
    )

    async def play() -> None:
        for kind, count, inline in (
            ("sync", MAX_INLINE, True),
            ("sync", MAX_INLINE + 1, False),
            ("vector_entry_point", MAX_INLINE + 1, True),
        ):
            session = await sessions.open("socket", OpenSettings(num_envs=count, vectorization=kind))
            assert session.inline is inline
        await sessions.shutdown()

    asyncio.run(play())


def test_a_large_message_is_read_on_the_thread(inline: Run) -> None:
    inline.ask("reset")
    inline.ask("step", message="x" * LARGE)
    assert inline.env.stepped_on[0].startswith("openenv-session-")


def test_bad_input_on_the_loop_is_answered_as_elsewhere(inline: Run) -> None:
    assert inline.ask("step")["data"]["code"] == "VALIDATION_ERROR"
    assert inline.ask("unheard_of")["data"]["code"] == "UNKNOWN_TYPE"
    assert inline.ask("step", message="exit")["data"]["code"] == "EXECUTION_ERROR"
    assert inline.session.inline_answer('{"type":"close"}', Terms()) is None
    assert inline.loop.run_until_complete(inline.session.handle('{"type":"close"}', Terms())) is None


@pytest.mark.parametrize("flag", ["REQUIRES_SINGLE_THREAD_EXECUTOR", "async"])
def test_an_environment_bound_to_a_thread_or_loop_is_never_inline(flag: str) -> None:
    class Bound(Inline):
        REQUIRES_SINGLE_THREAD_EXECUTOR = flag != "async"

    if flag == "async":

        async def step(self: Any, action: Say) -> Heard:
            return Heard()

        Bound.step = step  # type: ignore[assignment, method-assign]
    run = Run(Bound)
    assert not run.session.inline
    assert run.ask("step", message="x")["type"] == "observation"
    run.close()


def test_its_info_tells_what_is_known(inline: Run) -> None:
    inline.ask("reset")
    inline.ask("step", message="x")
    inline.ask("reset")
    inline.ask("step", message="x")
    info = inline.session.info()
    assert (info.session_id, info.step_count, info.environment_type) == (inline.session.id, 2, "Inline")
    assert info.created_at <= info.last_activity_at <= time.time() + 1


def test_a_session_without_environment_says_so() -> None:
    worker = Worker("tested")
    session = Session("s", "kept", worker, ServerSettings())
    assert session.info().environment_type == ""
    assert not session.idle_for(0)
    with pytest.raises(SessionEndedError):
        asyncio.run(session.handle("{}", Terms()))
    worker.stop()
    assert worker.join(5.0)


def test_within_the_time_limit_nothing_happens() -> None:
    run = Run(Echo, ServerSettings(step_timeout_s=10, reset_timeout_s=10))
    assert run.ask("reset")["type"] == "observation"
    assert run.ask("step", message="x" * (LARGE + 1))["type"] == "observation"
    run.close()


def test_work_is_in_flight_from_its_asking_to_its_end() -> None:
    go = threading.Event()
    run = Run(Echo, ServerSettings(step_timeout_s=0.01))
    session = run.session

    async def main() -> None:
        # The limit makes a task of it, which has not begun yet.
        asking = asyncio.ensure_future(session.run(lambda hosted: go.wait(10)))
        await asyncio.sleep(0)
        assert not session.idle_for(-1)
        with pytest.raises(SessionEndedError):
            await asking
        assert not session.idle_for(-1)
        go.set()
        await session._run(lambda: None)
        assert session.idle_for(-1)

    run.loop.run_until_complete(main())
    run.close()


def test_a_session_whose_thread_has_ended_says_so() -> None:
    run = Run(Echo)
    run.session.worker.stop()
    with pytest.raises(SessionEndedError):
        run.ask("reset")
    assert run.session.idle_for(-1)
    run.close()


def test_the_lower_of_two_limits_holds() -> None:
    none, low, high = Limit(None, "a"), Limit(1.0, "b"), Limit(2.0, "c")
    assert none.within(None, "x") is none
    assert low.within(2.0, "x") is low
    assert high.within(1.5, "x") == Limit(1.5, "x")
    assert none.within(1.5, "x") == Limit(1.5, "x")


@pytest.mark.parametrize("size", [1, LARGE + 1])
def test_a_reset_has_its_own_limit_whatever_its_size(size: int) -> None:
    go = threading.Event()

    class Sleepy(Echo):
        def reset(self, seed: int | None = None, note: str = "") -> Heard:
            go.wait(10)
            return Heard()

    run = Run(Sleepy, ServerSettings(reset_timeout_s=0.02))
    with pytest.raises(SessionEndedError, match=r"reset_timeout_s=0\.02"):
        run.ask("reset", note="x" * size)
    go.set()
    run.close()


def test_a_limit_in_place_of_none_keeps_its_grace() -> None:
    assert Limit(None, "a", 0.5).or_else(1.0, "b") == Limit(1.0, "b", 0.5)
    assert Limit(2.0, "a", 0.5).or_else(1.0, "b") == Limit(2.0, "a", 0.5)


@pytest.mark.parametrize("fast", [True, False])
def test_several_fast_environments_are_stepped_on_the_loop_until_a_step_is_slow(
    fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "INLINE_LIMIT_S", 60.0 if fast else -1.0)
    factory = EnvironmentFactory(GymFactory("CartPole-v1"))
    sessions = Sessions(factory, Models(dict, dict), ServerSettings())

    async def play() -> list[bool]:
        session = await sessions.open("socket", OpenSettings(num_envs=2))
        found = [session.inline]
        for message in (
            '{"type":"x-vector_reset"}',
            '{"type":"x-vector_step","data":{"actions":[{"action":1},{"action":0}]}}',
            '{"type":"x-vector_step","data":{"actions":[{"action":1},{"action":0}]}}',
        ):
            terms = Terms(extended=True)
            answer = session.inline_answer(message, terms) or await session.handle(message, terms)
            assert "error" not in str(answer)
            found.append(session.inline)
        assert session.info().environment_type == "InlineGymEnvironment"
        assert session.info().step_count == 4
        await sessions.end(session, "done")
        await sessions.shutdown()
        return found

    assert asyncio.run(play()) == ([True] * 4 if fast else [True, True, False, False])
