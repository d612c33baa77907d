"""The one place where exceptions become error frames and HTTP answers, and foreign exceptions ours.

The tree itself is ``openenv_gym.errors``; a few classes of a server alone are added here. Codes and statuses are
those of ``openenv`` 0.10.0. Not for deciding whether a session goes on: the routes do.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np
from pydantic import ValidationError

from openenv_gym.errors import (
    CapacityError,
    EnvironmentExecutionError,
    EnvironmentFactoryError,
    InvalidActionError,
    MessageTooLargeError,
    ProtocolError,
    ServerError,
    SettingsError,
    ValueMappingError,
)
from openenv_gym.json_text import JSONObject, encode_json
from openenv_gym.messages import ErrorReply, RequestId
from openenv_gym.types import WSErrorCode
from openenv_gym_server.plain import plain_json
from openenv_gym_server.reports import cause_of, is_environments, report, traceback_text

__all__ = [
    "VALIDATION_RAISED",
    "ConcurrencyConfigurationError",
    "HTTPAnswer",
    "OvertimeError",
    "SessionEndedError",
    "SessionNotFoundError",
    "SessionStartingError",
    "TaskError",
    "UnknownTypeError",
    "UnsendableError",
    "at_capacity",
    "encoding",
    "error_frame",
    "factory_calls",
    "fault",
    "http_answer",
    "invalid_action",
    "invalid_message",
    "raise_as_environments",
    "raise_as_unsendable",
    "rejected",
    "text_of",
    "user_code",
]

MAX_FAULTS = 100
"""Faults listed in one answer; a message of a million wrong numbers has a million."""

MAX_ECHO_BYTES = 2000
"""How much of a faulty input an answer repeats."""

MAX_TEXT = 10_000
"""Characters of an exception's text that travel."""

MAX_KEY = 200
"""Characters of one key of a client's in a fault's path."""

MAX_COUNTED = 10_000
"""Faults of one message that are told apart; above, the answer has their number alone."""

VALIDATION_RAISED = "validation_raised"
"""The kind of the fault where an action's class raised what is no finding about the action."""


class ConcurrencyConfigurationError(SettingsError):
    """More than one session at a time for an environment that does not declare ``SUPPORTS_CONCURRENT_SESSIONS``."""

    attributes: tuple[str, ...] = ("environment_name", "max_concurrent_envs", "setting")  # type: ignore[assignment]
    environment_name: str | None
    max_concurrent_envs: int | str | None


class UnknownTypeError(ServerError):
    """A message whose type the server does not know."""


class SessionNotFoundError(ServerError):
    """No session has that id, or it cannot be used now; ``session_id`` is the id."""

    attributes = ("code", "data", "session_id")
    session_id: str | None


class SessionStartingError(SessionNotFoundError):
    """A session cannot be used yet, since its environment is being made."""


class SessionEndedError(ServerError):
    """The server ended the session; the message says why."""


class OvertimeError(SessionEndedError):
    """Something took longer than the operator allows; a session's environment is given up with it."""


class TaskError(ServerError):
    """A question about tasks that cannot be answered; ``status`` is the HTTP status that says so."""

    attributes = ("code", "data", "status")
    status: int | None


class UnsendableError(EnvironmentExecutionError):
    """What an environment gave cannot be sent; the message says why, in our words, and whether it has moved on."""


class HTTPAnswer(NamedTuple):
    """An HTTP status with its body: JSON, or plain text where it is a string."""

    status: int
    body: JSONObject | str


# ---------------------------------------------------------------------------------------------- answers


def error_frame(error: BaseException, request_id: RequestId = None, *, share_traceback: bool = False) -> bytes:
    """The JSON text of the error frame that answers a request with this error."""
    data = error_data(error)
    if share_traceback and is_environments(error):
        data["traceback"] = traceback_text(error)
    return encode_json(ErrorReply(data=data, id=request_id))


def error_data(error: BaseException) -> JSONObject:
    """What an error frame says: ``message``, ``code`` and what belongs to the code."""
    data: JSONObject = {"message": text_of(error), "code": _code_of(error)}
    if is_environments(error):
        data["exception_type"] = type(cause_of(error)).__name__
    if isinstance(error, InvalidActionError):
        data["errors"] = cast("Any", _faults_of(error))
    elif isinstance(error, MessageTooLargeError):
        data |= {"size": error.size, "limit": error.limit, "setting": error.setting}
    elif isinstance(error, CapacityError):
        data |= {"active_sessions": error.active_sessions, "max_sessions": error.max_sessions}
    elif isinstance(error, EnvironmentFactoryError):
        data["factory_name"] = error.factory_name
    elif isinstance(error, EnvironmentExecutionError) and error.env_index is not None:
        data["env_index"] = error.env_index
    return data


