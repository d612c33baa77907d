"""What lies between one client and its server: the provider's lease, the session, and whose turn it is.

A link decides when to connect, when to connect anew, and what a close leaves behind. Its coroutines are loopless: under
an event loop they are awaited, under a synchronous client the calling thread drives them. Not for what a request's data
mean (``client.py``), nor for what may be said when (``session.py``).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from openenv_gym import messages
from openenv_gym.async_shell import AsyncShell
from openenv_gym.errors import CapacityError, SessionLostError, SessionStateError, SettingsError
from openenv_gym.line import Line, Place
from openenv_gym.loopless import blocking, off_the_loop, pause
from openenv_gym.providers.base import Lease
from openenv_gym.providers.foreign import AnyProvider, lease_of
from openenv_gym.transports.base import ConnectionSettings

__all__ = ["Link"]

_PAUSE_S = 0.1


class Link:
    """The way to one server, and one session there at a time.

    Args:
        base_url: the server's address; None: the provider gives it.
        provider: what to start first where there is no address, and to stop at the end.
        settings: how to connect.
        session_id: a kept session to attach to, instead of opening one.
    """

    def __init__(
        self,
        base_url: str | None,
        provider: AnyProvider | None,
        settings: ConnectionSettings,
        session_id: str | None,
    ) -> None:
        self.settings = settings
        self._given_url = base_url
        self._provider = provider
        self._session_id = session_id
        self._line = Line()
        self._lease: Lease | None = None
        self._shell: AsyncShell | None = None
        self._answered = False  # whether its server has answered anything yet
        self._closings = 0
        self._closed = False
        # A provider that runs already is to be stopped, also where nobody ever connects.
        self._owed = provider is not None and base_url is not None

    @property
    def base_url(self) -> str | None:
        """The server's address; None as long as a provider has not said it."""
        return self._given_url if self._lease is None else self._lease.base_url

    @property
    def headers(self) -> ConnectionSettings:
        """The settings with what the lease wants to be sent along."""
        return self.settings if self._lease is None else self.settings.with_headers(self._lease.headers)

    @property
    def opened(self) -> messages.Opened | None:
        """What the server said about the session's environment, where it speaks the subprotocol."""
        return None if self._shell is None else self._shell.opened

    @property
    def hired(self) -> bool:
        """Whether the provider, where there is one, was started for this link and not stopped since."""
        return self._lease is not None

    @property
    def connected(self) -> bool:
        """Whether there is a session, one that was lost included."""
        return self._shell is not None

    async def open(self) -> None:
        """Connect, unless there is a session that goes on."""
        closings = self._closings
        place = Place.here()
        try:
            await self._enter(place)
            if not self._goes_on:
                await self._reopen(closings)
        finally:
            self._line.leave(place)

    async def find(self) -> None:
        """See that there is a server: start the provider, where there is one and it was not started."""
        closings = self._closings
        place = Place.here()
        try:
            await self._enter(place)
            await self._hire(closings)
        finally:
            self._line.leave(place)

    async def address(self) -> tuple[str, ConnectionSettings]:
        """Where the server is and how to reach it, for who connects in another way; it is started as for a session."""
        await self.find()
        lease = self._lease
        if lease is None:
            raise SessionStateError("the client was closed while it connected", expected="open", state="closed")
        base_url = await off_the_loop(lease.renew, discard=_nothing) if lease.embedded else lease.base_url
        return base_url, self.settings.with_headers(lease.headers)

    async def ask(
        self, kind: type[messages.Message], timeout_s: float | None, *, connect: bool = False, **fields: Any
    ) -> messages.Reply:
        """Make one request in the present session.

        Args:
            kind: the request's type.
            timeout_s: seconds to wait for the answer; None or 0: no limit.
            connect: whether to connect first where nobody has yet.
            **fields: the request's fields.

        Raises:
            SessionStateError: there is no session.
            OpenEnvGymError: as ``Shell.request``.
        """
        closings = self._closings
        place = Place.here()
        try:
            try:
                await self._enter(place)
                if self._shell is None and connect and not self._closed:
                    await self._reopen(closings)
                return await self._request(self._present(), kind, timeout_s, fields)
            finally:
                self._line.leave(place)
        except BaseException:
            # Once more, for an interrupt may have come in the middle of the clean-up.
            self._line.leave(place)
            raise

    async def begin_episode(self, data: Callable[[bool], dict[str, Any]]) -> messages.Reply:
        """Reset, in a new session where the last one was lost.

        Args:
            data: gives reset's data, told whether the server speaks the subprotocol.
        """
        closings = self._closings
        place = Place.here()
        try:
            await self._enter(place)
            if self._shell is None:
                await self._reopen(closings)
                return await self._reset(data)
            answered = self._answered
            if self._goes_on or not (answered or self._closed):
                try:
                    # Without an answer yet, the end of a session has its reason still to be read: a full server's, say.
                    return await self._reset(data)
                except SessionLostError:
                    # It may have ended unnoticed since the last call. A reset asks for a fresh episode, so a fresh
                    # session will do; if that is lost too, there is more to it.
                    if closings != self._closings:
                        raise
            return await self._begin_anew(data, closings, patience_s=self.settings.close_timeout_s if answered else 0.0)
        finally:
            self._line.leave(place)

    async def _begin_anew(
        self, data: Callable[[bool], dict[str, Any]], closings: int, *, patience_s: float
    ) -> messages.Reply:
        """Reset in place of a lost session, whose place the server may need a moment to free."""
        deadline = time.monotonic() + patience_s
        while True:
            try:
                await self._reopen(closings)
                return await self._reset(data)
            except CapacityError:
                if closings != self._closings or time.monotonic() > deadline:
                    raise
            await pause(_PAUSE_S)

    def forget_episode(self) -> None:
        """The session goes on, but only a reset makes steps possible again."""
        if self._shell is not None:
            self._shell.forget_episode()

    async def disconnect(self) -> None:
        """End the session, under a call of another too, which then raises. Again: nothing."""
        self._closings += 1
        self._closed = True
        shell = self._shell
        if shell is None:
            return
        try:
            await (_blocking_close(shell) if blocking() else shell.aclose())
        except BaseException:
            shell.abandon("closing it was interrupted")
            raise
        finally:
            # Only now, so that a close that was interrupted on its way here can be finished by another.
            self._shell = None if self._shell is shell else self._shell

    async def close(self) -> None:
        """End the session and release the lease: what a provider started is stopped. May be repeated."""
        try:
            await self.disconnect()
        finally:
            if self._lease is None and self._owed and self._provider is not None:
                self._lease, self._owed = lease_of(self._provider, self._given_url), False
            lease = self._lease
            if lease is not None:
                await off_the_loop(lease.release, discard=_nothing)
                self._lease = None

    async def _reset(self, data: Callable[[bool], dict[str, Any]]) -> messages.Reply:
        shell = self._present()
        fields = {"data": data(shell.session.extended)}
        return await self._request(shell, messages.Reset, self.settings.reset_timeout_s, fields)

    async def _request(
        self, shell: AsyncShell, kind: type[messages.Message], timeout_s: float | None, fields: dict[str, Any]
    ) -> messages.Reply:
        if blocking():
            reply = shell.request(kind, timeout_s, **fields)
        else:
            reply = await shell.arequest(kind, timeout_s, **fields)
        self._answered = True
        return reply

    @property
    def _goes_on(self) -> bool:
        return self._shell is not None and self._shell.alive and not self._closed

    def _present(self) -> AsyncShell:
        if self._shell is None or self._closed:
            state = "closed" if self._closed else "new"
            raise SessionStateError(
                f"expected a session, but this client {'was closed' if self._closed else 'has not connected'}: call "
                "reset() first",
                expected="open",
                state=state,
            )
        return self._shell

    async def _reopen(self, closings: int) -> None:
        """Leave the old session, if any, and open a new one."""
        hired = self._lease is None
        # Lost, it stays the present one until it is replaced: every call says so until a reset succeeds.
        old = self._shell
        # An abandoned one is closed once and not twice: the call that a signal handler has interrupted here may go on.
        if old is not None and not old.abandoned:
            await (_blocking_close(old) if blocking() else old.aclose())
        await self._hire(closings)
        lease = self._lease
        assert lease is not None
        try:
            base_url = await off_the_loop(lease.renew, discard=_nothing) if lease.embedded else lease.base_url
            shell = AsyncShell(
                base_url,
                self.settings.with_headers(lease.headers),
                messages.OpenSettings(),
                session_id=self._session_id,
            )
            await (_blocking_open(shell) if blocking() else shell.aopen())
            if old is not None:
                shell.forget_episode()
            self._check_open(closings, lambda: shell.abandon("the client was closed while it connected"))
        except BaseException:
            if hired:
                await self._give_up()
            raise
        self._closed = False
        self._answered = shell.session.extended
        self._shell = shell

    async def _hire(self, closings: int) -> None:
        """Get an address, from the provider where there is one."""
        if self._lease is not None:
            return
        provider, base_url = self._provider, self._given_url
        if provider is None:
            if base_url is None:
                raise SettingsError("expected base_url or a provider, got neither", setting="base_url")
            self._lease = Lease(base_url)
            return
        lease = await off_the_loop(lambda: lease_of(provider, base_url), discard=lambda found: found.release())
        self._lease, self._owed = lease, False
        if closings != self._closings:
            await self._give_up()
        self._check_open(closings)

    async def _give_up(self) -> None:
        """The first connection failed, which is what the caller is told: undo what was begun for it."""
        lease, self._lease = self._lease, None
        if lease is not None:
            with contextlib.suppress(Exception):
                await off_the_loop(lease.release, discard=_nothing)

    def _check_open(self, closings: int, undo: Callable[[], None] = lambda: None) -> None:
        """Whether nobody has closed the client since."""
        if closings != self._closings:
            undo()
            raise SessionStateError(
                "the client was closed while it connected; connect() or reset() opens a new session",
                expected="open",
                state="closed",
            )

    async def _enter(self, place: Place) -> None:
        try:
            reason = self._line.enter(place) if blocking() else await self._line.enter_awaited(place)
        except SessionLostError as error:
            if self._shell is not None:
                self._shell.abandon(str(error.reason))
            raise
        if reason is not None and self._shell is not None:
            self._shell.abandon(reason)


async def _blocking_open(shell: AsyncShell) -> None:
    shell.open()


async def _blocking_close(shell: AsyncShell) -> None:
    shell.close()


def _nothing(_: object) -> None:
    """Nothing is left to undo."""
