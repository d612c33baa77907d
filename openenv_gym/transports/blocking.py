"""A WebSocket that the calling thread itself writes and reads.

A step costs no hand-over to another thread or loop: one ``send``, one wait, one ``recv``. What moves and what it means
for the connection is ``connection``; opening is ``opening``. Not for what a message means (``openenv_gym.session``).
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import TypeVar

from websockets.client import ClientProtocol

from openenv_gym.messages import SUBPROTOCOL
from openenv_gym.transports.base import ConnectionSettings, Frame, websocket_url
from openenv_gym.transports.busy_wait import BusyWait
from openenv_gym.transports.connection import Connection, Waits
from openenv_gym.transports.keeper import keeper
from openenv_gym.transports.opening import open_websocket
from openenv_gym.transports.turns import Turn

__all__ = ["BlockingTransport", "connect"]

_T = TypeVar("_T")


def connect(
    base_url: str,
    settings: ConnectionSettings,
    *,
    path: str = "/ws",
    subprotocols: Sequence[str] = (SUBPROTOCOL,),
) -> BlockingTransport:
    """Open a WebSocket at ``path`` below ``base_url``.

    Raises:
        UnreachableError: no WebSocket there within ``connect_timeout_s``; the message says what to check.
        SettingsError: an address, a certificate's file or a proxy that cannot be used.
    """
    sock, protocol, early = open_websocket(websocket_url(base_url, path), settings, subprotocols)
    try:
        transport = BlockingTransport(sock, protocol, settings, early)
        if not transport.closed:
            keeper.add(transport)
    except BaseException:
        sock.close()
        raise
    return transport


class BlockingTransport(Connection):
    """An open WebSocket; made by ``connect()``.

    Calls may come from any thread, one at a time. ``close()`` may come at any time: in the middle of another
    call, of whatever thread, it cuts the connection, and that call raises ``SessionLostError``.

    A signal handler may raise at any point of any call: its exception comes out, the transport is lost, nothing waits
    for ever, and ``close()`` closes the socket.

    Args:
        sock: the connected socket; the transport owns it.
        protocol: the protocol of this connection, its handshake done.
        settings: limits and timeouts.

    Example:
        >>> transport = connect("http://127.0.0.1:8000", ConnectionSettings())      # doctest: +SKIP
        >>> transport.send(b'{"type":"state"}')                                     # doctest: +SKIP
        >>> transport.receive(timeout_s=60.0).text                                  # doctest: +SKIP
        True
    """

    def __init__(
        self, sock: socket.socket, protocol: ClientProtocol, settings: ConnectionSettings, early: bytes = b""
    ) -> None:
        super().__init__(sock, protocol, settings, early)
        # Servers of others take long enough for a step that sleeping costs little beside it.
        self._of_ours = self.subprotocol == SUBPROTOCOL
        self._busy_wait = BusyWait(self._stream.wait, settings.busy_wait_s if self._of_ours else 0.0)

    @property
    def pending(self) -> bool:
        """Whether a message has arrived that no ``receive()`` has taken; see ``Transport.pending``."""
        return self._in_turn("pending", self.look_for_any)

    @property
    def arrived(self) -> bool:
        """Whether ``receive()`` would give a whole message at once; see ``Transport.arrived``."""
        return self._in_turn("arrived", self.look)

    @property
    def ready(self) -> bool:
        """Whether something may be there that no poll would tell of, a part included; see ``Transport.ready``."""
        return bool(self._inbox) or self.unread or self._framing.partial

    def send(self, payload: bytes, *, text: bool = True) -> None:
        """Send one message; see ``Transport.send``."""
        self.check_size(payload)
        self._in_turn("send", self._send, payload, text)

    def receive(self, timeout_s: float | None) -> Frame:
        """Wait for the next message; see ``Transport.receive``."""
        return self._in_turn("receive", self._receive, timeout_s)

    def close(self) -> None:
        """Close with the closing handshake, waiting at most ``close_timeout_s``; see ``Transport.close``."""
        turn = Turn()
        try:
            try:
                if self.take(turn):
                    self._close_both_ways()
                else:
                    self.cut(turn)
            finally:
                self.leave(turn)
        except BaseException:
            self.leave(turn)
            self.note_loss("closing it was interrupted")
            raise

    def _in_turn(self, name: str, work: Callable[..., _T], *arguments: object) -> _T:
        """Do the work of one call, and see that whatever ends it early ends the connection."""
        turn = Turn()
        try:
            try:
                if self.take(turn):
                    return work(*arguments)
            except BaseException:
                self.fail(turn, name)
                raise
            finally:
                self._turns.give_back(turn)
        except BaseException:
            # Once more, for an interrupt may have come between the work and this, or in the middle of the clean-up.
            self.leave(turn)
            self.note_loss(f"{name}() was interrupted")
            raise
        raise self.refusal(name)

    def _send(self, payload: bytes, text: bool) -> None:
        if not self.begin_sending(payload, text):
            self._drive(self.end_sending())

    def _receive(self, timeout_s: float | None) -> Frame:
        # A session of many on such a server is asked for its answer once that is there.
        if not (self._inbox or (not self._of_ours and self.look())):
            self._drive(self.receiving(timeout_s))
        return self._inbox.popleft()

    def _close_both_ways(self) -> None:
        try:
            self._drive(self.saying_goodbye())
        finally:
            self.end("this client closed it")

    def _drive(self, waits: Waits) -> None:
        """Wait, in this thread, as a call needs it."""
        for left in waits:
            self._busy_wait(left)
