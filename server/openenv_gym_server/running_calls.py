"""Which call of a tool runs, and whether anyone still waits for it: decided once between its thread and whoever waits.

A call that was given up has had its answer, reward included; when its tool ends at last, it is given none again. Not
for a call that has not begun (``tickets.py``) nor for what is said of one that was given up (``late_calls.py``).
"""

from __future__ import annotations

import threading

from openenv_gym.tools import CallToolAction

__all__ = ["RunningCalls"]


class RunningCalls:
    """The calls that run in one environment, each within the one before: code that is a tool calls others.

    Example:
        >>> calls, look = RunningCalls(), CallToolAction(tool_name="look")
        >>> calls.begin(look)
        >>> calls.give_up() is look
        True
        >>> calls.end(look)
        False
    """

    __slots__ = ("_actions", "_lock")

    def __init__(self) -> None:
        self._actions: list[CallToolAction] = []
        self._lock = threading.Lock()

    def begin(self, action: CallToolAction) -> None:
        """A call begins, on the environment's thread."""
        with self._lock:
            self._actions.append(action)

    def end(self, action: CallToolAction) -> bool:
        """The innermost call has ended; False where it was given up."""
        with self._lock:
            if not self._actions or self._actions[-1] is not action:
                return False
            del self._actions[-1]
            return True

    def give_up(self) -> CallToolAction | None:
        """Wait for none of them any more; the innermost, which is the one that takes so long, or None if all ended."""
        with self._lock:
            action = self._actions[-1] if self._actions else None
            self._actions.clear()
            return action
