"""Waiting for answers that come at once, without falling asleep for them.

To fall asleep and be woken takes a thread longer than a server close by takes for a step of a classic environment,
above all on a virtual machine. So whoever was answered at once asks again and again for a moment before it sleeps, and
lets others run in between. Not for many sockets at a time (``openenv_gym.waiting``).
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["AT_ONCE_S", "SEVERAL_CPUS", "BusyWait", "give_way", "usable_cpus"]

AT_ONCE_S = 0.0006
"""What counts as at once, and how long is asked for it."""


def usable_cpus(quota_file: str = "/sys/fs/cgroup/cpu.max") -> float:
    """How many processors this process may use, of the machine's, by its affinity and its container's limit.

    Args:
        quota_file: where Linux tells the limit, as microseconds of time in microseconds, or ``max``.
    """
    # The type checker knows the one system that it runs on.
    affinity: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    cpus = float(len(affinity(0)) if affinity is not None else os.cpu_count() or 1)
    try:
        quota, period = Path(quota_file).read_text(encoding="ascii").split()
        return min(cpus, int(quota) / int(period))
    except (OSError, ValueError):  # no such limit, or "max"
        return cpus


SEVERAL_CPUS = usable_cpus() > 1
"""Whether somebody else can get on while one process asks."""

give_way: Callable[[], None] = getattr(os, "sched_yield", functools.partial(time.sleep, 0))
"""Let another thread have this one's processor, if one wants it."""


class BusyWait:
    """A wait that does not sleep as long as the waits before it were short.

    Args:
        wait: waits at most so many seconds, or for ever where it is None; False if in vain.
        at_once_s: the longest wait that counts as short; 0 never asks.

    Example:
        >>> import threading
        >>> event = threading.Event()
        >>> event.set()
        >>> BusyWait(event.wait)(1.0)
        True
    """

    def __init__(self, wait: Callable[[float | None], bool], at_once_s: float = AT_ONCE_S) -> None:
        self._wait = wait
        self._at_once_s = at_once_s if SEVERAL_CPUS else 0.0
        self._short = False

    def __call__(self, timeout_s: float | None) -> bool:
        """Wait; False after ``timeout_s`` seconds."""
        begun = time.perf_counter()
        came = self._asked(begun, timeout_s) or self._wait(timeout_s)
        self._short = time.perf_counter() - begun < self._at_once_s
        return came

    def _asked(self, begun: float, timeout_s: float | None) -> bool:
        """Whether it came while it was asked for, which ends before the wait that is due."""
        if not self._short or (timeout_s is not None and timeout_s <= self._at_once_s):
            return False
        until = begun + self._at_once_s
        while not self._wait(0):
            if time.perf_counter() > until:
                return False
            give_way()
        return True
