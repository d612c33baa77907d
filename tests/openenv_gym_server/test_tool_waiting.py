"""Waiting for what may never end."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from openenv_gym_server.tool_waiting import ended_within, loop_is_running, run_now

NAME = contextvars.ContextVar("NAME", default="none")


async def value() -> str:
    await asyncio.sleep(0)
    return NAME.get()


def test_a_value_is_waited_for_here_and_on_another_thread_under_a_running_loop() -> None:
    NAME.set("mine")
    assert run_now(value()) == "mine"

    async def main() -> None:
        assert loop_is_running()
        assert run_now(value()) == "mine"

    assert not loop_is_running()
    asyncio.run(main())


def test_what_the_work_raises_is_raised() -> None:
    async def wrong() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        run_now(wrong())


def test_tasks_that_are_left_behind_are_cancelled() -> None:
    left: list[Any] = []

    async def main() -> None:
        left.append(asyncio.ensure_future(asyncio.Event().wait()))

    threads = threading.active_count()
    run_now(main())
    assert left[0].cancelled()
    assert threading.active_count() == threads


def test_each_ending_is_told() -> None:
    async def endings() -> list[Any]:
        async def wrong() -> None:
            raise SystemExit(3)

        async def cancelled() -> None:
            raise asyncio.CancelledError

        return [
            await ended_within(value(), 5.0),
            await ended_within(wrong(), None),
            await ended_within(cancelled(), 5.0),
            await ended_within(asyncio.Event().wait(), 0.01),
        ]

    good, wrong, cancelled, late = asyncio.run(endings())
    assert good.error is None
    assert good.in_time
    assert isinstance(wrong.error, SystemExit)
    assert isinstance(cancelled.error, asyncio.CancelledError)
    assert not late.in_time