def _code_of(error: BaseException) -> str:
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code.value
    return WSErrorCode.EXECUTION_ERROR.value


_CODES: tuple[tuple[type[BaseException], WSErrorCode], ...] = (
    (ProtocolError, WSErrorCode.INVALID_JSON),
    (UnknownTypeError, WSErrorCode.UNKNOWN_TYPE),
    (InvalidActionError, WSErrorCode.VALIDATION_ERROR),
    (MessageTooLargeError, WSErrorCode.VALIDATION_ERROR),
    (CapacityError, WSErrorCode.CAPACITY_REACHED),
    (EnvironmentFactoryError, WSErrorCode.FACTORY_ERROR),
    (SessionNotFoundError, WSErrorCode.SESSION_ERROR),
    (SessionEndedError, WSErrorCode.SESSION_ERROR),
)


def http_answer(error: BaseException, session_id: str | None = None, message: str = "HTTP") -> HTTPAnswer:
    """The status and body that answer an HTTP request with this error; ``message`` names the request in the log.

    What an environment raised stays in the log: over HTTP, as in the reference, its text is not shown.
    """
    if isinstance(error, InvalidActionError):
        return HTTPAnswer(422, {"detail": cast("Any", _faults_of(error))})
    if isinstance(error, MessageTooLargeError):
        return HTTPAnswer(413, {"detail": text_of(error)})
    if isinstance(error, SessionNotFoundError):
        return HTTPAnswer(404, {"detail": text_of(error)})
    if isinstance(error, CapacityError):
        return HTTPAnswer(503, {"detail": text_of(error), **error_data(error)})
    if isinstance(error, SessionEndedError):
        return HTTPAnswer(504, {"detail": text_of(error)})
    if isinstance(error, TaskError) and error.status is not None:
        return HTTPAnswer(error.status, {"detail": text_of(error)})
    report(error, session_id, message)
    if isinstance(error, UnsendableError):
        # These are our words, and the client has to know whether its step was taken.
        return HTTPAnswer(500, {"detail": text_of(error)})
    return HTTPAnswer(500, "Internal Server Error")


def _faults_of(error: InvalidActionError) -> list[dict[str, Any]]:
    """The faults of a refusal; where an environment refuses in its own words, these are the one."""
    return error.errors or [{"type": "refused", "loc": [], "msg": text_of(error)}]


def text_of(error: BaseException) -> str:
    """The text of any exception, whatever its ``__str__`` does; valid Unicode, bounded, never empty."""
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - the exception is an environment's own, and so is what its __str__ raises
        text = ""
    return _encodable(text) or type(error).__name__


def _encodable(text: str) -> str:
    return text[:MAX_TEXT].encode("utf-8", "backslashreplace").decode("utf-8")


# ------------------------------------------------------------------------------------- making our errors


def fault(kind: str, loc: list[str | int], message: str, value: object) -> dict[str, Any]:
    """One entry of an answer's ``errors``, in pydantic's shape, of bounded size whatever the client sent."""
    place = [part[:MAX_KEY] if isinstance(part, str) else part for part in loc]
    return {"type": kind, "loc": place, "msg": _encodable(message), "input": _echo(value)}


def invalid_message(*faults: dict[str, Any]) -> InvalidActionError:
    """A refusal of a message for these faults; the first is told in the message."""
    first = faults[0]
    where = ".".join(str(part) for part in first["loc"])
    message = f"Invalid message: {where + ': ' if where else ''}{first['msg']}"
    return InvalidActionError(message, code="VALIDATION_ERROR", errors=list(faults))


def invalid_action(error: ValidationError, prefix: tuple[str, ...] = ()) -> InvalidActionError:
    """A refusal of a message for the faults pydantic found, custom validators' included.

    As in the reference, an action's faults have pydantic's ``url``, those of a body (which have a prefix) have none.
    """
    if error.error_count() > MAX_COUNTED:
        message = f"{error.title} has {error.error_count()} faults, too many to tell apart"
        return invalid_message(fault("too_many_faults", list(prefix), message, None))
    faults = []
    for entry in error.errors(include_url=not prefix)[:MAX_FAULTS]:
        item = fault(entry["type"], [*prefix, *entry["loc"]], entry["msg"], entry["input"])
        if "ctx" in entry:
            # A custom validator's exception is among the context as an object.
            item["ctx"] = {name: _context(value) for name, value in entry["ctx"].items()}
        if "url" in entry:
            item["url"] = entry["url"]
        faults.append(item)
    return invalid_message(*faults)


