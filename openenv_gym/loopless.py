"""Coroutines that need no event loop: one text of a method for those who await it and for those who just call it.

A client's methods are coroutines whose only waits are its own: for its turn, for its socket, for its provider. Each of
these few waits asks ``blocking()`` how it is to be done. ``drive()`` runs such a coroutine to its end on the calling
thread, where every wait is then a plain blocking call; under an event loop the same coroutine is awaited. Not for
coroutines that await anything else: those need a loop (``loop_thread.py``).
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["blocking", "drive", "in_thread", "loopless", "loopless_names", "off_the_loop", "pause", "settle"]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Coroutine[Any, Any, Any]])

_MARK = "__openenv_gym_loopless__"


class _Here(threading.local):
    driven: Coroutine[Any, Any, Any] | None = None


_here = _Here()


def loopless(method: F) -> F:
    """Mark a coroutine function that awaits nothing but other marked ones, of whatever client.

    Example:
        >>> class Client:
        ...     @loopless
        ...     async def play(self) -> int:
        ...         return 7
        >>> loopless_names(Client)
        frozenset({'play'})
    """
    setattr(method, _MARK, True)
    return method


def loopless_names(kind: type) -> frozenset[str]:
    """The marked methods of a class; none where a subclass has put an unmarked one in a marked one's place.

    Marked methods call each other, so one of them that needs a loop makes all of them need it.
    """
    marked = {name for base in kind.__mro__ for name, member in vars(base).items() if hasattr(member, _MARK)}
    replaced = any(not hasattr(inspect.getattr_static(kind, name), _MARK) for name in marked)
    return frozenset() if replaced else frozenset(marked)


def blocking() -> bool:
    """Whether the running coroutine is driven by the calling thread, so that its waits are to block."""
    # Not a flag: an interrupt may come before it is taken back, and every later wait of this thread would block.
    driven = _here.driven
    return driven is not None and bool(getattr(driven, "cr_running", True))


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine to its end on this thread.

    Raises:
        RuntimeError: it awaited something that needs an event loop.

    Example:
        >>> async def answer() -> int:
        ...     return 42
        >>> drive(answer())
        42
    """
    before, _here.driven = _here.driven, coroutine
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        _here.driven = before
        coroutine.close()
    raise RuntimeError("expected a coroutine that needs no event loop, but it awaited something that does")


async def pause(seconds: float) -> None:
    """Wait so long."""
    if blocking():
        time.sleep(seconds)  # noqa: ASYNC251 - no loop stands behind it
    else:
        await asyncio.sleep(seconds)


async def off_the_loop(work: Callable[[], T], *, discard: Callable[[T], object], daemon: bool = False) -> T:
    """Do blocking work: right here where this thread may block, else in a thread; see ``in_thread``."""
    if blocking():
        return work()
    return await in_thread(work, discard=discard, daemon=daemon)


async def in_thread(work: Callable[[], T], *, discard: Callable[[T], object], daemon: bool = False) -> T:
    """Do blocking work in a thread of its own, with the caller's context variables, and wait for its result.

    Args:
        work: what to do. It goes on when the caller is cancelled meanwhile.
        discard: what to do then with its result, which nobody else will ever see; may be called twice.
        daemon: whether the interpreter may exit in the middle of it.
    """
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()
    task = _Task(work, discard, lambda: loop.call_soon_threadsafe(settle, waiter))
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(task.run,), name="openenv-gym-work", daemon=daemon).start()
    try:
        await waiter
    except BaseException:
        task.leave(daemon=daemon)
        raise
    result: T = task.result()
    return result


def settle(waiter: asyncio.Future[None]) -> None:
    """End the wait of who awaits it; may come too late."""
    if not waiter.done():
        waiter.set_result(None)


class _Task:
    """Work in a thread, whose result goes to the caller or, where that has left, is discarded: never lost."""

    def __init__(self, work: Callable[[], T], discard: Callable[[T], object], tell: Callable[[], object]) -> None:
        self._work = work
        self._discard = discard
        self._tell = tell
        # Who came first, the result or the caller's leaving: setdefault is atomic.
        self._first: dict[str, str] = {}
        self._results: list[Any] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._results.append(self._work())
        except BaseException as error:  # noqa: BLE001 - it is the caller's, whatever it is
            self._error = error
        if self._first.setdefault("first", "result") == "result":
            try:
                self._tell()
            except RuntimeError:
                # The loop is closed, so the caller will never come.
                self._drop()
        else:
            self._drop()

    def leave(self, *, daemon: bool) -> None:
        """The caller is gone."""
        if self._first.setdefault("first", "leaving") == "result" and self._results:
            threading.Thread(target=self._drop, name="openenv-gym-discard", daemon=daemon).start()

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _drop(self) -> None:
        for result in self._results:
            self._discard(result)
