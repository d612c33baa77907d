"""The shell: one session over one transport, driven by the thread that calls.

It opens the connection, sends what the session wrote, hands the session what came back, and opens anew after a loss.
What may be said and what an answer means is the session's matter; bytes and deadlines are the transport's. Calls that
are awaited are ``async_shell.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote

from openenv_gym import messages
from openenv_gym.errors import (
    MessageTooLargeError,
    OpenEnvGymError,
    RequestTimeoutError,
    SessionLostError,
    SessionStateError,
)
from openenv_gym.session import Session, SessionState
from openenv_gym.transports.base import ConnectionSettings, Frame, Transport

__all__ = ["Connect", "Shell", "reason_of"]

_T = TypeVar("_T")
_CLOSED = "the connection was closed"

Connect = Callable[..., Transport]
"""``connect(base_url, settings, *, path, subprotocols) -> Transport``, as ``transports.blocking.connect``."""


class Shell:
    """A session to a server, opened on request and opened again.

    Args:
        base_url: the server's address, path prefix included.
        settings: timeouts, limits, headers, TLS, proxy.
        open_settings: how the environment is to be made; sent where the server speaks the subprotocol.
        connect: makes the transport. Default: a WebSocket on a blocking socket.
        subprotocols: what is offered in the handshake.
        session_id: a session that the server keeps already: it is attached to, and whoever does so answers for its
            having been reset.

    Attributes:
        silent: whether it is known that nothing has come that nobody asked for, so that the next request need not look.
    """

    def __init__(
        self,
        base_url: str,
        settings: ConnectionSettings,
        open_settings: messages.OpenSettings,
        *,
        connect: Connect | None = None,
        subprotocols: Sequence[str] = (messages.SUBPROTOCOL,),
        session_id: str | None = None,
    ) -> None:
        self.base_url = base_url
        self.settings = settings
        self.open_settings = open_settings
        self.opened: messages.Opened | None = None
        self.session = Session(extended=False)
        self.session.lose("it was not opened")
        self._connector = connect or _websocket
        self._subprotocols = subprotocols
        self._session_id = session_id
        self._transport: Transport = _NotOpened()
        # The call under way: taken by setdefault, which is atomic and which no interrupt can leave half done.
        self._calls: dict[str, tuple[int, object]] = {}
        self.silent = False

    def open(self) -> None:
        """Connect and make the environment.

        Raises:
            UnreachableError: no OpenEnv server answered.
            ServerError: the server could not make the environment (it is full, the factory failed …).
        """
        self.opened = None
        self._adopt(self._connect())
        if self.session.extended:
            try:
                self._note_opened(self.request(messages.Open, self.settings.reset_timeout_s, data=self.open_settings))
            except BaseException:
                self.abandon("the session could not be opened")
                raise

    def _connect(self) -> Transport:
        path = "/ws" if self._session_id is None else f"/ws?session_id={quote(self._session_id, safe='')}"
        return self._connector(self.base_url, self.settings, path=path, subprotocols=self._subprotocols)

    def _adopt(self, transport: Transport) -> None:
        """The connection is made."""
        self._transport = transport
        self.session = Session(extended=transport.subprotocol == messages.SUBPROTOCOL)
        if self._session_id is not None and not self.session.extended:
            self.session.state = SessionState.EPISODE

    def forget_episode(self) -> None:
        """Steps need a reset first, whatever is known of a kept session: what it was to do last may be done or not."""
        if self.session.state is SessionState.EPISODE:
            self.session.state = SessionState.OPEN

    def _note_opened(self, reply: messages.Reply) -> None:
        assert isinstance(reply, messages.OpenReply)
        self.opened = reply.data
        if self._session_id is not None:
            self.session.state = SessionState.EPISODE

    @property
    def alive(self) -> bool:
        """Whether the session goes on, as far as can be known without asking the server."""
        return self.session.state in {SessionState.OPEN, SessionState.EPISODE} and not self._transport.closed

    def reopen(self, base_url: str | None = None, settings: ConnectionSettings | None = None) -> None:
        """Leave the present connection, whatever its state, and open a fresh one with an environment of its own.

        Args:
            base_url: where the server is now; None: where it was.
            settings: how to reach it now; None: as before.
        """
        self.abandon("a new session was asked for")
        self.base_url = base_url or self.base_url
        self.settings = settings or self.settings
        self.open()

    def request(self, kind: type[messages.Message], timeout_s: float | None, **fields: Any) -> messages.Reply:
        """Make one request and wait for its answer, at most ``timeout_s`` seconds (None or 0: without a limit).

        Raises:
            RequestTimeoutError: no answer in time; the session is lost.
            SessionLostError: the session is, or was just, lost.
            SessionStateError: the request may not be made now.
            MessageTooLargeError: the request is above the limit (the session goes on), or the answer is (it is lost).
            ServerError: the server answered with an error frame.
        """
        return self._alone(self._ask, partial(self.session.request, kind, **fields), timeout_s, text=True)

    def request_packed(
        self, kind: type[messages.Message], timeout_s: float | None, build: Callable[[int], bytes]
    ) -> messages.Reply:
        """Make one request by a binary frame and wait for its answer; else as ``request``.

        Args:
            kind: the message that the frame stands for; see ``Session.packed``.
            timeout_s: seconds to wait for the answer.
            build: makes the frame of the request's id.
        """
        return self._alone(self._ask, partial(self.session.packed, kind, build), timeout_s, text=False)

    def begin(self, kind: type[messages.Message], **fields: Any) -> None:
        """Make one request and leave its answer to ``finish``; until then the session takes no other.

        Raises:
            SessionLostError, SessionStateError, MessageTooLargeError, RequestTimeoutError: as ``request``.
        """
        self._alone(self._say, partial(self.session.request, kind, **fields), text=True)

    def begin_packed(self, kind: type[messages.Message], build: Callable[[int], bytes]) -> None:
        """Make one request by a binary frame and leave its answer to ``finish``; see ``request_packed``."""
        self._alone(self._say, partial(self.session.packed, kind, build), text=False)

    def finish(self, timeout_s: float | None) -> messages.Reply:
        """The answer to what was begun; waits at most ``timeout_s`` seconds (None or 0: without a limit).

        Raises:
            SessionStateError: nothing was begun.
            RequestTimeoutError, SessionLostError, MessageTooLargeError, ServerError: as ``request``.
        """
        self.session.expect_pending()
        return self._alone(self._hear, timeout_s, begun=True)

    @property
    def in_flight(self) -> bool:
        """Whether a request was made whose answer was not taken."""
        return self.session.pending

    def answered(self) -> bool:
        """Whether ``finish`` would not wait: what was begun is answered, or the session is at its end."""
        if not self.in_flight:
            return not self.alive
        try:
            return self._transport.arrived or self._transport.closed
        except SessionStateError:
            raise
        except OpenEnvGymError as error:
            # finish() then tells of it.
            self.abandon(reason_of(error))
            return True

    @property
    def ready(self) -> bool:
        """Whether there may be an answer that no poll of ``fileno()`` would tell of; ``answered`` looks."""
        return self._transport.ready or self._transport.closed

    def fileno(self) -> int:
        """The descriptor to poll for an answer; -1 where there is none (any more)."""
        return self._transport.fileno()

    def _alone(self, work: Callable[..., _T], *arguments: Any, begun: bool = False, **keywords: Any) -> _T:
        """Do the work of one call while there is no other; ``begun``: it goes on with what was begun."""
        call = (threading.get_ident(), object())
        holder = self._calls.setdefault("call", call)
        if holder is not call:
            self._refuse(holder[0])
        parked = not begun and self.session.pending
        try:
            # Where a request was begun, the session refuses another, and goes on.
            return work(*arguments, **keywords)
        except BaseException as error:
            # Whatever leaves an answer on its way, or a result untold (a KeyboardInterrupt at any point), ends the
            # session: no later request may meet that answer.
            lost = self.session.pending or not self.alive or not isinstance(error, OpenEnvGymError)
            if lost and not parked:
                self.abandon(reason_of(error))
            raise
        finally:
            self._calls.pop("call", None)

    def _ask(self, frame: Callable[[], bytes], timeout_s: float | None, *, text: bool) -> messages.Reply:
        self._say(frame, text=text)
        return self._hear(timeout_s)

    def _say(self, build: Callable[[], bytes], *, text: bool) -> None:
        frame = build()
        silent, self.silent = self.silent, False
        if not (self.session.extended or silent) and self._transport.pending:
            # Without ids an answer too many would be taken for the next request's, and every later one likewise.
            early = self._transport.receive(self.settings.step_timeout_s or None)
            self.session.receive(early.payload, text=early.text, unasked=True)
        try:
            self._transport.send(frame, text=text)
        except MessageTooLargeError:
            if not self._transport.closed:
                self.session.withdraw()
            raise

    def _hear(self, timeout_s: float | None) -> messages.Reply:
        answer = self._transport.receive(timeout_s or None)
        return self.session.receive(answer.payload, text=answer.text)

    def _refuse(self, holder: int) -> NoReturn:
        """A call came while another is under way: of another thread, or of this one, which a signal interrupted."""
        if holder == threading.get_ident():
            self.abandon("a call was interrupted")
            self._calls.pop("call", None)
            raise SessionLostError(
                "the session is lost: a call was interrupted before it ended; reset() opens a new one",
                reason="a call was interrupted",
            )
        raise SessionStateError(
            "expected no call under way, but another thread's is: a session serves one call at a time",
            expected="no call under way",
            state=self.session.state.value,
        )

    def abandon(self, reason: str) -> None:
        """Give the session up, without a word to the server; the next call says why."""
        self.session.lose(reason)
        self._transport.close()

    def drop(self, reason: str) -> None:
        """Give the session up and wait for nothing, not even for the end of the connection; the next call says why."""
        self.session.lose(reason)
        self._transport.drop(reason)

    def begin_close(self) -> None:
        """Say goodbye and do not wait; where an answer is on its way, leave at once."""
        if self.in_flight:
            self.drop(_CLOSED)
        elif not self._transport.closed:
            with contextlib.suppress(ConnectionError, TimeoutError, RuntimeError):
                self._transport.send(self.session.request(messages.Close))

    def finish_close(self, timeout_s: float) -> None:
        """Close, after waiting so long for the server, which closes once the environments' places are free."""
        if not self._transport.closed and timeout_s > 0:
            with contextlib.suppress(ConnectionError, TimeoutError, RuntimeError):
                self._transport.receive(timeout_s)
        self.drop(_CLOSED)

    def close(self) -> None:
        """Say goodbye where that is still possible, and close the socket. May be called again."""
        if not self._transport.closed:
            with contextlib.suppress(ConnectionError, TimeoutError, RuntimeError):
                self._transport.send(self.session.request(messages.Close))
                # The server closes in its turn when the environment is closed and its place free for the next session.
                if self.settings.close_timeout_s:
                    self._transport.receive(self.settings.close_timeout_s)
        self.session.lose(_CLOSED)
        # Even where it is over already: a close that was interrupted may have left the socket.
        self._transport.close()


