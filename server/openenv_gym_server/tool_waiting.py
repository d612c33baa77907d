"""Waiting for a tool that is ``async def``: for no longer than its limit, and where no server waits for it.

A tool that does not heed its cancellation goes on in the background, as long as its event loop runs; what it gives is
dropped. Not for a server's own threads and loops (``worker.py``).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, NamedTuple, TypeVar

__all__ = ["Ending", "ended_within", "loop_is_running", "run_now"]

T = TypeVar("T")

CANCELLATION_S = 0.25
"""How long a cancelled tool has to clean up before the answer goes out without it."""


class Ending(NamedTuple):
    """How something ended: with a value, an error, or not in time."""

    value: Any = None
    error: BaseException | None = None
    in_time: bool = True


async def ended_within(work: Awaitable[Any], seconds: float | None) -> Ending:
    """How the work ended; it is cancelled where it takes longer. Nothing that it raises is raised here."""
    task = asyncio.ensure_future(_ending_of(work))
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        task.cancel()  # without effect on what is done already; else the limit has passed, or the caller was cancelled
    if not task.done():
        await asyncio.wait({task}, timeout=CANCELLATION_S)
        return Ending(in_time=False)
    return Ending(error=asyncio.CancelledError("it cancelled itself")) if task.cancelled() else task.result()


async def _ending_of(work: Awaitable[Any]) -> Ending:
    try:
        return Ending(await work)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - a SystemExit that left its task would end the event loop
        return Ending(error=error)


def run_now(work: Awaitable[T]) -> T:
    """What the work gives, waited for here and now; on a thread of its own where this one's event loop is running."""
    if not loop_is_running():
        return _run(work)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="openenv-tool") as thread:
        return thread.submit(copy_context().run, _run, work).result()


def loop_is_running() -> bool:
    """Whether this thread's event loop is running, so that nothing can be waited for here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run(work: Awaitable[T]) -> T:
    async def main() -> T:
        return await work

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(main())
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        with contextlib.suppress(BaseException):  # best-effort clean-up of a tool's own tasks
            if tasks:
                loop.run_until_complete(asyncio.wait(tasks, timeout=CANCELLATION_S))
            loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
