"""What an environment raised, for those who have to mend it: a record in the log, and the text of its traceback.

Not for what a client is told (``errors.py``) nor for what becomes of the session (the routes).
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from traceback import TracebackException, format_exception
from types import TracebackType
from typing import NamedTuple

import gymnasium

from openenv_gym.errors import EnvironmentExecutionError, EnvironmentFactoryError, OpenEnvGymError

__all__ = ["MAX_TRACEBACK", "cause_of", "is_environments", "report", "traceback_text"]

logger = logging.getLogger("openenv_gym_server")

MAX_TRACEBACK = 8_000
"""Characters of a traceback that travel; of a longer one, its beginning and its end."""

WINDOW_S = 60.0
PER_WINDOW = 5
"""Records of one and the same failure in ``WINDOW_S`` seconds; the next record tells how many were left out."""

_REMEMBERED = 1_000
"""Failures that are told apart, so that a server that runs for years keeps no more."""

_CUT = "\n… (cut) …\n"

_LEADING = (
    str(Path(__file__).parent),
    str(Path(gymnasium.__file__).parent / "wrappers"),
    str(Path(gymnasium.__file__).parent / "envs" / "registration.py"),
)
"""Where the frames lie that lead to every environment's own."""


class _Failure(NamedTuple):
    """What makes two failures the same."""

    kind: type[BaseException]
    file: str
    line: int
    message: str


class _Count:
    """Records of one failure in its current window."""

    __slots__ = ("left_out", "since", "written")

    def __init__(self, since: float) -> None:
        self.since = since
        self.written = 0
        self.left_out = 0


_counts: dict[_Failure, _Count] = {}
_lock = threading.Lock()


def is_environments(error: BaseException) -> bool:
    """Whether the environment or its author's factory is at fault, and not the client or the operator."""
    return isinstance(error, EnvironmentExecutionError | EnvironmentFactoryError) or not isinstance(
        error, OpenEnvGymError
    )


def cause_of(error: BaseException) -> BaseException:
    """What was raised at first."""
    return error if error.__cause__ is None else error.__cause__


def report(error: BaseException, session_id: str | None, message: str) -> None:
    """Log what an environment raised, with its traceback; whatever else an error is, its peer alone need know.

    Args:
        error: the error that answers the message.
        session_id: the session, where there is one.
        message: type of the message, or method and path of the request.
    """
    if not is_environments(error):
        return
    cause = cause_of(error)
    left_out = _admitted(_failure(cause, message))
    if left_out is None:
        return
    more = f" ({left_out} more of the same were not logged)" if left_out else ""
    where = f"session {session_id}" if session_id else "no session"
    # As text and not as exc_info: an exception's message may hold what no log can encode.
    trace = _encodable("".join(format_exception(cause)))
    logger.error("%s in %s: %s was raised%s\n%s", message, where, type(cause).__name__, more, trace.rstrip())


def traceback_text(error: BaseException) -> str:
    """The traceback of what was raised at first, from the first frame that is neither ours nor a wrapper's."""
    cause = cause_of(error)
    shown = TracebackException(type(cause), cause, _own_frames(cause.__traceback__), compact=True)
    text = _encodable("".join(shown.format()))
    if len(text) <= MAX_TRACEBACK:
        return text
    half = (MAX_TRACEBACK - len(_CUT)) // 2
    return f"{text[:half]}{_CUT}{text[-half:]}"


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _admitted(failure: _Failure) -> int | None:
    """How many of the same were left out before this one; None where it is to be left out itself."""
    now = time.monotonic()
    with _lock:
        count = _counts.get(failure)
        if count is None:
            while len(_counts) >= _REMEMBERED:
                del _counts[next(iter(_counts))]
            count = _counts[failure] = _Count(now)
        left_out = 0
        if now - count.since > WINDOW_S:
            left_out = count.left_out
            count.since, count.written, count.left_out = now, 0, 0
        if count.written >= PER_WINDOW:
            count.left_out += 1
            return None
        count.written += 1
        return left_out


def _failure(cause: BaseException, message: str) -> _Failure:
    trace = cause.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return _Failure(type(cause), "", 0, message)
    return _Failure(type(cause), trace.tb_frame.f_code.co_filename, trace.tb_lineno, message)


def _own_frames(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_next is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_LEADING):
            break
        trace = trace.tb_next
    return trace
