"""One client session, without I/O: what may be said next, and what an answer means.

``Session.request`` turns a request into the text of a frame, ``Session.receive`` gives the answering frame its
meaning. Bytes go in and come out; sockets, threads, clocks and reconnecting belong to ``shell.py`` and
``transports/``, values to ``spaces/``.

The rule this module exists for: a request and its answer are paired. Whatever breaks the pairing (a timeout, a lost
socket, an answer of another kind) breaks the session, and a broken session says so on every call until a new one is
made. A late answer is never taken for another's, and a step never reaches an environment that was not reset.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec

from openenv_gym import messages
from openenv_gym.errors import (
    CapacityError,
    EnvironmentExecutionError,
    EnvironmentFactoryError,
    InvalidActionError,
    ProtocolError,
    ServerError,
    SessionLostError,
    SessionStateError,
)

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


_ALIVE = frozenset({SessionState.OPEN, SessionState.EPISODE})
_ALLOWED: dict[type[messages.Message], frozenset[SessionState]] = {
    messages.Open: frozenset({SessionState.NEW}),
    messages.Reset: _ALIVE,
    messages.Step: frozenset({SessionState.EPISODE}),
    messages.State: _ALIVE,
    messages.Mcp: _ALIVE,
    messages.Render: _ALIVE,
    messages.Call: _ALIVE,
    messages.GetAttr: _ALIVE,
    messages.Close: frozenset({SessionState.NEW, *_ALIVE}),
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
}
_REFUSED = {
    messages.Open: "the opening of the session",
    messages.Reset: "the reset",
    messages.Step: "the action",
    messages.Call: "the call",
    messages.GetAttr: "the reading of the attribute",
}
"""What a server refuses where it refuses a message, as its sender thinks of it; others by their names."""
# Kinds whose failure inside the environment leaves the episode in an unknown place.
_BEGINS_EPISODE = (messages.Open, messages.Reset)


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
        self._pending: messages.Message | None = None
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
            ValueMappingError: a field has no JSON form. Nothing is pending then.
        """
        self._require(kind)
        if self.extended:
            fields["id"] = self._last_id + 1
        request = kind(**fields)
        frame = messages.encode_json(request)
        self._last_id += 1
        if kind is messages.Close:
            self.state = SessionState.CLOSED
        else:
            self._pending = request
        return frame

    def receive(self, payload: bytes, *, text: bool = True, unasked: bool = False) -> messages.Reply:
        """The meaning of the frame that answers the pending request.

        Args:
            payload: the frame's content.
            text: whether it was a text frame.
            unasked: whether it came before the request was sent: only an error may, of a server that is full, say.

        Raises:
            InvalidActionError: the server refused the request; the environment is as it was and the session goes on.
            EnvironmentExecutionError: the environment raised; the session goes on.
            CapacityError, EnvironmentFactoryError: there is no environment; the session is broken.
            ServerError: any other code of the server's.
            SessionLostError: the server ended the session, or it was given up meanwhile.
            ProtocolError: the frame answers nothing, or something else; the session is broken.
        """
        pending = self._awaiting(payload)
        if not text:
            self._break(f"expected a text frame in answer to {_name(pending)}, got a binary one", payload)
        try:
            reply = messages.decode_reply(payload)
        except ProtocolError as error:
            self.lose(str(error))
            raise
        # A server may fail before it has read the request at all (it is full, say): such a frame carries no id.
        if reply.id != pending.id and not (isinstance(reply, messages.ErrorReply) and reply.id is None):
            self._break(f"expected the answer to request {pending.id!r}, got that to {reply.id!r}", payload)
        if isinstance(reply, messages.ErrorReply):
            self._fail(pending, reply.data)
        if unasked:
            self._break(f"expected silence, got a {_name(reply)!r} frame that nobody asked for", payload)
        if type(reply) is not _ANSWER[type(pending)]:
            self._break(f"expected the answer to {_name(pending)}, got a {_name(reply)!r} frame", payload)
        if isinstance(pending, messages.Reset):
            self.state = SessionState.EPISODE
        elif isinstance(pending, messages.Open):
            self.state = SessionState.OPEN
        return reply

    @property
    def pending(self) -> bool:
        """Whether a request awaits its answer."""
        return self._pending is not None

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
        name = kind.__struct_config__.tag
        if self.state is SessionState.BROKEN:
            raise self._lost()
        if self._pending is not None:
            raise SessionStateError(
                f"expected no request under way, but {_name(self._pending)} awaits its answer: one call at a time",
                expected="no request under way",
                state=self.state.value,
            )
        if kind.extension and not self.extended:
            raise SessionStateError(
                f"{name} needs a server that speaks the subprotocol {messages.SUBPROTOCOL}; this one does not",
                expected=messages.SUBPROTOCOL,
                state=self.state.value,
            )
        allowed = _ALLOWED[kind]
        if self.state not in allowed:
            raise SessionStateError(
                _out_of_order(name, self.state),
                expected=" or ".join(sorted(state.value for state in allowed)),
                state=self.state.value,
            )

    def _awaiting(self, payload: bytes) -> messages.Message:
        """Take the request that awaits an answer."""
        pending, self._pending = self._pending, None
        if pending is None:
            if self.state is SessionState.BROKEN:
                # Given up from elsewhere while the answer was on its way.
                raise self._lost()
            self._break(f"expected silence, got a frame nobody asked for: {payload[:200]!r}", payload)
        return pending

    def _lost(self) -> SessionLostError:
        return SessionLostError(
            f"the session is lost and its episode with it: {self._reason}; reset() opens a new one",
            reason=self._reason,
        )

    def _fail(self, pending: messages.Message, data: Mapping[str, Any]) -> NoReturn:
        """Raise what an error frame means, and note what it means for the session."""
        code = str(data.get("code") or "UNKNOWN")
        text = str(data.get("message") or "the server gave no message")
        facts: dict[str, Any] = {"code": code, "data": dict(data)}
        if code == "VALIDATION_ERROR":
            listed = data.get("errors")
            errors = [error for error in listed if isinstance(error, dict)] if isinstance(listed, list) else []
            raise InvalidActionError(_explain(pending, text, errors), errors=errors, **facts)
        if code == "EXECUTION_ERROR":
            if isinstance(pending, _BEGINS_EPISODE) and self.state is SessionState.EPISODE:
                self.state = SessionState.OPEN
            raise _execution_error(pending, text, facts)
        if code in {"INVALID_JSON", "UNKNOWN_TYPE"}:
            raise ServerError(f"the server did not understand {_name(pending)}: {text} ({code})", **facts)
        self.lose(f"{text} ({code})")
        if code == "CAPACITY_REACHED":
            raise CapacityError(
                _with_advice(text),
                active_sessions=data.get("active_sessions"),
                max_sessions=data.get("max_sessions"),
                **facts,
            )
        if code == "FACTORY_ERROR":
            raise EnvironmentFactoryError(text, factory_name=data.get("factory_name"), **facts)
        if code == "SESSION_ERROR":
            raise SessionLostError(f"the server ended the session: {text}", reason=text)
        raise ServerError(f"the server failed: {text} ({code})", **facts)

    def _break(self, message: str, payload: bytes) -> NoReturn:
        self.lose(message)
        raise ProtocolError(message, received=payload[:200].decode("utf-8", "replace"))


