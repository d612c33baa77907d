"""Which thread an environment gets, and what is known of the environments before and after there is one.

Environments that declare ``REQUIRES_SINGLE_THREAD_EXECUTOR`` share one thread, all others get one each. A function says
nothing of what it makes, so the first environment it makes tells, and nobody gets a thread meanwhile. Not for sessions
(``sessions.py``) nor for what runs on a thread (``worker.py``).
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import threading
import time
from concurrent.futures import Future

from openenv_gym.errors import EnvironmentFactoryError
from openenv_gym_server.errors import factory_calls
from openenv_gym_server.factories import EnvironmentFactory
from openenv_gym_server.worker import Worker

__all__ = ["Workers", "close_unused"]

logger = logging.getLogger("openenv_gym_server")

_KEPT_ENDED = 32
"""Threads that are remembered before those that have ended are forgotten."""

_TOLD: Future[None] = Future()
_TOLD.set_result(None)


class Workers:
    """The threads of one application's environments.

    Args:
        factory: what makes the environments.

    Attributes:
        concurrent: whether the environments do not disturb one another; None where none was made to tell.
    """

    def __init__(self, factory: EnvironmentFactory) -> None:
        self._factory = factory
        self._lock = threading.Lock()
        self._workers: set[Worker] = set()
        self._shared: Worker | None = None
        self._telling: Future[None] | None = None
        self.concurrent: bool | None = factory.declares("SUPPORTS_CONCURRENT_SESSIONS")
        self._single: bool | None = factory.declares("REQUIRES_SINGLE_THREAD_EXECUTOR")
        if factory.instance is not None:
            self._single = True

    @property
    def decided(self) -> bool:
        """Whether it is known if all environments live on one thread."""
        return self._single is not None

    def take(self, name: str) -> Worker | None:
        """A thread for an environment; None while another is being made that tells whether it is the only one.

        Whoever gets one makes an environment on it, and has it learn from that with ``learn_from``.

        Args:
            name: what the thread is called, where it is a new one.
        """
        with self._lock:
            if self._single is False:
                return self._new(name)
            if self._telling is not None:
                return None
            if self._shared is None:
                self._shared = self._new(name)
            if self._single is None:
                self._telling = Future()
                self._telling.set_running_or_notify_cancel()
            return self._shared

    async def settled(self) -> None:
        """Return once the environment is made, or has failed, that ``take`` gave None for."""
        await asyncio.wait([asyncio.wrap_future(self._telling or _TOLD)])

    def learn_from(self, env: object | None) -> None:
        """Learn from an environment that was made; None where it could not be.

        A function that fails leaves its thread to the next try: what it touched there may be bound to it.
        """
        with self._lock:
            if env is not None and self.concurrent is None:
                self.concurrent = bool(getattr(env, "SUPPORTS_CONCURRENT_SESSIONS", False))
            telling, self._telling = self._telling, None
            if telling is not None and env is not None:
                self._single = bool(getattr(env, "REQUIRES_SINGLE_THREAD_EXECUTOR", False))
                if not self._single:
                    self._shared = None
        if telling is not None:
            telling.set_result(None)

    def ask(self) -> bool | None:
        """Make and close an environment, where only one can tell whether its kind bears concurrency.

        Returns:
            Whether it does; None where none could be made.
        """
        while self.concurrent is None:
            worker = self.take("openenv-probe")
            if worker is None:
                (self._telling or _TOLD).result()
                continue
            try:
                worker.submit(self._make_and_close, worker).result()
            except EnvironmentFactoryError:
                logger.warning("the environment factory %r failed", self._factory.name, exc_info=True)
                return None
            finally:
                self.release(worker)
        return self.concurrent

    def is_shared(self, worker: Worker) -> bool:
        """Whether other environments live on it, or may come to."""
        return worker is self._shared

    def release(self, worker: Worker) -> None:
        """Let a thread end after what it does, unless others live on it."""
        if worker is not self._shared:
            worker.stop()

    def stop(self) -> None:
        """Let the shared thread end too; a later environment gets another."""
        with self._lock:
            shared, self._shared = self._shared, None
            telling, self._telling = self._telling, None
        if shared is not None:
            shared.stop()
        if telling is not None:
            telling.set_result(None)

    async def join(self, deadline: float) -> int:
        """Wait for all threads until ``deadline`` on the monotonic clock; how many are still busy then."""
        loop = asyncio.get_running_loop()
        for worker in list(self._workers):
            remaining = max(0.05, deadline - time.monotonic())
            if worker.join(0) or await loop.run_in_executor(None, worker.join, remaining):
                self._workers.discard(worker)
        return len(self._workers)

    def _new(self, name: str) -> Worker:
        with factory_calls(self._factory.name):  # there may be no more threads to be had
            worker = Worker(name, may_be_async=self._factory.may_be_async)
        if len(self._workers) > 2 * sum(not known.join(0) for known in self._workers) + _KEPT_ENDED:
            self._workers = {known for known in self._workers if not known.join(0)}
        self._workers.add(worker)
        return worker

    def _make_and_close(self, worker: Worker) -> None:
        try:
            env = self._factory.make()
        except BaseException:
            self.learn_from(None)
            raise
        self.learn_from(env)
        close_unused(env, worker)


def close_unused(env: object, worker: Worker) -> None:
    """Close an environment that no session has had, on its own thread; what that raises is nobody's."""
    close = getattr(env, "close", None)
    if callable(close):
        with contextlib.suppress(EnvironmentFactoryError), factory_calls(type(env).__name__):
            closing = close()
            if inspect.isawaitable(closing):
                worker.wait_for(closing)
