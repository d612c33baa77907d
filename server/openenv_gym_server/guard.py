"""A second, tiny process beside a server that another process started, which ends it where it cannot end itself.

A server that is stopped, or stuck in C code that holds the interpreter, does not notice that its parent is gone. This
module imports nothing of weight: it forks before the server loads what it serves. Not for the ordinary end, which
``parent_line.py`` sees to.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import select
import signal
import time
from typing import Any

__all__ = ["main"]

GRACE_S = 2.0
"""Seconds a server has to close its environments after its parent's end."""

_POLL_S = 1.0
_FILES = 1024


def main(config: dict[str, Any]) -> None:
    """Start the guard, then the server, which takes the configuration.

    Args:
        config: ``server``, the module whose ``main`` serves, else the embedded server's; and what that takes.
    """
    _guard()
    # By its name, and now: it is heavy, and the guard must not carry it.
    importlib.import_module(config.get("server", "openenv_gym_server.embedded")).main(config, grace_s=GRACE_S)


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
        # A listening socket that the server was given would stay open for as long as it is open here.
        os.closerange(3, _FILES)
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