def rejected(error: BaseException, action: object) -> InvalidActionError:
    """A refusal of an action whose class raised what pydantic does not take for a finding, most often by mistake."""
    report(error, None, "a validator of actions")
    message = f"the validation of the action raised {type(error).__name__}: {text_of(error)}"
    return invalid_message(fault(VALIDATION_RAISED, [], message, action))


def _context(value: object) -> object:
    return text_of(value) if isinstance(value, BaseException) else _echo(value)


def _echo(value: object) -> object:
    """A faulty input as an answer repeats it: as it came if that is short, else what it is.

    The size is known before anything is converted: a refusal must cost no more than the message it refuses.
    """
    if _is_short(value):
        try:
            plain = plain_json(value)
            if len(encode_json(plain)) <= MAX_ECHO_BYTES:
                return plain
        except ValueMappingError:
            pass
    return f"{type(value).__name__}, too large or without a JSON form"


def _is_short(value: object) -> bool:
    """Whether the JSON of a value can be within ``MAX_ECHO_BYTES``, found by looking at no more parts than that."""
    room = MAX_ECHO_BYTES
    parts: list[object] = [value]
    while parts:
        part = parts.pop()
        room -= 1
        if isinstance(part, str | bytes | bytearray):
            room -= len(part)
        elif isinstance(part, int):
            room -= part.bit_length() // 4
        elif isinstance(part, Mapping):
            room -= len(part)
            parts.extend(itertools.chain(*itertools.islice(part.items(), max(room, 0))))
        elif isinstance(part, list | tuple | set | frozenset):
            room -= len(part)
            parts.extend(itertools.islice(part, max(room, 0)))
        elif isinstance(part, np.ndarray):
            room -= part.size
        if room < 0:
            return False
    return True


def at_capacity(active: int, limit: int, advice: str, asked: int = 1) -> CapacityError:
    """A refusal of another session, or of a vector session that counts as several."""
    what = "Cannot accept new connections."
    if asked > 1:
        what = f"Cannot open a session of {asked} environments, which counts as {asked} sessions."
    return CapacityError(
        f"Server at capacity: {active}/{limit} sessions active. {what} {advice}",
        code="CAPACITY_REACHED",
        active_sessions=active,
        max_sessions=limit,
    )


# ------------------------------------------------------------------------------ around an author's code


class _UserCode:
    """Whatever the environment raises, ``SystemExit`` included, is its error and nobody else's.

    A refusal of the action by the environment itself stays one.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            raise_as_environments(error)


user_code = _UserCode()
"""Context manager around every call of an environment's reset, step, state, render and close."""


def raise_as_environments(error: BaseException) -> NoReturn:
    """What ``user_code`` does, for a step, which has no time for a context manager."""
    if isinstance(error, InvalidActionError | EnvironmentExecutionError):
        raise error
    raise EnvironmentExecutionError(text_of(error), code="EXECUTION_ERROR") from error


class factory_calls:  # noqa: N801 - a context manager, used as a verb
    """Context manager around the making of an environment."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, InvalidActionError | CapacityError):
            return
        raise EnvironmentFactoryError(
            f"Environment factory '{self._name}' failed to create instance. {type(error).__name__}: {text_of(error)}",
            code="FACTORY_ERROR",
            factory_name=self._name,
        ) from error


class encoding:  # noqa: N801 - a context manager, used as a verb
    """Context manager around the encoding of what an environment gave; ``advanced``: it has moved on by then."""

    __slots__ = ("_advanced", "_what")

    def __init__(self, what: str, *, advanced: bool) -> None:
        self._what = what
        self._advanced = advanced

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            raise_as_unsendable(error, self._what, advanced=self._advanced)


def raise_as_unsendable(error: BaseException, what: str, *, advanced: bool) -> NoReturn:
    """What ``encoding`` does, for a step, which has no time for a context manager."""
    consequence = "; the environment has already advanced" if advanced else ""
    # A codec of an environment's own raises what it likes; only our own words are shown to everyone.
    kind = UnsendableError if isinstance(error, ValueMappingError) else EnvironmentExecutionError
    raise kind(f"the {what} cannot be sent as JSON: {text_of(error)}{consequence}", code="EXECUTION_ERROR") from error
