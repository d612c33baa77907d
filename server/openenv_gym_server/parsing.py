"""A message as it came, and what is wrong with one that cannot be read.

Not for what a message does (``dispatch.py``), nor for which thread reads it (``reading.py``, ``session.py``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from openenv_gym import frames
from openenv_gym.errors import (
    InvalidActionError,
    MessageTooLargeError,
    OpenEnvGymError,
    ProtocolError,
    ValueMappingError,
)
from openenv_gym.frames import Packed
from openenv_gym.info import decode_exact, encode_exact
from openenv_gym.json_text import JSON, JSONObject, decode_json
from openenv_gym.messages import (
    REQUEST_TYPES,
    Close,
    Mcp,
    Request,
    RequestId,
    ValueData,
)
from openenv_gym.types import ServerMode
from openenv_gym_server.errors import MAX_ECHO_BYTES, UnknownTypeError, encoding, error_frame, fault, invalid_message
from openenv_gym_server.reading import LARGE
from openenv_gym_server.settings import DEFAULT_MESSAGE_SIZE_MB, Names

__all__ = [
    "LEFT_OUT",
    "Payload",
    "Terms",
    "check_reset",
    "exact",
    "exact_list",
    "malformed",
    "no_binary",
    "parse",
    "read",
    "tag_of",
    "value_data",
]

Payload: TypeAlias = "str | bytes | bytearray | memoryview"
"""What a socket brought: a text frame is a string, a binary one bytes."""

MAX_EPISODE_ID = 255

LEFT_OUT = "too large to be repeated"

_IN_PRODUCTION = frozenset({Mcp, Close})
"""All that a production server takes; whatever other messages there come to be, it refuses."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds on one connection.

    Attributes:
        session_id: name of its session.
        extended: whether the subprotocol was agreed, so that ``id`` and the ``x-`` messages exist.
        opened: whether the session's environment was made already.
        attached: whether the socket came to a session that was there before.
        production: whether the messages that control an episode are closed.
        remote_names: methods and attributes that may be called and read.
        max_message_bytes: limit of one message.
        share_tracebacks: whether an answer has the traceback of what an environment raised.
    """

    session_id: str = ""
    extended: bool = False
    opened: bool = True
    attached: bool = False
    production: bool = False
    remote_names: Names = frozenset()
    max_message_bytes: int = int(DEFAULT_MESSAGE_SIZE_MB * 2**20)
    share_tracebacks: bool = False


def read(payload: Payload, terms: Terms) -> Request | Packed | str:
    """The request in a frame, or the error frame that answers one that cannot be read."""
    try:
        return parse(payload, terms) if isinstance(payload, str) else unpack(payload, terms)
    except OpenEnvGymError as error:
        request_id = _id_in(payload, terms) if isinstance(payload, str) else None
        return error_frame(error, request_id).decode()


def unpack(payload: bytes | bytearray | memoryview, terms: Terms) -> Packed:
    """The request in a binary frame.

    Raises:
        InvalidActionError: there are none on this connection; it cannot be read; or is no request.
        MessageTooLargeError: it is above the limit.
    """
    if terms.production:
        raise _closed("a binary frame")
    if not terms.extended:
        raise no_binary()
    _check_size(len(payload), terms)
    try:
        packed = frames.read_frame(payload)
    except ProtocolError as error:
        raise malformed([], str(error)) from error
    if packed.kind is frames.Kind.OUTCOME:
        message = "expected a binary frame that resets or steps, got an outcome, which is a server's to send"
        raise malformed([], message)
    return packed


def malformed(loc: list[str | int], message: str) -> InvalidActionError:
    """A refusal of a binary frame for what is in it."""
    return invalid_message(fault("binary_frame", loc, message, None))


def no_binary() -> InvalidActionError:
    """A refusal of a binary frame."""
    message = "a text frame with a JSON object was expected, got a binary frame"
    return invalid_message(fault("string_type", [], message, None))


def tag_of(request: Request | Packed) -> str:
    """The name of a request, for logs and errors."""
    if isinstance(request, Packed):
        return f"a binary {request.kind.name.lower()}"
    return str(type(request).__struct_config__.tag)


_decoder: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)


def parse(text: str, terms: Terms) -> Request:
    """The request in a text frame.

    Raises:
        ProtocolError: the text is not JSON.
        UnknownTypeError: it has no type, or one that does not exist on this connection.
        InvalidActionError: it is not as its type wants it; or closed in the server's mode.
        MessageTooLargeError: it is above the limit.
    """
    if len(text) > terms.max_message_bytes // 4:
        _check_size(_bytes_in(text), terms)
    try:
        request = _decoder.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise _diagnosis(text, str(error), terms) from error
    if terms.production and type(request) not in _IN_PRODUCTION:
        raise _closed(repr(tag_of(request)))
    if not terms.extended:
        if request.extension:
            raise _unknown_type(tag_of(request))
        if request.id is not None:
            message = "a message has an id only where the subprotocol openenv-gym.v1 was agreed"
            raise invalid_message(fault("extra_forbidden", ["id"], message, request.id))
    return request


def _closed(what: str) -> InvalidActionError:
    message = (
        f"the server is in production mode, where reset, step and state do not exist, so {what} is refused; call tools "
        'over /mcp, as clients do that are made with mode="production"; to play episodes, serve with --mode simulation '
        "(setting mode, variable OPENENV_MODE)"
    )
    # For programs: in which mode a client is to come instead.
    return invalid_message(fault("mode", ["type"], message, what) | {"ctx": {"mode": ServerMode.PRODUCTION.value}})


def check_reset(data: JSONObject, root: str) -> None:
    """Hold reset's own keywords to what the reference's HTTP route holds them to, on every transport.

    Raises:
        InvalidActionError: the seed is no integer of at least 0, or ``episode_id`` no string of at most 255 characters.
    """
    seed, episode_id = data.get("seed"), data.get("episode_id")
    faults = []
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        faults.append(fault("int_type", [root, "seed"], "Input should be a valid integer", seed))
    elif seed is not None and seed < 0:
        faults.append(fault("greater_than_equal", [root, "seed"], "Input should be greater than or equal to 0", seed))
    if episode_id is not None and not isinstance(episode_id, str):
        faults.append(fault("string_type", [root, "episode_id"], "Input should be a valid string", episode_id))
    elif episode_id is not None and len(episode_id) > MAX_EPISODE_ID:
        message = f"String should have at most {MAX_EPISODE_ID} characters"
        faults.append(fault("string_too_long", [root, "episode_id"], message, episode_id))
    if faults:
        raise invalid_message(*faults)


def _check_size(size: int, terms: Terms) -> None:
    if size > terms.max_message_bytes:
        raise MessageTooLargeError(
            f"expected a message of at most {terms.max_message_bytes} bytes, got {size}; "
            "the server's setting is max_message_size_mb (--max-message-size-mb)",
            size=size,
            limit=terms.max_message_bytes,
            setting="max_message_size_mb",
        )


def _bytes_in(text: str) -> int:
    """The length of a text in UTF-8, which no character takes more than four bytes of."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _unknown_type(name: object) -> UnknownTypeError:
    shown = f"a {type(name).__name__}" if isinstance(name, dict | list) else str(name)[:200]
    return UnknownTypeError(f"Unknown message type: {shown}", code="UNKNOWN_TYPE")