class _NotOpened:
    """Stands where no connection was made yet."""

    subprotocol: str | None = None
    closed = True
    pending = arrived = ready = False

    def fileno(self) -> int:
        return -1

    def send(self, payload: bytes, *, text: bool = True) -> None:  # noqa: ARG002 - as the interface wants
        raise _not_opened()

    def receive(self, timeout_s: float | None) -> Frame:  # noqa: ARG002 - as the interface wants
        raise _not_opened()

    def close(self) -> None:
        """Nothing."""

    def drop(self, reason: str) -> None:
        """Nothing."""


def _not_opened() -> SessionLostError:
    return SessionLostError("the session was not opened; reset() opens one", reason="it was not opened")


def reason_of(error: BaseException) -> str:
    """Why the session is lost, short enough to stand in a later error."""
    if isinstance(error, asyncio.CancelledError):
        return "the call was cancelled"
    if isinstance(error, RequestTimeoutError):
        return f"no answer within {error.timeout_s:g} s"
    return str(getattr(error, "reason", None) or error) or type(error).__name__


def _websocket(
    base_url: str, settings: ConnectionSettings, *, path: str = "/ws", subprotocols: Sequence[str] = ()
) -> Transport:
    # Here and not at the top: the WebSocket stack is heavy, and in-memory transports do without it.
    from openenv_gym.transports.blocking import connect  # noqa: PLC0415

    return connect(base_url, settings, path=path, subprotocols=subprotocols)
