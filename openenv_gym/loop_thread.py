"""An event loop in a thread of its own, for coroutines that need one where the caller has none.

Not for what needs no loop (``loopless.py``), which is the faster way.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from openenv_gym.errors import SessionLostError, SessionStateError

__all__ = ["LoopThread"]

T = TypeVar("T")

_END_TIMEOUT_S = 5.0


class LoopThread:
    """A loop that starts with the first coroutine, and ends with ``stop()``; it may then start again.

    Example:
        >>> async def answer() -> int:
        ...     return 42
        >>> thread = LoopThread()
        >>> thread.run(answer)
        42
        >>> thread.stop()
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._forget()

    def _forget(self) -> None:
        self._process = os.getpid()
        # Whoever schedules a coroutine holds it, and so does whoever stops the loop: what is scheduled was scheduled
        # before the stop, and is cancelled by it, or goes to the next loop. Entered again by a signal handler's call.
        self._changing = threading.RLock()

    @property
    def running(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive() and self._process == os.getpid()

    def run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine there, wait for it, and give its result; an interrupt meanwhile cancels it.

        Raises:
            SessionLostError: ``stop()`` came from elsewhere meanwhile.
            SessionStateError: called from that very thread, which would wait for itself.
        """
        if self._thread is threading.current_thread():
            raise SessionStateError(
                "expected a call from another thread: a coroutine of the synchronous client calls that client itself; "
                "await the asynchronous client's method instead",
                expected="another thread",
                state="in a coroutine",
            )
        ended = threading.Event()

        async def work() -> T:
            try:
                return await make()
            finally:
                ended.set()

        loop, future = self._schedule(work)
        try:
            return future.result()
        except CancelledError:
            if self._loop is loop:
                raise
            reason = "the client was closed in the middle of a call"
            raise SessionLostError(f"the session is lost: {reason}; reset() opens a new one", reason=reason) from None
        except BaseException:
            if not future.done():
                future.cancel()
                ended.wait(_END_TIMEOUT_S)
            raise

    def stop(self) -> None:
        """Cancel what runs there and end the thread. Again: nothing."""
        if self._process != os.getpid():
            return
        with self._changing:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
            if loop is None or thread is None:
                return
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():
            thread.join(_END_TIMEOUT_S)

    def _schedule(self, work: Callable[[], Coroutine[Any, Any, T]]) -> tuple[asyncio.AbstractEventLoop, Future[T]]:
        if self._process != os.getpid():
            # A forked child has the object, and neither the thread nor whoever held the lock.
            self._loop = self._thread = None
            self._forget()
        with self._changing:
            if self._loop is None or not self.running:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="openenv-gym-loop", daemon=True)
                self._thread.start()
            return self._loop, asyncio.run_coroutine_threadsafe(work(), self._loop)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        with contextlib.closing(loop):
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
