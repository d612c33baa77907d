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
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from openenv_gym_server.errors import SessionEndedError

__all__ = ["Worker"]

T = TypeVar("T")
Job = Callable[[], None]

CANCELLATION_S = 5.0
"""How long an environment's background tasks have to end once they were cancelled."""

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
        self._stopping = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        try:
            self._thread.start()
        except BaseException:
            if self._loop is not None:
                self._loop.close()
            raise

    # ---------------------------------------------------------------------------------- from other threads

    def submit(self, job: Callable[..., T], *args: Any) -> Future[T]:
        """Run ``job(*args)`` on the thread; the future has what it returned or raised, ``BaseException`` included.

        The future cannot be cancelled: its end is the job's.

        Raises:
            SessionEndedError: the worker was stopped.
        """
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()

        def run() -> None:
            try:
                result = job(*args)
            except BaseException as error:  # noqa: BLE001 - handed to the caller; the thread serves on
                future.set_exception(error)
            else:
                future.set_result(result)

        self._put(run)
        return future

    def post(self, job: Job) -> None:
        """Run a job on the thread that raises nothing and that nobody waits for.

        Raises:
            SessionEndedError: the worker was stopped.
        """
        self._put(job)

    def run(self, job: Callable[..., T], *args: Any) -> Awaitable[T]:
        """Run ``job(*args)`` on the thread and await it on the running loop; cancelling does not stop the job.

        Raises:
            SessionEndedError: the worker was stopped, and would never run it.
        """
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
        """Let the thread end after the jobs it has; again is harmless."""
        with self._lock:
            stopped, self._stopping = self._stopping, True
            if not stopped:
                self._jobs.put(None)
        self._wake()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread to end; False if it has not. The worker's own thread does not wait for itself."""
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _put(self, job: Job) -> None:
        with self._lock:  # so that no job comes after the one that ends the thread
            if self._stopping:
                raise SessionEndedError(
                    "the environment's thread has ended, and its session with it", code="SESSION_ERROR"
                )
            self._jobs.put(job)
        self._wake()

    def _wake(self) -> None:
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop was dropped meanwhile; the queue alone wakes the thread
                loop.call_soon_threadsafe(self._arrived.set)

    # ---------------------------------------------------------------------------------- on the thread itself

    def wait_for(self, coroutine: Awaitable[T]) -> T:
        """What the awaitable gives; for a job that met one."""
        if self._loop is None or self._loop.is_closed():
            # Only an environment that looked synchronous and returned an awaitable after all comes here, or one that
            # closed the loop.
            self._arrived = asyncio.Event()  # the other belongs to a loop that was closed
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
        task = asyncio.ensure_future(coroutine, loop=self._loop)
        _run_until_done(self._loop, task)
        return task.result()

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
        while self._loop is not None and not self._loop.is_closed():
            waiter = self._loop.create_task(self._await_job())
            _run_until_done(self._loop, waiter)
            # An environment that cancels all tasks of its loop cancels this one too; no job is lost with it.
            if waiter.done() and not waiter.cancelled():
                return waiter.result()
        return self._jobs.get()

    async def _await_job(self) -> Job | None:
        while True:
            try:
                return self._jobs.get_nowait()
            except queue.Empty:
                await self._arrived.wait()
                self._arrived.clear()


def _run_until_done(loop: asyncio.AbstractEventLoop, task: asyncio.Future[Any]) -> None:
    """Run the loop until the task has ended, whatever an environment's other tasks do; or until the loop is closed."""
    while not (task.done() or loop.is_closed()):
        try:
            loop.run_until_complete(task)
        except BaseException as error:
            # The task's own exception stays in it. Another task's SystemExit or KeyboardInterrupt is let out of the
            # loop by asyncio; a RuntimeError says that something stopped the loop. The task itself goes on.
            if not task.done() and not isinstance(error, RuntimeError):
                logger.warning("an environment's background task raised", exc_info=True)


def _set_result(future: asyncio.Future[T], value: T) -> None:
    if not future.done():  # it is done where the caller was cancelled
        future.set_result(value)


def _set_exception(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """End what still runs on the loop, then the loop."""
    if loop.is_closed():
        return
    try:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(_ended(tasks))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    except BaseException:  # best-effort clean-up of an environment's own tasks, at the end of its thread
        logger.warning("an environment's background task failed while it was ended", exc_info=True)
    finally:
        loop.close()


async def _ended(tasks: set[asyncio.Task[Any]]) -> None:
    """Wait for tasks that were cancelled; one that does not heed it must not keep the thread."""
    done, left = await asyncio.wait(tasks, timeout=CANCELLATION_S)
    for task in done:
        if not task.cancelled():
            task.exception()  # nobody's, and asyncio complains of one that nobody has looked at
    if left:
        logger.warning("%d background tasks of an environment do not heed their cancellation", len(left))
