"""Waiting for the answers of several sessions at once, each with its own deadline.

The requests are all on their way before anything here waits. Not for what is asked or what an answer means
(``vector_sessions.py``, ``vector_singles.py``).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, TypeVar

from openenv_gym.errors import RequestTimeoutError, VectorTimeoutError
from openenv_gym.shell import Shell
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.vector_rows import Row, Rows
from openenv_gym.waiting import Lookout, wait_any

__all__ = [
    "Answer",
    "Answering",
    "Deadline",
    "VectorTimeoutError",
    "answer_deadline",
    "arrived",
    "deadline_in",
    "finish_all",
    "finish_in_time",
    "finish_one",
]

_T = TypeVar("_T")

_SHORTEST_WAIT_S = 1e-3

Answer: TypeAlias = "Rows | Row"


class Answering(Protocol):
    """A session with a request under way.

    Attributes:
        shell: its connection.
    """

    shell: Shell

    @property
    def deadline(self) -> float | None:
        """When its answer must be there, on ``time.monotonic``'s clock; None: no limit."""
        ...

    def finish(self, timeout_s: float | None) -> Answer | None:
        """The answer; None where it made a further request necessary, which is under way now."""
        ...


class Deadline(float):
    """A moment on ``time.monotonic``'s clock that knows the limit it comes from.

    Attributes:
        timeout_s: the seconds that there were.
        limit: these, and what set them, for an error.
    """

    __slots__ = ("limit", "timeout_s")
    timeout_s: float
    limit: str

    @classmethod
    def of(cls, moment: float, timeout_s: float, limit: str) -> Deadline:
        """The deadline at that moment."""
        deadline = cls(moment)
        deadline.timeout_s, deadline.limit = timeout_s, limit
        return deadline

    def at(self, moment: float) -> Deadline:
        """The same limit, of something that was asked for at another time."""
        return Deadline.of(moment, self.timeout_s, self.limit)


def deadline_in(timeout_s: float | None, setting: str | None = None) -> Deadline | None:
    """The moment in so many seconds; None where there is no limit.

    Args:
        timeout_s: seconds.
        setting: the setting or argument that says so.
    """
    if timeout_s is None:
        return None
    return Deadline.of(time.monotonic() + timeout_s, timeout_s, _limit(timeout_s, setting))


@functools.lru_cache
def _limit(timeout_s: float, setting: str | None) -> str:
    return f"{timeout_s:g} s" if setting is None else f"{setting}={timeout_s:g} s"


def answer_deadline(settings: ConnectionSettings, *, reset: bool) -> Deadline | None:
    """When the answer to a reset, or to a step, that is asked for now must be there."""
    setting = "reset_timeout_s" if reset else "step_timeout_s"
    return deadline_in(getattr(settings, setting) or None, setting)


def finish_all(
    sessions: Sequence[Answering], until: float | None, lookout: Lookout | None = None, patience_s: float = 0.0
) -> list[Answer]:
    """Every session's answer, in the order of the sessions.

    Args:
        sessions: each with a request under way.
        until: when all must be there, besides their own deadlines; None: no further limit.
        lookout: has all of these sessions, and is asked who has answered where there is to be patience.
        patience_s: how long the last session's answer is waited for before the others are looked at. A server answers
            in the order it was asked, as a rule, so that this is woken once for all of them; a failure of another is
            told that much later at most.

    Raises:
        VectorTimeoutError: an answer is late.
        OpenEnvGymError: what the first session that fails raises; the others are left as they are.
    """
    if len(sessions) == 1:
        # Alone, it waits for itself, which takes one system call less.
        while (answer := finish_one(sessions[0], until)) is None:
            pass
        return [answer]
    answers: dict[int, Answer] = {}
    waiting = dict(enumerate(sessions))
    ready: list[int] = []
    if lookout is not None and patience_s:
        left_s = patience_s if until is None else min(patience_s, max(until - time.monotonic(), 0.0))
        wait_any([sessions[-1].shell], left_s)
        heard = frozenset(lookout.heard_of())
        ready = [place for place, session in waiting.items() if session.shell in heard]
    while waiting:
        # Once the time is over, each is late.
        for place in ready or _arrived(waiting, until) or list(waiting):
            answer = finish_one(waiting[place], until)
            if answer is not None:
                answers[place] = answer
                del waiting[place]
        ready = []
    return [answers[place] for place in range(len(sessions))]


def finish_one(session: Answering, until: float | None) -> Answer | None:
    """The session's answer, once it is there; None where it made a further request necessary.

    Raises:
        VectorTimeoutError: it is late.
        OpenEnvGymError: what it means, where that is an error.
    """
    deadline = session.deadline
    return finish_in_time(session.finish, deadline if until is None else _earlier(deadline, until))


def finish_in_time(finish: Callable[[float | None], _T], until: float | None) -> _T:
    """What ``finish`` gives, which takes the seconds to wait at most.

    Raises:
        VectorTimeoutError: it is late.
        OpenEnvGymError: what it means, where that is an error.
    """
    try:
        # A wait of 0 s would be one without a limit.
        return finish(None if until is None else max(until - time.monotonic(), _SHORTEST_WAIT_S))
    except RequestTimeoutError as error:
        if not isinstance(until, Deadline):
            raise VectorTimeoutError(str(error), timeout_s=error.timeout_s) from error
        # What was left of the time is no news to anybody.
        message = str(error).replace(f"{error.timeout_s:g} s", until.limit, 1)
        raise VectorTimeoutError(message, timeout_s=until.timeout_s) from error


def arrived(sessions: Sequence[Answering], until: float | None) -> list[Answering]:
    """The sessions that can be finished, after waiting for one; those that are late count. Empty: ``until`` passed."""
    return [sessions[place] for place in _arrived(dict(enumerate(sessions)), until)]


def _arrived(waiting: dict[int, Answering], until: float | None) -> list[int]:
    places = {id(session.shell): place for place, session in waiting.items()}
    deadlines = [session.deadline for session in waiting.values() if session.deadline is not None]
    moment = _earlier(min(deadlines, default=None), until)
    timeout_s = None if moment is None else max(moment - time.monotonic(), 0.0)
    ready = [places[id(shell)] for shell in wait_any([session.shell for session in waiting.values()], timeout_s)]
    if ready:
        return sorted(ready)
    now = time.monotonic()
    return [place for place, session in waiting.items() if session.deadline is not None and session.deadline <= now]


def _earlier(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