def _name(message: messages.Message) -> str:
    tag: str | int | None = message.__struct_config__.tag
    return str(tag)


def _execution_error(pending: messages.Message, text: str, facts: Mapping[str, Any]) -> EnvironmentExecutionError:
    """The environment's failure, with its type and its traceback as far as the server tells them."""
    data = facts["data"]
    kind, traceback = data.get("exception_type"), data.get("traceback")
    what = f"{kind}: {text}" if isinstance(kind, str) else text
    error = EnvironmentExecutionError(f"the environment failed in {_name(pending)}: {what}", **facts)
    if isinstance(traceback, str):
        error.add_note(f"In the server's process:\n{traceback}")
    return error


def _out_of_order(name: object, state: SessionState) -> str:
    """Why a request may not be made in this state, and what to do."""
    if state is SessionState.CLOSED:
        return f"{name} needs an open session, but this one was closed: make a new one"
    if name == "x-open":
        return "x-open opens a session, but this one is open already: go on with reset()"
    if state is SessionState.NEW:
        return f"{name} needs an open session, but this one has not been opened: send x-open first"
    return f"{name} needs an episode that has begun: call reset() first"


def _with_advice(text: str) -> str:
    """A full server's text, with what to do about it where the server has not said that itself."""
    if "max_concurrent_envs" in text:
        return text
    return f"{text.rstrip('. ')}; raise the server's max_concurrent_envs, or close other sessions"


_MAX_TOLD = 10
"""Faults that are told one by one; ``errors`` has all of them."""


def _explain(pending: messages.Message, text: str, errors: list[dict[str, Any]]) -> str:
    """Why the server refused a request: each fault with its path, once, and what else the server said."""
    faults = [_told(error) for error in errors[:_MAX_TOLD]]
    if len(errors) > _MAX_TOLD:
        faults.append(f"and {len(errors) - _MAX_TOLD} more")
    said = "; ".join(faults)
    # "Invalid message" is a mere heading; behind it stands the first fault, if anything.
    if not errors or (not text.startswith("Invalid message") and all(str(e.get("msg")) in text for e in errors)):
        said = text
    elif not text.startswith("Invalid message"):
        said = f"{text}: {said}"
    return f"the server refused {_REFUSED.get(type(pending), _name(pending))}: {said}"


def _told(error: Mapping[str, Any]) -> str:
    """One fault: where, what, and what came there."""
    loc = error.get("loc")
    # A fault of the type is one of the whole message, of which the caller has not written the type.
    place = ".".join(map(str, loc)) if isinstance(loc, list) and loc != ["type"] else ""
    message = str(error.get("msg", "invalid"))
    # Where something is missing, the input is all the rest; and some say themselves what they got.
    said_already = error.get("type") == "missing" or "got " in message or repr(error.get("input")) in message
    if "input" in error and not said_already:
        message += f" (got {msgspec.json.encode(error['input'])[:200].decode('utf-8', 'replace')})"
    return f"{place}: {message}" if place else message
