"""A server process's line to the parent that started it: when the parent is gone, the process ends.

However a parent dies, its end of the line, the child's standard input, closes. For what is stuck and cannot end itself
there is ``guard.py``.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time

import uvicorn

__all__ = ["ParentLine"]

_PARENT_POLL_S = 1.0


class ParentLine:
    """Watches standard input, from before the target is imported, and ends this process after the parent's end.

    Args:
        parent: the parent's process id.
        grace_s: seconds a server has to end gently.

    Example:
        A process that was started with a pipe as its standard input, by a parent that holds the other end::

            line = ParentLine(parent, grace_s=2.0)
            server = uvicorn.Server(config)
            line.ends(server)
            server.run()
    """

    def __init__(self, parent: int, grace_s: float) -> None:
        self._parent = parent
        self._grace_s = grace_s
        self._server: uvicorn.Server | None = None
        self._ended = threading.Event()
        threading.Thread(target=self._read, name="openenv-gym-line", daemon=True).start()
        threading.Thread(target=self._watch, name="openenv-gym-parent", daemon=True).start()

    def ends(self, server: uvicorn.Server) -> None:
        """From now on end this server gently first."""
        self._server = server

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while os.read(0, 1024):
                pass
        self._ended.set()

    def _watch(self) -> None:
        # A forked sibling can hold the line open beyond the parent's death; the parent's id cannot be held.
        while not self._ended.wait(_PARENT_POLL_S) and os.getppid() == self._parent:
            pass
        if self._server is not None:
            self._server.should_exit = True
            # An environment's thread may never end, and would keep this process from ending.
            time.sleep(self._grace_s + 1.0)
        os._exit(1)