def _diagnosis(text: str, complaint: str, terms: Terms) -> ProtocolError | UnknownTypeError | InvalidActionError:
    """Why a message could not be read, in the reference's terms. Only faulty messages come here."""
    try:
        message = _outline(text) if len(text) > LARGE else decode_json(text)
    except ProtocolError as error:
        return ProtocolError(f"Invalid JSON: {error}", received=error.received)
    if not isinstance(message, dict):
        return invalid_message(fault("model_type", [], "Input should be a JSON object with a type", message))
    name = message.get("type", "")
    kind = REQUEST_TYPES.get(name) if isinstance(name, str) else None
    if terms.production and kind is not None and kind not in _IN_PRODUCTION:
        return _closed(repr(name))
    if kind is None or (kind.extension and not terms.extended):
        return _unknown_type(name)
    unknown = sorted(message.keys() - {"type", *kind.__struct_fields__})
    if unknown:
        return invalid_message(
            *(fault("extra_forbidden", [key], "Extra inputs are not permitted", message[key]) for key in unknown[:10])
        )
    return invalid_message(_fault_of(complaint, message))


_parts: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _outline(text: str) -> JSON:
    """A message without the values that no answer would repeat, which are passed over and never made.

    Raises:
        ProtocolError: it is not JSON.
    """
    try:
        parts = _parts.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return decode_json(text)  # not an object, or no JSON: whose error says where
    return {name: decode_json(bytes(part)) if len(part) <= MAX_ECHO_BYTES else LEFT_OUT for name, part in parts.items()}


def _fault_of(complaint: str, message: JSONObject) -> dict[str, Any]:
    """The decoder's complaint, ``… - at `$.data.name```, as a fault with its path."""
    text, _, place = complaint.partition(" - at ")
    loc: list[str | int] = [
        int(index) if index else name for name, index in re.findall(r"\.([^.\[\]`]+)|\[(\d+)\]", place)
    ]
    missing = re.search(r"missing required field `(\w+)`", text)
    unknown = re.search(r"contains unknown field `(.+)`", text)
    if missing:
        return fault("missing", [*loc, missing[1]], "Field required", message)
    if unknown:
        return fault("extra_forbidden", [*loc, unknown[1]], "Extra inputs are not permitted", message)
    kind = "dict_type" if loc == ["data"] else "invalid_type"
    return fault(kind, loc, f"Input should be as its type wants it: {text}", message.get("data"))


def _id_in(text: str, terms: Terms) -> RequestId:
    """The id of a message that could not be read, if it has one that can be repeated."""
    if not terms.extended or _bytes_in(text) > terms.max_message_bytes:
        return None
    try:
        message = _outline(text)
    except ProtocolError:
        return None
    request_id = message.get("id") if isinstance(message, dict) else None
    return request_id if isinstance(request_id, int | str) and not isinstance(request_id, bool) else None


def exact(value: JSON, *loc: str | int) -> Any:
    """The value that a client sent in the exact form of ``openenv_gym.info``.

    Raises:
        InvalidActionError: it is not in that form; ``loc`` is its place in the message.
    """
    try:
        return decode_exact(value)
    except ValueMappingError as error:
        raise invalid_message(fault("exact_form", list(loc), str(error), value)) from error
    except RecursionError as error:
        message = "expected a value of fewer levels, got one nested too deeply to be read"
        raise invalid_message(fault("exact_form", list(loc), message, None)) from error


def exact_list(values: list[JSON], *loc: str) -> list[Any]:
    """Each of several values in the exact form."""
    return [exact(value, *loc, index) for index, value in enumerate(values)]


def value_data(what: str, value: object) -> ValueData:
    """A value of an environment's in the exact form, as an answer has it.

    Raises:
        EnvironmentExecutionError: it has none.
    """
    with encoding(what, advanced=False):
        return ValueData(value=encode_exact(value))
