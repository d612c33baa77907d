"""The shell whose calls may be awaited: one session, driven by threads and by the tasks of any event loop.

Each call is its own: the connection belongs to no loop, so a session begun under one goes on under the next, and
without any. Not for the order of calls, which is its user's (``link.py``), nor for how waiting is done
(``transports/aio.py``).
"""

from __future__ import annotations

import contextlib
from typing import Any

from openenv_gym import messages
from openenv_gym.errors import MessageTooLargeError, OpenEnvGymError
from openenv_gym.loopless import in_thread
from openenv_gym.shell import Shell, reason_of
from openenv_gym.transports.aio import AsyncTransport, awaited
from openenv_gym.transports.base import Transport

__all__ = ["AsyncShell"]

_NO_THREAD = 0  # a task's call is nobody's interrupted one, whichever thread finds it


class AsyncShell(Shell):
    """A shell with a coroutine beside each of its calls; arguments as those of ``Shell``.

    A call that is cancelled ends the session, as one that is interrupted does: its answer may come late, and must not
    be taken for another's.

    Example:
        >>> shell = AsyncShell("http://127.0.0.1:8000", settings, messages.OpenSettings())  # doctest: +SKIP
        >>> await shell.aopen()                                                             # doctest: +SKIP
        >>> await shell.arequest(messages.Reset, 60.0)                                      # doctest: +SKIP
    """

    _awaited: AsyncTransport
    abandoned = False
    """Whether it was given up: its connection is closed, or will be by the call that was in flight."""

    async def aopen(self) -> None:
        """Connect, in a thread, and make the environment; as ``open``."""
        self.opened = None
        self._adopt(await in_thread(self._connect, discard=_close, daemon=True))
        if self.session.extended:
            try:
                timeout_s = self.settings.reset_timeout_s
                self._note_opened(await self.arequest(messages.Open, timeout_s, data=self.open_settings))
            except BaseException:
                self.abandon("the session could not be opened")
                raise

    async def arequest(self, kind: type[messages.Message], timeout_s: float | None, **fields: Any) -> messages.Reply:
        """Make one request and await its answer; as ``request``."""
        call = (_NO_THREAD, object())
        holder = self._calls.setdefault("call", call)
        if holder is not call:
            self._refuse(holder[0])
        try:
            return await self._aexchange(self.session.request(kind, **fields), timeout_s)
        except BaseException as error:
            if self.session.pending or not self.alive or not isinstance(error, OpenEnvGymError):
                self.abandon(reason_of(error))
            raise
        finally:
            self._calls.pop("call", None)

    async def _aexchange(self, frame: bytes, timeout_s: float | None) -> messages.Reply:
        if not self.session.extended and self._transport.pending:
            early = await self._awaited.receive(timeout_s or None)
            return self.session.receive(early.payload, text=early.text, unasked=True)
        try:
            await self._awaited.send(frame)
        except MessageTooLargeError:
            if not self._transport.closed:
                self.session.withdraw()
            raise
        answer = await self._awaited.receive(timeout_s or None)
        return self.session.receive(answer.payload, text=answer.text)

    def abandon(self, reason: str) -> None:
        """Give the session up without waiting for anything; the next call says why."""
        self.abandoned = True
        self.session.lose(reason)
        self._transport.drop(reason)
        # Of a call that will never end, its loop being closed, perhaps; whoever calls next is told of the loss.
        self._calls.pop("call", None)

    async def aclose(self) -> None:
        """Say goodbye where that is still possible, and close the socket; as ``close``."""
        try:
            if not self._transport.closed:
                with contextlib.suppress(ConnectionError, TimeoutError, RuntimeError):
                    await self._awaited.send(self.session.request(messages.Close))
                    if self.settings.close_timeout_s:
                        await self._awaited.receive(self.settings.close_timeout_s)
            self.session.lose("the connection was closed")
            await self._awaited.close()
        except BaseException:
            self.abandon("closing it was interrupted")
            raise

    def _adopt(self, transport: Transport) -> None:
        super()._adopt(transport)
        self._awaited = awaited(transport)


def _close(transport: Transport) -> None:
    transport.close()
