"""A connection whose calls are awaited.

The connection is the same that a thread may drive (``blocking``); only the waiting differs: a call has the event loop
that runs it watch the socket, and no loop watches one for which no call waits. So the connection belongs to no loop:
the next call may come under another, or under none, and between two calls the ``keeper`` answers pings as ever. Where a
transport has no socket to watch, or a loop cannot watch one, a thread waits in its place. Not for opening
(``opening``).
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from openenv_gym.loopless import in_thread
from openenv_gym.transports.base import Frame, Transport
from openenv_gym.transports.connection import Connection, Waits
from openenv_gym.transports.turns import Turn

__all__ = ["AsyncTransport", "SocketCalls", "ThreadCalls", "awaited"]

_T = TypeVar("_T")

_READS_A_TURN = 4  # of a call whose answer keeps coming, between which the loop's other tasks have theirs
_A_WHILE_S = 0.2  # after which a waiting thread looks whether anybody still waits for it


class AsyncTransport(Protocol):
    """The calls of a ``Transport``, awaited; a cancelled one ends the connection at once."""

    async def send(self, payload: bytes, *, text: bool = True) -> None:
        """Send one message; see ``Transport.send``."""

    async def receive(self, timeout_s: float | None) -> Frame:
        """Await the next message; see ``Transport.receive``."""
        ...

    async def close(self) -> None:
        """Close with the closing handshake; see ``Transport.close``."""


def awaited(transport: Transport) -> AsyncTransport:
    """The transport's calls for tasks."""
    return SocketCalls(transport) if isinstance(transport, Connection) else ThreadCalls(transport)


