"""Which sessions a full server ends to make room, and why a session that was kept is there no longer.

A client that was killed never ends what it kept over HTTP or ``/mcp``, so what has long been idle goes first. Not for
idleness on a server with room (``reaper.py``) nor for how a session ends (``sessions.py``).
"""

from __future__ import annotations

from collections.abc import Iterable

from openenv_gym_server.session import Session

__all__ = ["EVICTABLE_AFTER_S", "MAX_REMEMBERED", "EndedSessions", "making_room"]

EVICTABLE_AFTER_S = 300.0
"""How long a kept session is idle before a full server ends it for another; a client that thinks is left alone."""

MAX_REMEMBERED = 1_000
"""Sessions whose end is remembered; of those before, it is only said that they are unknown."""


def making_room(sessions: Iterable[Session], wanted: int) -> list[Session]:
    """The sessions whose end frees so many places, those first that have been idle longest; none if they are too few.

    Only sessions that are kept without a socket, and in which nothing runs.
    """
    chosen: list[Session] = []
    idle = [each for each in sessions if _may_go(each)]
    for session in sorted(idle, key=lambda each: each.active_at):
        if wanted <= 0:
            break
        chosen.append(session)
        wanted -= session.weight
    return chosen if wanted <= 0 else []


def _may_go(session: Session) -> bool:
    is_left = session.kind == "kept" and not session.attached and session.ending is None
    return is_left and session.idle_for(EVICTABLE_AFTER_S)


class EndedSessions:
    """Why the last of the kept sessions ended, for clients that come back to them.

    Example:
        >>> ended = EndedSessions()
        >>> ended.add("a", "it was closed")
        >>> ended.reason_of("a"), ended.reason_of("b")
        ('it was closed', None)
    """

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    def add(self, session_id: str, reason: str) -> None:
        """Remember one, in place of the oldest where there are many."""
        self._reasons[session_id] = reason
        if len(self._reasons) > MAX_REMEMBERED:
            del self._reasons[next(iter(self._reasons))]

    def reason_of(self, session_id: str) -> str | None:
        """Why that session ended; None where nothing is known of it."""
        return self._reasons.get(session_id)
