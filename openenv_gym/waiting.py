"""Many sessions at once, in the thread that calls: waiting for the first answers, and closing them together.

Not for making requests nor for taking answers (``shell.py``), nor for sessions whose calls are awaited
(``async_shell.py``).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from openenv_gym.shell import Shell
from openenv_gym.transports.readiness import Watch

__all__ = ["Lookout", "close_all", "wait_any"]

_LONGEST_S = 0.25
"""A look at every session follows after so long: the keeper may have read an answer just before its socket was
polled."""

_NO_DESCRIPTOR = -1

_WITHOUT_DESCRIPTOR_S = 0.005
"""The same where a session is none that can be polled, as in memory."""


def wait_any(shells: Iterable[Shell], timeout_s: float | None) -> list[Shell]:
    """Wait until one of several sessions at least is answered.

    Args:
        shells: sessions, in each of which a request was begun.
        timeout_s: seconds to wait at most; None: without a limit; 0: only look.

    Returns:
        Those whose ``finish`` would not wait (answered, or at their end), in the given order; none where the time
        has run out or no session was given.

    Example:
        >>> for shell in shells:                                            # doctest: +SKIP
        ...     shell.begin(messages.Step, data=actions[shell])
        >>> first = wait_any(shells, timeout_s=60.0)                        # doctest: +SKIP
        >>> replies = {shell: shell.finish(60.0) for shell in first}        # doctest: +SKIP
    """
    waiting = list(shells)
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    watch, by_descriptor = _watched(waiting)
    longest_s = _LONGEST_S if len(by_descriptor) == len(waiting) else _WITHOUT_DESCRIPTOR_S
    found = {id(shell) for shell in waiting if shell.ready and shell.answered()}
    while waiting:
        left_s = longest_s if deadline is None else min(longest_s, max(0.0, deadline - time.monotonic()))
        told = [by_descriptor[descriptor] for descriptor in watch.readable(0 if found else left_s)]
        # Bytes that came may be less than an answer; where none came, one may have been read already.
        found |= {id(shell) for shell in told or waiting if id(shell) not in found and shell.answered()}
        if found or left_s <= 0:
            break
    return [shell for shell in waiting if id(shell) in found]


def _watched(shells: Iterable[Shell]) -> tuple[Watch, dict[int, Shell]]:
    """A watch of those that have a descriptor, and whose each is."""
    watch, by_descriptor = Watch(), {}
    for shell in shells:
        descriptor = shell.fileno()
        if descriptor != _NO_DESCRIPTOR:
            watch.add(descriptor)
            by_descriptor[descriptor] = shell
    return watch, by_descriptor


class Lookout:
    """One look at the same sessions, again and again; their sockets are registered once.

    Args:
        shells: the sessions, opened. One that is opened anew needs another lookout.
    """

    def __init__(self, shells: Sequence[Shell]) -> None:
        self._watch, by_descriptor = _watched(shells)
        descriptors = {id(shell): descriptor for descriptor, shell in by_descriptor.items()}
        self._sockets = [(shell, descriptors.get(id(shell), _NO_DESCRIPTOR)) for shell in shells]

    def note_silence(self, shells: Sequence[Shell]) -> None:
        """Tell those of whom nothing has come, so that their next requests look no more.

        Args:
            shells: some of the sessions, with nothing under way.
        """
        heard = frozenset(self.heard_of())
        for shell in shells:
            shell.silent = shell not in heard

    def heard_of(self) -> list[Shell]:
        """Those of whom something has come, be it a part of an answer or the end."""
        told = {_NO_DESCRIPTOR, *self._watch.readable(0)}
        return [shell for shell, descriptor in self._sockets if descriptor in told or shell.ready]


def close_all(shells: Sequence[Shell], timeout_s: float) -> None:
    """Close them all within so many seconds, whatever their servers do."""
    for shell in shells:
        shell.begin_close()
    until = time.monotonic() + timeout_s
    for shell in shells:
        shell.finish_close(until - time.monotonic())
