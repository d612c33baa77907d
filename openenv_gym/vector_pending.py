"""Which call of a vector environment is under way, and which may therefore not come now.

Not for the requests themselves (``vector_rollout.py``). The errors are Gymnasium's own.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError

__all__ = ["Pending", "alone", "whole"]


class Pending:
    """The call under way: ``reset_async`` or ``step_async``.

    Example:
        >>> pending = Pending()
        >>> pending.begin("step")
        >>> pending.finish("step", closed=False)
    """

    def __init__(self) -> None:
        self._call: str | None = None
        # Whose call is running: taken by setdefault, which is atomic.
        self._threads: dict[str, int] = {}

    def enter(self, name: str) -> None:
        """A call of this thread begins, and lasts until ``leave``; it may have further ones in it.

        Raises:
            AlreadyPendingCallError: one of another thread is under way, and is not disturbed.
        """
        me = threading.get_ident()
        if self._threads.setdefault("call", me) != me:
            raise AlreadyPendingCallError(
                f"Calling `{name}` while a call of another thread is under way: one call at a time", name
            )

    def leave(self) -> None:
        """The call of this thread is over."""
        if self._threads.get("call") == threading.get_ident():
            self._threads.pop("call", None)

    def begin(self, call: str) -> None:
        """A call waits for its answer from now on."""
        self._call = call

    def finish(self, call: str, *, closed: bool) -> None:
        """The answer of a call is asked for.

        Raises:
            ClosedEnvironmentError: the environment is closed.
            NoAsyncCallError: there was no such call.
        """
        if closed:
            raise _closed()
        if self._call != call:
            raise NoAsyncCallError(f"Calling `{call}_wait` without any prior call to `{call}_async`", call)
        self._call = None

    def forget(self) -> None:
        """No call waits any more; what it has asked for is ended elsewhere."""
        self._call = None

    def require_none(self, name: str, *, closed: bool, sent: int = 0) -> None:
        """A call of this name may come now.

        Args:
            name: the method's.
            closed: whether the environment is.
            sent: how many environments have actions of ``send`` on their way, where that matters.

        Raises:
            ClosedEnvironmentError: the environment is closed.
            AlreadyPendingCallError: another call is under way.
        """
        if closed:
            raise _closed()
        if self._call is not None:
            raise AlreadyPendingCallError(
                f"Calling `{name}` while waiting for a pending call to `{self._call}` to complete", self._call
            )
        if sent:
            raise AlreadyPendingCallError(
                f"Calling `{name}` while {sent} environments have actions on their way: recv() them first", "send"
            )


class _Vector(Protocol):
    """A vector environment whose calls are told apart."""

    _pending: Pending

    def _leave(self, error: BaseException) -> None: ...


_P = ParamSpec("_P")
_T = TypeVar("_T")
_VectorT = TypeVar("_VectorT", bound=_Vector)


def alone(method: Callable[Concatenate[_VectorT, _P], _T]) -> Callable[Concatenate[_VectorT, _P], _T]:
    """A method that is refused while another thread's call is under way."""

    @functools.wraps(method)
    def call(self: _VectorT, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        self._pending.enter(method.__name__)
        try:
            return method(self, *args, **kwargs)
        finally:
            self._pending.leave()

    return call


def whole(method: Callable[Concatenate[_VectorT, _P], _T]) -> Callable[Concatenate[_VectorT, _P], _T]:
    """``alone``, of a reset or step, or half of one: where it fails, nothing of it stays under way."""

    @functools.wraps(method)
    def guarded(self: _VectorT, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return method(self, *args, **kwargs)
        except (AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError):
            raise  # refused before anything was done
        except BaseException as error:
            self._leave(error)
            raise

    return alone(guarded)


def _closed() -> ClosedEnvironmentError:
    return ClosedEnvironmentError("expected an open vector environment, but it was closed: make a new one")