class SocketCalls:
    """Awaited calls of a connection on a socket.

    Args:
        connection: the connection; calls of threads and tasks may alternate.

    Example:
        >>> calls = SocketCalls(connect("http://127.0.0.1:8000", ConnectionSettings()))  # doctest: +SKIP
        >>> await calls.send(b'{"type":"state"}')                                        # doctest: +SKIP
        >>> (await calls.receive(timeout_s=60.0)).text                                   # doctest: +SKIP
        True
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._watch: _Watch | None = None

    async def send(self, payload: bytes, *, text: bool = True) -> None:
        """Send one message; see ``Transport.send``."""
        connection, turn = self._connection, Turn(loop=asyncio.get_running_loop())
        connection.check_size(payload)
        try:
            self._begin(turn, "send")
            await self._drive(connection.sending(payload, text))
        except BaseException:
            connection.fail(turn, "send")
            raise
        finally:
            connection.leave(turn)

    async def receive(self, timeout_s: float | None) -> Frame:
        """Await the next message; see ``Transport.receive``."""
        connection, turn = self._connection, Turn(loop=asyncio.get_running_loop())
        try:
            self._begin(turn, "receive")
            await self._drive(connection.receiving(timeout_s))
            return connection.message()
        except BaseException:
            connection.fail(turn, "receive")
            raise
        finally:
            connection.leave(turn)

    async def close(self) -> None:
        """Close with the closing handshake, or cut the connection under another call; see ``Transport.close``."""
        connection, turn = self._connection, Turn(loop=asyncio.get_running_loop())
        if not connection.take(turn):
            connection.cut(turn)
            return
        try:
            await self._drive(connection.saying_goodbye())
        finally:
            if self._watch is not None and self._watch.loop is turn.loop:
                self._watch.end()
            connection.end("this client closed it")
            connection.leave(turn)

    def _begin(self, turn: Turn, name: str) -> None:
        if not self._connection.take(turn):
            raise self._connection.refusal(name)

    async def _drive(self, waits: Waits) -> None:
        """Wait, in this task, as a call needs it."""
        for step, left in enumerate(waits, 1):
            if self._connection.unread:
                if step % _READS_A_TURN == 0:
                    await asyncio.sleep(0)
                continue
            if self._connection.writing:
                await self._writable(left)
            elif await self._read_on(waits, left):
                return

    async def _read_on(self, waits: Waits, timeout_s: float | None) -> bool:
        """Go on with the waits whenever the socket can be read; False where they have not ended in time."""
        loop, watch = asyncio.get_running_loop(), self._watch
        if watch is None or watch.over or watch.loop is not loop:
            try:
                # That of another loop, if any, ends by itself there, and nobody else may touch it.
                watch = self._watch = _Watch(self._connection, loop)
            except NotImplementedError:
                await self._watch_in_thread(timeout_s)
                return False
        return await watch.read_on(waits, timeout_s)

    async def _writable(self, timeout_s: float | None) -> None:
        """Await that the socket can be written or read, so long at most."""
        loop, descriptor = asyncio.get_running_loop(), self._connection.fileno()
        if self._watch is not None and self._watch.loop is loop:
            self._watch.end()
        waiter: asyncio.Future[bool] = loop.create_future()
        try:
            loop.add_reader(descriptor, _settle, waiter)
        except NotImplementedError:
            await self._watch_in_thread(timeout_s)
            return
        timer = None if timeout_s is None else loop.call_later(timeout_s, _settle, waiter)
        try:
            loop.add_writer(descriptor, _settle, waiter)
            await waiter
        finally:
            if timer is not None:
                timer.cancel()
            # A task that outlived its loop ends here too, when it is collected.
            if not loop.is_closed():
                loop.remove_reader(descriptor)
                loop.remove_writer(descriptor)

    async def _watch_in_thread(self, timeout_s: float | None) -> None:
        left_alone = threading.Event()

        def watch() -> None:
            deadline = None if timeout_s is None else time.monotonic() + timeout_s
            while not left_alone.is_set():
                left = _A_WHILE_S if deadline is None else min(deadline - time.monotonic(), _A_WHILE_S)
                if left <= 0 or self._connection.wait(left):
                    return

        try:
            await in_thread(watch, discard=_nothing, daemon=True)
        finally:
            left_alone.set()


class _Watch:
    """A connection's socket among those that one event loop watches, for calls that follow one another.

    Telling the loop of a socket, and then of its end, costs as much as the rest of a wait, so the socket stays there
    until the loop has come round once and finds no other call waiting. Meanwhile the descriptor is held: it may be cut,
    but not become that of another socket. Only the loop's own thread comes here.
    """

    def __init__(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.over = False
        self._connection = connection
        self._descriptor = connection.fileno()
        self._waiter: asyncio.Future[bool] | None = None
        self._waits: Waits = iter(())
        self._ending = False
        self._deadline = math.inf
        self._timer: asyncio.TimerHandle | None = None
        loop.add_reader(self._descriptor, self._go_on)
        connection.hold(self, lambda: not loop.is_closed())

    async def read_on(self, waits: Waits, timeout_s: float | None) -> bool:
        """See ``SocketCalls``."""
        waiter: asyncio.Future[bool] = self.loop.create_future()
        self._waiter, self._waits = waiter, waits
        self._deadline = math.inf if timeout_s is None else self.loop.time() + timeout_s
        if timeout_s is not None and (self._timer is None or self._timer.when() > self._deadline):
            self._set_timer()
        try:
            ended = await waiter
        except BaseException:
            self.end()
            raise
        finally:
            self._waiter = None
        if not self._ending:
            self._ending = True
            self.loop.call_soon(self._end_unless_waiting)
        return ended

    def end(self) -> None:
        """Watch no longer. Again: nothing."""
        if not self.over:
            self.over = True
            if self._timer is not None:
                self._timer.cancel()
            # A task that outlived its loop ends here too, when it is collected.
            if not self.loop.is_closed():
                self.loop.remove_reader(self._descriptor)
            self._connection.let_go(self)

    def _set_timer(self) -> None:
        """One timer serves call after call: each sets it only where it would come too late."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(self._deadline, self._look_at_clock)

    def _look_at_clock(self) -> None:
        self._timer = None
        if self._waiter is None or self._deadline == math.inf:
            return
        if self.loop.time() < self._deadline:
            self._set_timer()
        else:
            _settle(self._waiter)

    def _end_unless_waiting(self) -> None:
        self._ending = False
        if self._waiter is None:
            self.end()

    def _go_on(self) -> None:
        """Read here and not in the task, which so wakes once, with its message."""
        waiter = self._waiter
        if waiter is None or waiter.done():
            return
        try:
            for step, _ in enumerate(self._waits, 1):
                if not self._connection.unread:
                    break
                if step == _READS_A_TURN:
                    # No poll would tell of the rest.
                    self.loop.call_soon(self._go_on)
                    break
            else:
                waiter.set_result(True)
                return
        except BaseException as error:  # noqa: BLE001 - it is the task's, whatever it is
            waiter.set_exception(error)
            return
        if self._connection.writing:
            waiter.set_result(False)


class ThreadCalls:
    """Awaited calls of any transport, each in a thread of its own.

    Args:
        transport: the transport; a call that is cancelled drops it.

    Example:
        >>> from openenv_gym.transports.memory import memory_pair
        >>> client, server = memory_pair(lambda frame: frame.payload.upper())
        >>> async def shout() -> bytes:
        ...     calls = ThreadCalls(client)
        ...     await calls.send(b"hello")
        ...     return (await calls.receive(1.0)).payload
        >>> asyncio.run(shout())
        b'HELLO'
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def send(self, payload: bytes, *, text: bool = True) -> None:
        """Send one message; see ``Transport.send``."""
        await self._call(lambda: self._transport.send(payload, text=text))

    async def receive(self, timeout_s: float | None) -> Frame:
        """Await the next message; see ``Transport.receive``."""
        return await self._call(lambda: self._transport.receive(timeout_s))

    async def close(self) -> None:
        """Close; see ``Transport.close``."""
        await self._call(self._transport.close)

    async def _call(self, call: Callable[[], _T]) -> _T:
        try:
            return await in_thread(call, discard=_nothing, daemon=True)
        except asyncio.CancelledError:
            self._transport.drop("a call was cancelled")
            raise


def _settle(waiter: asyncio.Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)


def _nothing(_: object) -> None:
    """Nothing is left to undo."""
