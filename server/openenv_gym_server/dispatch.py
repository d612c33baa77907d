"""What each message does: one plain function a message type, and one table of them.

Every transport calls these: a route decodes, calls, encodes. They run where the environment lives (its worker's
thread) and never touch a socket. A new message is a class in ``openenv_gym.messages``, a function here and a line in
``HANDLERS``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from openenv_gym.errors import (
    InvalidActionError,
    MessageTooLargeError,
    OpenEnvGymError,
    ProtocolError,
    ValueMappingError,
)
from openenv_gym.info import decode_exact, encode_exact
from openenv_gym.jsonrpc import JsonRpcErrorCode
from openenv_gym.messages import (
    JSON,
    REQUEST_TYPES,
    Call,
    CallReply,
    Close,
    GetAttr,
    GetAttrReply,
    JSONObject,
    Mcp,
    McpReply,
    ObservationReply,
    Open,
    Opened,
    OpenReply,
    OpenSettings,
    Outcome,
    Render,
    RenderReply,
    Reply,
    Request,
    RequestId,
    Reset,
    State,
    StateReply,
    Step,
    ValueData,
    decode_json,
    encode_json,
)
from openenv_gym_server.errors import (
    MAX_ECHO_BYTES,
    UnknownTypeError,
    encoding,
    error_frame,
    fault,
    invalid_message,
    raise_as_unsendable,
)
from openenv_gym_server.hosting import HostedEnvironment, check_name
from openenv_gym_server.reading import LARGE
from openenv_gym_server.reports import report
from openenv_gym_server.settings import DEFAULT_MESSAGE_SIZE_MB, Names

__all__ = ["HANDLERS", "Terms", "answer", "check_reset", "exact", "observed", "parse", "perform", "read", "respond"]

MAX_EPISODE_ID = 255

LEFT_OUT = "too large to be repeated"


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


def respond(hosted: HostedEnvironment, text: str, terms: Terms) -> str | None:
    """The answer to one message as it came; None where the peer asked to close.

    Whatever is wrong becomes an error frame: the session goes on.
    """
    request = read(text, terms)
    return request if isinstance(request, str) else perform(hosted, request, terms)


def read(text: str, terms: Terms) -> Request | str:
    """The request in a text frame, or the error frame that answers one that cannot be read."""
    try:
        return parse(text, terms)
    except OpenEnvGymError as error:
        return error_frame(error, _id_in(text, terms)).decode()


def perform(hosted: HostedEnvironment, request: Request, terms: Terms) -> str | None:
    """The answer to one parsed message; None where the peer asked to close."""
    if type(request) is Close:
        return None
    try:
        return answer(hosted, request, terms).decode()
    except BaseException as error:  # noqa: BLE001 - the outermost handler of a message; an environment may raise anything
        report(error, terms.session_id, _tag(request))
        return error_frame(error, request.id, share_traceback=terms.share_tracebacks).decode()


def answer(hosted: HostedEnvironment, request: Request, terms: Terms) -> bytes:
    """The JSON text of the reply to a request.

    Raises:
        OpenEnvGymError: what ``errors.error_frame`` makes a frame of.
    """
    reply = HANDLERS[type(request)](hosted, request, terms)
    try:
        return encode_json(reply, finite=hosted.finite and type(request) in _OF_CODEC)
    except ValueMappingError as error:
        raise_as_unsendable(error, "answer", advanced=type(request) in _ADVANCING)


# ------------------------------------------------------------------------------------ one function a message


def reset(hosted: HostedEnvironment, request: Reset, terms: Terms) -> ObservationReply:
    """Begin an episode. Under the subprotocol keywords travel in the exact form of ``openenv_gym.info``."""
    check_reset(request.data, "data")
    keywords = request.data
    if terms.extended:
        keywords = {name: exact(value, "data", name) for name, value in request.data.items()}
    return ObservationReply(data=hosted.reset(keywords), id=request.id)


def step(
    hosted: HostedEnvironment,
    request: Step,
    terms: Terms,  # noqa: ARG001 - as the table wants
    keywords: JSONObject | None = None,
) -> ObservationReply:
    """Take an action; only HTTP has keywords to go with it."""
    return ObservationReply(data=hosted.step(request.data, keywords), id=request.id)


def observed(outcome: Outcome, request: Step) -> bytes:
    """The JSON text of the reply to a step that the environment itself has not answered."""
    return encode_json(ObservationReply(data=outcome, id=request.id))


def state(hosted: HostedEnvironment, request: State, terms: Terms) -> StateReply:  # noqa: ARG001 - as the table wants
    """Tell the state."""
    return StateReply(data=hosted.state(), id=request.id)


def open_(hosted: HostedEnvironment, request: Open, terms: Terms) -> OpenReply:
    """Tell what the environment is that was made for this very request."""
    if terms.attached:
        if request.data != OpenSettings():
            message = "the session's environment exists already; attach to it without settings"
            raise invalid_message(fault("already_open", ["data"], message, None))
    elif terms.opened:
        raise invalid_message(
            fault("already_open", ["type"], "the session is open already; open another connection", "x-open")
        )
    described = Opened(
        session_id=terms.session_id,
        schema=hosted.schema(),
        metadata=hosted.metadata(),
        render_mode=hosted.render_mode,
    )
    return OpenReply(data=described, id=request.id)


def render(hosted: HostedEnvironment, request: Render, terms: Terms) -> RenderReply:  # noqa: ARG001 - as the table wants
    """Give the current rendering."""
    return RenderReply(data=_value("rendering", hosted.render()), id=request.id)


def call(hosted: HostedEnvironment, request: Call, terms: Terms) -> CallReply:
    """Call a method that the operator allows; only then are the arguments read."""
    check_name(request.data.name, terms.remote_names)
    args = [exact(value, "data", "args", index) for index, value in enumerate(request.data.args)]
    keywords = {name: exact(value, "data", "kwargs", name) for name, value in request.data.kwargs.items()}
    result = hosted.call(request.data.name, args, keywords, terms.remote_names)
    return CallReply(data=_value("result", result), id=request.id)


def get_attr(hosted: HostedEnvironment, request: GetAttr, terms: Terms) -> GetAttrReply:
    """Read an attribute that the operator allows."""
    return GetAttrReply(
        data=_value("attribute", hosted.attribute(request.data.name, terms.remote_names)), id=request.id
    )


def mcp(hosted: HostedEnvironment, request: Mcp, terms: Terms) -> McpReply:  # noqa: ARG001 - as the table wants
    """Answer a JSON-RPC request: that there are none here, since tools are listed and called by steps."""
    message = "Environment does not support MCP"
    if hosted.has_tools:
        message = "This server does not support MCP; send list_tools and call_tool actions in step messages instead"
    error = {"code": JsonRpcErrorCode.INTERNAL_ERROR.value, "message": message, "data": None}
    return McpReply(data={"jsonrpc": "2.0", "id": request.data.get("id"), "error": error}, id=request.id)


HANDLERS: dict[type[Any], Callable[[HostedEnvironment, Any, Terms], Reply]] = {
    Reset: reset,
    Step: step,
    State: state,
    Open: open_,
    Render: render,
    Call: call,
    GetAttr: get_attr,
    Mcp: mcp,
}
"""The function of every message that is answered; ``close`` alone is not."""

_ADVANCING = frozenset({Reset, Step, Call})
_OF_CODEC = frozenset({Reset, Step})
_CONTROL = frozenset({Reset, Step, State, Open, Render, Call, GetAttr})


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


def _value(what: str, value: object) -> ValueData:
    with encoding(what, advanced=False):
        return ValueData(value=encode_exact(value))


# ------------------------------------------------------------------------------------------ reading a message


_decoder: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)


def parse(text: str, terms: Terms) -> Request:
    """The request in a text frame.

    Raises:
        ProtocolError: the text is not JSON.
        UnknownTypeError: it has no type, or one that does not exist on this connection.
        InvalidActionError: it is not as its type wants it; or closed in the server's mode.
        MessageTooLargeError: it is above the limit.
    """
    if len(text) > terms.max_message_bytes // 4 and (size := _bytes_in(text)) > terms.max_message_bytes:
        raise MessageTooLargeError(
            f"expected a message of at most {terms.max_message_bytes} bytes, got {size}; "
            "the server's setting is max_message_size_mb (--max-message-size-mb)",
            size=size,
            limit=terms.max_message_bytes,
            setting="max_message_size_mb",
        )
    try:
        request = _decoder.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise _diagnosis(text, str(error), terms) from error
    if not terms.extended:
        if request.extension:
            raise _unknown_type(_tag(request))
        if request.id is not None:
            message = "a message has an id only where the subprotocol openenv-gym.v1 was agreed"
            raise invalid_message(fault("extra_forbidden", ["id"], message, request.id))
    if terms.production and type(request) in _CONTROL:
        message = (
            f"the server is in production mode, where reset, step and state do not exist, so {_tag(request)!r} is "
            "refused; to play episodes, serve with --mode simulation (setting mode, variable OPENENV_MODE)"
        )
        raise invalid_message(fault("mode", ["type"], message, _tag(request)))
    return request


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


def _tag(request: Request) -> str:
    return str(type(request).__struct_config__.tag)


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
