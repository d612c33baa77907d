"""Threads that environments live on.

A ``Worker`` is one named thread that runs one job at a time, in the order they came. An environment is made, reset,
stepped and closed on its worker, so that libraries bound to a thread work and nothing an author wrote blocks the
network's event loop. Not for what a job is (``hosting.py``, ``dispatch.py``) nor for how many there may be
(``sessions.py``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["Worker"]

T = TypeVar("T")
Job = Callable[[], None]

logger = logging.getLogger("openenv_gym_server")


class Worker:
    """One thread, with an event loop of its own as long as its environment may be asynchronous.

    The loop exists before the first job, so that a factory finds it; it runs while a job awaits something and while the
    thread waits for a job, so that an environment's background tasks go on between two steps.

    Args:
        name: the thread's name.
        may_be_async: whether there is an event loop; ``drop_loop`` gives it up once it is known not to be needed.

    Example:
        >>> worker = Worker("example")
        >>> worker.submit(lambda: 1 + 1).result()
        2
        >>> worker.stop()
        >>> worker.join(1.0)
        True
    """

    def __init__(self, name: str, *, may_be_async: bool = False) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = asyncio.new_event_loop() if may_be_async else None
        self._arrived = asyncio.Event()
        self._waiter: asyncio.Task[Job | None] | None = None
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    # ---------------------------------------------------------------------------------- from other threads

    def submit(self, job: Callable[..., T], *args: Any) -> Future[T]:
        """Run ``job(*args)`` on the thread; the future has what it returned or raised, ``BaseException`` included."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                result = job(*args)
            except BaseException as error:  # noqa: BLE001 - handed to the caller; the thread serves on
                future.set_exception(error)
            else:
                future.set_result(result)

        self._put(run)
        return future

    def run(self, job: Callable[..., T], *args: Any) -> Awaitable[T]:
        """Run ``job(*args)`` on the thread and await it on the running loop; cancelling does not stop the job."""
        caller = asyncio.get_running_loop()
        future: asyncio.Future[T] = caller.create_future()

        def run() -> None:
            try:
                settle, value = _set_result, job(*args)
            except BaseException as error:  # noqa: BLE001 - handed to the caller; the thread serves on
                settle, value = _set_exception, error  # type: ignore[assignment]
            try:
                caller.call_soon_threadsafe(settle, future, value)
            except RuntimeError:  # the caller's loop is gone, and with it whoever waited
                return

        self._put(run)
        return future

    def stop(self) -> None:
        """Let the thread end after the jobs it has."""
        self._put(None)

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread to end; False if it has not. The worker's own thread does not wait for itself."""
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _put(self, job: Job | None) -> None:
        self._jobs.put(job)
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop was dropped meanwhile; the queue alone wakes the thread
                loop.call_soon_threadsafe(self._arrived.set)

    # ---------------------------------------------------------------------------------- on the thread itself

    def wait_for(self, coroutine: Awaitable[T]) -> T:
        """What the awaitable gives; for a job that met one."""
        if self._loop is None:
            # Only an environment that looked synchronous and returned an awaitable after all comes here.
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
        return self._loop.run_until_complete(coroutine)

    def drop_loop(self) -> None:
        """Give up the event loop; for a job that knows that its environment is synchronous."""
        loop, self._loop = self._loop, None
        if loop is not None:
            asyncio.set_event_loop(None)
            _close(loop)

    def _main(self) -> None:
        if self._loop is not None:
            asyncio.set_event_loop(self._loop)
        try:
            while (job := self._next()) is not None:
                job()
        finally:
            self.drop_loop()

    def _next(self) -> Job | None:
        if self._loop is None:
            return self._jobs.get()
        if self._waiter is None:
            self._waiter = self._loop.create_task(self._await_job())
        try:
            job = self._loop.run_until_complete(self._waiter)
        except (SystemExit, KeyboardInterrupt):
            # asyncio lets these two out of the loop, whichever task raised them; the waiter itself goes on waiting.
            logger.warning("an environment's background task raised", exc_info=True)
            return _nothing
        self._waiter = None
        return job

    async def _await_job(self) -> Job | None:
        while True:
            try:
                return self._jobs.get_nowait()
            except queue.Empty:
                await self._arrived.wait()
                self._arrived.clear()


def _nothing() -> None:
    """The job of a thread that was woken without one."""


def _set_result(future: asyncio.Future[T], value: T) -> None:
    if not future.done():  # it is done where the caller was cancelled
        future.set_result(value)


def _set_exception(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """End what still runs on the loop, then the loop."""
    try:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(_gather(tasks))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    except BaseException:  # best-effort clean-up of an environment's own tasks, at the end of its thread
        logger.warning("an environment's background task failed while it was ended", exc_info=True)
    finally:
        loop.close()


def _gather(tasks: set[asyncio.Task[Any]]) -> Coroutine[Any, Any, Any]:
    async def ended() -> None:
        await asyncio.gather(*tasks, return_exceptions=True)

    return ended()
