"""What a process does that is a server and nothing else. Not for apps that run in somebody else's process."""

from __future__ import annotations

import contextlib
import ctypes
import gc

__all__ = ["collect_rarely"]

_THRESHOLDS = (100_000, 50, 50)


def collect_rarely() -> None:
    """Have the garbage collector run seldom, and never over what is loaded already, whose leavings are given back.

    A frame as JSON is tens of thousands of lists for one moment. With Python's default thresholds a server spends
    three quarters of the time of such a step on collections that find nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    with contextlib.suppress(OSError, TypeError, AttributeError):  # glibc alone has it
        ctypes.CDLL(None).malloc_trim(0)
