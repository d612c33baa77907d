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
from typing import Any, NoReturn
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
        call = (threading.get_ident(), object())
        holder = self._calls.setdefault("call", call)
        if holder is not call:
            self._refuse(holder[0])
        try:
            return self._exchange(self.session.request(kind, **fields), timeout_s)
        except BaseException as error:
            # Whatever leaves an answer on its way, or a result untold (a KeyboardInterrupt at any point), ends the
            # session: no later request may meet that answer.
            if self.session.pending or not self.alive or not isinstance(error, OpenEnvGymError):
                self.abandon(reason_of(error))
            raise
        finally:
            self._calls.pop("call", None)

    def _exchange(self, frame: bytes, timeout_s: float | None) -> messages.Reply:
        if not self.session.extended and self._transport.pending:
            # Without ids an answer too many would be taken for the next request's, and every later one likewise.
            early = self._transport.receive(timeout_s or None)
            return self.session.receive(early.payload, text=early.text, unasked=True)
        try:
            self._transport.send(frame)
        except MessageTooLargeError:
            if not self._transport.closed:
                self.session.withdraw()
            raise
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

    def close(self) -> None:
        """Say goodbye where that is still possible, and close the socket. May be called again."""
        if not self._transport.closed:
            with contextlib.suppress(ConnectionError, TimeoutError, RuntimeError):
                self._transport.send(self.session.request(messages.Close))
                # The server closes in its turn when the environment is closed and its place free for the next session.
                if self.settings.close_timeout_s:
                    self._transport.receive(self.settings.close_timeout_s)
        self.session.lose("the connection was closed")
        # Even where it is over already: a close that was interrupted may have left the socket.
        self._transport.close()


class _NotOpened:
    """Stands where no connection was made yet."""

    subprotocol: str | None = None
    closed = True
    pending = False

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
