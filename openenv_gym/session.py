"""One client session, without I/O: what may be said next, and what an answer means.

``Session.request`` turns a request into the text of a frame (``Session.packed``: into a binary one),
``Session.receive`` gives the answering frame its meaning; what an error frame says is ``session_refusals.py``. Bytes
go in and come out; sockets, threads, clocks and reconnecting belong to ``shell.py`` and
``transports/``, values to ``spaces/``.

The rule this module exists for: a request and its answer are paired. Whatever breaks the pairing (a timeout, a lost
socket, an answer of another kind) breaks the session, and a broken session says so on every call until a new one is
made. A late answer is never taken for another's, and a step never reaches an environment that was not reset.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from openenv_gym import frames, json_text, messages
from openenv_gym.errors import (
    CapacityError,
    EnvironmentFactoryError,
    ProtocolError,
    ServerError,
    SessionLostError,
    SessionStateError,
)
from openenv_gym.session_refusals import execution_error, name_of, refusal, tag_of, with_advice

__all__ = ["Session", "SessionState"]


class SessionState(enum.Enum):
    """Where a session stands."""

    NEW = "new"
    """Connected under the subprotocol; the environment is made by ``x-open``, which must come first."""
    OPEN = "open"
    """The environment exists, but no episode has begun: only a reset makes steps possible."""
    EPISODE = "episode"
    """A reset was answered. Steps may be taken, after the end too: what that means, the environment says."""
    BROKEN = "broken"
    """The pairing of requests and answers is lost, and the episode with it. Nothing may be said any more."""
    CLOSED = "closed"
    """Closed by us. Nothing may be said any more."""


_ALIVE = (SessionState.OPEN, SessionState.EPISODE)
_ALLOWED: dict[type[messages.Message], tuple[SessionState, ...]] = {
    messages.Open: (SessionState.NEW,),
    messages.Reset: _ALIVE,
    messages.Step: (SessionState.EPISODE,),
    messages.State: _ALIVE,
    messages.Mcp: _ALIVE,
    messages.Render: _ALIVE,
    messages.Call: _ALIVE,
    messages.GetAttr: _ALIVE,
    messages.SetAttr: _ALIVE,
    messages.VectorReset: _ALIVE,
    messages.VectorStep: (SessionState.EPISODE,),
    messages.Close: (SessionState.NEW, *_ALIVE),
}
_ANSWER: dict[type[messages.Message], type[messages.Message]] = {
    messages.Open: messages.OpenReply,
    messages.Reset: messages.ObservationReply,
    messages.Step: messages.ObservationReply,
    messages.State: messages.StateReply,
    messages.Mcp: messages.McpReply,
    messages.Render: messages.RenderReply,
    messages.Call: messages.CallReply,
    messages.GetAttr: messages.GetAttrReply,
    messages.SetAttr: messages.SetAttrReply,
    messages.VectorReset: messages.VectorReply,
    messages.VectorStep: messages.VectorReply,
}
_BEGINS_EPISODE = frozenset({messages.Reset, messages.VectorReset})
_Kind = type[messages.Message]


class _Pending(NamedTuple):
    """The request that awaits its answer."""

    kind: _Kind
    id: messages.RequestId
    packed: bool = False


class Session:
    """The state machine of one session.

    Args:
        extended: whether both ends agreed on the subprotocol ``openenv-gym.v1``: requests then carry an ``id`` that the
            answer must repeat, and the ``x-`` requests exist.

    Example:
        >>> session = Session(extended=False)
        >>> session.request(messages.Reset, data={"seed": 7})
        b'{"type":"reset","data":{"seed":7}}'
        >>> reply = session.receive(b'{"type":"observation","data":{"observation":{"text":"hi"}}}')
        >>> reply.data.observation, session.state
        ({'text': 'hi'}, <SessionState.EPISODE: 'episode'>)
    """

    def __init__(self, *, extended: bool) -> None:
        self.extended = extended
        self.state = SessionState.NEW if extended else SessionState.OPEN
        self._binary = False
        self._pending: _Pending | None = None
        self._last_id = 0
        self._reason = ""

    def request(self, kind: type[messages.Message], **fields: Any) -> bytes:
        """The frame of a request, which is from now on the one whose answer is awaited.

        Args:
            kind: one of the request types of ``messages``.
            **fields: the fields of that type, ``id`` excepted.

        Raises:
            SessionLostError: the session is broken.
            SessionStateError: the request may not be made now, another awaits its answer, or the peer does not speak
                the subprotocol that the request belongs to.
            ValueMappingError: a field has no JSON form, or keys that are one in JSON. Nothing is pending then.
        """
        self._require(kind)
        json_text.require_distinct_keys(fields.get("data"), "$.data")
        if self.extended:
            fields["id"] = self._last_id + 1
        request = kind(**fields)
        frame = json_text.encode_json(request)
        self._last_id += 1
        if kind is messages.Close:
            self.state = SessionState.CLOSED
        else:
            self._pending = _Pending(kind, request.id)
        return frame

    def packed(self, kind: type[messages.Message], build: Callable[[int], bytes]) -> bytes:
        """The binary frame of a reset or step, which is from now on the request whose answer is awaited.

        Args:
            kind: ``Reset``, ``Step``, ``VectorReset`` or ``VectorStep`` of ``messages``: what the frame stands for.
            build: makes the frame (``frames.write_frame``) of the request's id.

        Raises:
            SessionLostError, SessionStateError: as ``request``; or the server takes no binary frames here.
            ValueMappingError: whatever ``build`` raises comes out. Nothing is pending then.
        """
        self._require(kind)
        if not self._binary:
            raise SessionStateError(
                f"a binary {name_of(kind)} needs a server that said so in its answer to x-open; "
                "this one did not: send the message as text",
                expected="a session with binary frames",
                state=self.state.value,
            )
        frame = build(self._last_id + 1)
        self._last_id += 1
        self._pending = _Pending(kind, self._last_id, packed=True)
        return frame

    def receive(self, payload: bytes, *, text: bool = True, unasked: bool = False) -> messages.Reply:
        """The meaning of the frame that answers the pending request.

        Args:
            payload: the frame's content.
            text: whether it was a text frame.
            unasked: whether it came before the request was sent: only an error may, of a server that is full, say.

        Raises:
            InvalidActionError: the server refused the request; the environment is as it was and the session goes on.
            EnvironmentExecutionError: the environment raised; the session goes on, but not where it is of several
                environments and ``env_index`` says which.
            CapacityError, EnvironmentFactoryError: there is no environment; the session is broken.
            ServerError: any other code of the server's.
            SessionLostError: the server ended the session, or it was given up meanwhile.
            ProtocolError: the frame answers nothing, or something else; the session is broken.
        """
        pending = self._awaiting(payload)
        reply: messages.Reply
        if not text:
            reply = self._unpack(pending, payload)
        else:
            try:
                reply = messages.decode_reply(payload)
            except ProtocolError as error:
                self.lose(str(error))
                raise
        # A server may fail before it has read the request at all (it is full, say): such a frame carries no id.
        if reply.id != pending.id and not (isinstance(reply, messages.ErrorReply) and reply.id is None):
            self._break(f"expected the answer to request {pending.id!r}, got that to {reply.id!r}", payload)
        if isinstance(reply, messages.ErrorReply):
            self._fail(pending.kind, reply.data)
        if unasked:
            self._break(f"expected silence, got a {tag_of(type(reply))!r} frame that nobody asked for", payload)
        if text and (pending.packed or type(reply) is not _ANSWER[pending.kind]):
            self._break(
                f"expected the {'binary ' * pending.packed}answer to {tag_of(pending.kind)}, "
                f"got a {tag_of(type(reply))!r} frame",
                payload,
            )
        if pending.kind in _BEGINS_EPISODE:
            self.state = SessionState.EPISODE
        elif isinstance(reply, messages.OpenReply):
            self.state = SessionState.OPEN
            self._binary = reply.data.binary
        return reply

    def _unpack(self, pending: _Pending, payload: bytes) -> messages.PackedReply:
        if not pending.packed:
            self._break(f"expected a text frame in answer to {tag_of(pending.kind)}, got a binary one", payload)
        try:
            packed = frames.read_frame(payload)
        except ProtocolError as error:
            self.lose(str(error))
            raise
        if packed.kind is not frames.Kind.OUTCOME:
            self._break(f"expected an outcome in answer to {tag_of(pending.kind)}, got a {packed.kind.name}", payload)
        return messages.PackedReply(packed)

    @property
    def pending(self) -> bool:
        """Whether a request awaits its answer."""
        return self._pending is not None

    def expect_pending(self) -> None:
        """Make sure that a request awaits its answer.

        Raises:
            SessionLostError: the session is broken.
            SessionStateError: there is none.
        """
        if self._pending is None:
            if self.state is SessionState.BROKEN:
                raise self._lost()
            raise SessionStateError(
                "expected a request under way, but none was made", expected="pending", state=self.state.value
            )

    def withdraw(self) -> None:
        """Forget the pending request: not a byte of it was sent."""
        self._pending = None

    def lose(self, reason: str) -> None:
        """Note that the pairing is lost (a timeout, a dropped socket). A closed or broken session stays as it is."""
        if self.state not in {SessionState.BROKEN, SessionState.CLOSED}:
            self.state = SessionState.BROKEN
            self._reason = reason
        self._pending = None

    def _require(self, kind: type[messages.Message]) -> None:
        if self.state is SessionState.BROKEN:
            raise self._lost()
        if self._pending is not None:
            raise SessionStateError(
                f"expected no request under way, but {name_of(self._pending.kind)} awaits its answer: "
                "one call at a time",
                expected="no request under way",
                state=self.state.value,
            )
        if kind.extension and not self.extended:
            raise SessionStateError(
                f"{name_of(kind)} needs a server that speaks the subprotocol {messages.SUBPROTOCOL}; this one does not",
                expected=messages.SUBPROTOCOL,
                state=self.state.value,
            )
        allowed = _ALLOWED[kind]
        if self.state not in allowed:
            raise SessionStateError(
                _out_of_order(kind, self.state),
                expected=" or ".join(sorted(state.value for state in allowed)),
                state=self.state.value,
            )

    def _awaiting(self, payload: bytes) -> _Pending:
        """Take the request that awaits an answer."""
        pending, self._pending = self._pending, None
        if pending is None:
            if self.state is SessionState.BROKEN:
                # Given up from elsewhere while the answer was on its way.
                raise self._lost()
            self._break(f"expected silence, got a frame nobody asked for: {bytes(payload[:200])!r}", payload)
        return pending

    def _lost(self) -> SessionLostError:
        return SessionLostError(
            f"the session is lost and its episode with it: {self._reason}; reset() opens a new one",
            reason=self._reason,
        )

    def _fail(self, kind: _Kind, data: Mapping[str, Any]) -> NoReturn:
        """Raise what an error frame means, and note what it means for the session."""
        code = str(data.get("code") or "UNKNOWN")
        text = str(data.get("message") or "the server gave no message")
        facts: dict[str, Any] = {"code": code, "data": dict(data)}
        if code == "VALIDATION_ERROR":
            listed = data.get("errors")
            errors = [error for error in listed if isinstance(error, dict)] if isinstance(listed, list) else []
            raise refusal(kind, text, errors, facts)
        if code == "EXECUTION_ERROR":
            env_index = _env_index(data) if self.extended else None
            self._note_failure(kind, text, env_index)
            raise execution_error(kind, text, facts, env_index)
        if code in {"INVALID_JSON", "UNKNOWN_TYPE"}:
            raise ServerError(f"the server did not understand {name_of(kind)}: {text} ({code})", **facts)
        self.lose(f"{text} ({code})")
        if code == "CAPACITY_REACHED":
            raise CapacityError(
                with_advice(text),
                active_sessions=data.get("active_sessions"),
                max_sessions=data.get("max_sessions"),
                **facts,
            )
        if code == "FACTORY_ERROR":
            raise EnvironmentFactoryError(text, factory_name=data.get("factory_name"), **facts)
        if code == "SESSION_ERROR":
            raise SessionLostError(f"the server ended the session: {text}", reason=text)
        raise ServerError(f"the server failed: {text} ({code})", **facts)

    def _note_failure(self, kind: _Kind, text: str, env_index: int | None) -> None:
        """What the failure of an environment means for the session."""
        if env_index is not None:
            # One of several: the server closes the others too.
            self.lose(f"environment {env_index} failed: {text}")
        elif kind in _BEGINS_EPISODE and self.state is SessionState.EPISODE:
            # It has left the episode in an unknown place.
            self.state = SessionState.OPEN

    def _break(self, message: str, payload: bytes) -> NoReturn:
        self.lose(message)
        raise ProtocolError(message, received=bytes(payload[:200]).decode("utf-8", "replace"))


def _env_index(data: Mapping[str, Any]) -> int | None:
    index = data.get("env_index")
    return index if isinstance(index, int) and not isinstance(index, bool) and index >= 0 else None


def _out_of_order(kind: _Kind, state: SessionState) -> str:
    """Why a request may not be made in this state, and what to do."""
    name = name_of(kind)
    if state is SessionState.CLOSED:
        return f"{name} needs an open session, but this one was closed: make a new one"
    if kind is messages.Open:
        return "x-open opens a session, but this one is open already: go on with reset()"
    if state is SessionState.NEW:
        return f"{name} needs an open session, but this one has not been opened: send x-open first"
    return f"{name} needs an episode that has begun: call reset() first"
