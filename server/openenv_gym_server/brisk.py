"""An event loop that does not fall asleep while peers send again at once.

A loop that sleeps is woken in more time than a step of a classic environment takes, above all on a virtual machine.
Not for what a peer sends (``websocket_protocol.py``) nor for the client's side of it
(``openenv_gym.transports.busy_wait``).
"""

from __future__ import annotations

import asyncio
import time
from weakref import WeakKeyDictionary

from openenv_gym.transports.busy_wait import SEVERAL_CPUS, give_way

__all__ = ["Peer"]

AT_ONCE_S = 0.0003
"""What counts as at once, from one message to the next, and how long the loop stays awake for it."""


class Peer:
    """How quickly the peer of one connection answers; its loop is kept awake for one that answers at once.

    Args:
        loop: the loop of its connection.

    Example:
        >>> loop = asyncio.new_event_loop()
        >>> peer = Peer(loop)
        >>> peer.sent(), peer.heard()     # at once: the loop turns for a moment without sleeping
        (None, None)
        >>> loop.close()
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._awake = _awake.setdefault(loop, _Awake()) if SEVERAL_CPUS else None
        self._sent_at = 0.0
        self._at_once = False

    def sent(self) -> None:
        """A message has gone to the peer."""
        if self._awake is not None:
            self._sent_at = now = time.perf_counter()
            if self._at_once:
                self._awake.stay(self._loop, now)

    def heard(self) -> None:
        """Something has come from the peer."""
        if self._awake is not None:
            now = time.perf_counter()
            self._at_once = now - self._sent_at < AT_ONCE_S
            if self._at_once:
                self._awake.stay(self._loop, now)


class _Awake:
    """Has a loop turn without sleeping until a moment has passed; refers to no loop, which would then live for ever."""

    def __init__(self) -> None:
        self._until = 0.0
        self._turning = False

    def stay(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        self._until = now + AT_ONCE_S
        if not self._turning:
            self._turning = True
            loop.call_soon(self._turn, loop)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        if time.perf_counter() < self._until:
            give_way()
            loop.call_soon(self._turn, loop)
        else:
            self._turning = False


_awake: WeakKeyDictionary[asyncio.AbstractEventLoop, _Awake] = WeakKeyDictionary()
