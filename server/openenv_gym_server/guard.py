"""A second, tiny process beside an embedded server, which ends it where it cannot end itself.

A server that is stopped, or stuck in C code that holds the interpreter, does not notice that its parent is gone. This
module imports nothing of weight: it forks before the server loads what it serves. Not for the ordinary end, which
``embedded.py`` sees to.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from typing import Any

__all__ = ["main"]

GRACE_S = 2.0
"""Seconds an embedded server has to close its environments after its parent's end."""

_POLL_S = 1.0


def main(config: dict[str, Any]) -> None:
    """Start the guard, then the embedded server, which takes the configuration."""
    _guard()
    from openenv_gym_server import embedded  # noqa: PLC0415  (heavy: the guard must not carry it)

    embedded.main(config, grace_s=GRACE_S)


def _guard() -> None:
    """Fork the guard; where there is no fork, there is none."""
    if not hasattr(os, "fork"):
        return
    server = os.getpid()
    if os.fork():
        return
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        _outlive_the_line(server)
    os._exit(0)


def _outlive_the_line(server: int) -> None:
    """Wait for the line's end, and for the server's own; kill it where the second does not follow from the first."""
    while os.getppid() == server:
        if select.select([0], [], [], _POLL_S)[0] and not os.read(0, 1024):
            break
    deadline = time.monotonic() + 2 * (GRACE_S + 1.0)
    while os.getppid() == server and time.monotonic() < deadline:
        time.sleep(0.1)
    if os.getppid() == server:
        os.kill(server, signal.SIGKILL)
