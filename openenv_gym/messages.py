"""Every message of the wire as a frozen type, and the JSON text of each.

A client's requests and a server's replies, OpenEnv's own and those of the negotiated extension (their ``type``
begins with ``x-``). Not for deciding what may be said when (``session.py``) nor for what a value inside ``data``
means (``spaces``). No I/O here.

Source of the shapes: the WebSocket frames of the reference implementation, ``openenv`` 0.10.0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from openenv_gym.errors import ProtocolError, ValueMappingError

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
JSONObject: TypeAlias = "dict[str, JSON]"
RequestId: TypeAlias = "int | str | None"

SUBPROTOCOL = "openenv-gym.v1"
"""The WebSocket subprotocol under which both ends may use ``id`` and the ``x-`` messages."""


class Message(
    msgspec.Struct, frozen=True, tag_field="type", omit_defaults=True, kw_only=True, forbid_unknown_fields=True
):
    """What requests and replies share; ``id`` pairs the two and travels only where the subprotocol was agreed."""

    extension: ClassVar[bool] = False
    id: RequestId = None


class Reset(Message, tag="reset", frozen=True):
    """Begin an episode; ``data`` holds reset's keyword arguments (``seed``, ``episode_id``, ``options`` …)."""

    data: dict[str, Any] = {}


class Step(Message, tag="step", frozen=True):
    """Take an action; ``data`` holds the action's fields themselves."""

    data: dict[str, Any]


class State(Message, tag="state", frozen=True):
    """Ask for the environment's state."""


class Close(Message, tag="close", frozen=True):
    """End the session; the server closes the socket without a reply."""


class Mcp(Message, tag="mcp", frozen=True):
    """A JSON-RPC request, carried whole in ``data``."""

    data: dict[str, Any]


class OpenSettings(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """How a session's environment is to be made.

    ``num_envs`` above 1, ``autoreset_mode`` and ``vectorization`` belong to vector sessions.
    """

    num_envs: int = 1
    autoreset_mode: Literal["NextStep", "SameStep", "Disabled"] | None = None
    vectorization: Literal["sync", "async", "vector_entry_point"] | None = None
    render_mode: str | None = None
    env_kwargs: dict[str, Any] = {}


class Open(Message, tag="x-open", frozen=True):
    """Make the session's environment; must be the first request where the subprotocol was agreed."""

    extension: ClassVar[bool] = True
    data: OpenSettings = OpenSettings()


class Render(Message, tag="x-render", frozen=True):
    """Ask for the environment's current rendering."""

    extension: ClassVar[bool] = True


class CallSettings(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """A method by name; arguments and result travel in the exact form of ``openenv_gym.info``."""

    name: str
    args: list[Any] = []
    kwargs: dict[str, Any] = {}


class Call(Message, tag="x-call", frozen=True):
    """Call a method of the environment that the server allows by name."""

    extension: ClassVar[bool] = True
    data: CallSettings


class AttributeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An attribute by name."""

    name: str


class GetAttr(Message, tag="x-get_attr", frozen=True):
    """Read an attribute of the environment that the server allows by name."""

    extension: ClassVar[bool] = True
    data: AttributeSettings


Request: TypeAlias = Reset | Step | State | Close | Mcp | Open | Render | Call | GetAttr


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What reset and step give back, as it is on the wire.

    ``observation`` holds the observation's fields; ``reward`` keeps its JSON type; ``metadata`` is absent where it
    is empty.
    """

    observation: dict[str, Any]
    reward: bool | int | float | None = None
    done: bool = False
    metadata: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET


class ObservationReply(Message, tag="observation", frozen=True, forbid_unknown_fields=False):
    """The answer to reset and step."""

    data: Outcome


class StateReply(Message, tag="state", frozen=True, forbid_unknown_fields=False):
    """The answer to state."""

    data: dict[str, Any]


class McpReply(Message, tag="mcp", frozen=True, forbid_unknown_fields=False):
    """A JSON-RPC response, carried whole in ``data``."""

    data: dict[str, Any]


class ErrorReply(Message, tag="error", frozen=True, forbid_unknown_fields=False):
    """The request failed: ``data`` has ``message``, ``code`` and what belongs to the code."""

    data: dict[str, Any]


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to ``x-open``: what the session's environment is.

    ``schema`` is the ``/schema`` document of this very environment, ``metadata`` its ``/metadata`` document;
    ``resume_token`` is null until a server grants one.
    """

    session_id: str
    schema: dict[str, Any]
    metadata: dict[str, Any]
    render_mode: str | None = None
    resume_token: str | None = None


class OpenReply(Message, tag="x-open", frozen=True, forbid_unknown_fields=False):
    """The session's environment is made."""

    extension: ClassVar[bool] = True
    data: Opened


class ValueData(msgspec.Struct, frozen=True, kw_only=True):
    """One value in the exact form of ``openenv_gym.info``."""

    value: Any = None


class RenderReply(Message, tag="x-render", frozen=True, forbid_unknown_fields=False):
    """The rendering: an array, a string, a list of them, or null."""

    extension: ClassVar[bool] = True
    data: ValueData


class CallReply(Message, tag="x-call", frozen=True, forbid_unknown_fields=False):
    """What the method returned."""

    extension: ClassVar[bool] = True
    data: ValueData


class GetAttrReply(Message, tag="x-get_attr", frozen=True, forbid_unknown_fields=False):
    """The attribute's value."""

    extension: ClassVar[bool] = True
    data: ValueData


Reply: TypeAlias = (
    ObservationReply | StateReply | McpReply | ErrorReply | OpenReply | RenderReply | CallReply | GetAttrReply
)

REQUEST_TYPES: dict[str, type[Request]] = {
    str(kind.__struct_config__.tag): kind for kind in (Reset, Step, State, Close, Mcp, Open, Render, Call, GetAttr)
}
"""Every request by the ``type`` it has on the wire."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()
_reply_decoder = msgspec.json.Decoder(Reply)


def encode_json(value: Any, *, finite: bool = False) -> bytes:
    """The compact JSON text of a value, in UTF-8.

    Args:
        value: JSON values and messages; tuples and sets are written as lists.
        finite: whether it is known that no float in it is NaN or an infinity. Such a one would be written as null.

    Raises:
        ValueMappingError: a NaN or an infinity (JSON has neither and the encoder would write null), a string with a
            lone surrogate, or an object that has no JSON form; ``path`` says where.
    """
    try:
        text = _encoder.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        path = _find(value, _has_no_json_form)
        raise ValueMappingError(
            f"expected a value with a JSON form at {path or '$'}: {error}", path=path or "$"
        ) from error
    # The encoder writes non-finite floats as null. A text without null has none, so the walk is rarely needed.
    if not finite and b"null" in text:
        path = _find(value, _is_not_finite)
        if path is not None:
            raise ValueMappingError(
                f"expected a finite number at {path}, got NaN or an infinity, which JSON does not have; "
                'where the Space is floating they travel as the strings "NaN", "Infinity", "-Infinity"',
                path=path,
            )
    return text


def _is_not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _has_no_json_form(value: Any) -> bool:
    if isinstance(value, dict | list | tuple | msgspec.Struct):
        return False
    try:
        _encoder.encode(value)
    except (TypeError, ValueError):
        return True
    return False


def _find(value: Any, fault: Callable[[Any], bool]) -> str | None:
    """The JSON path of the first value that has the fault, or None. Depth-first, without recursion; cycles end."""
    stack = [("$", value)]
    seen: set[int] = set()
    while stack:
        place, item = stack.pop()
        if fault(item):
            return place
        if id(item) in seen or (fault is _is_not_finite and type(item) is list and _is_finite_list(item)):
            continue
        seen.add(id(item))
        stack.extend((f"{place}{step}", entry) for step, entry in reversed(_parts(item)))
    return None


def _is_finite_list(items: list[Any]) -> bool:
    """Whether it is plain to see that nested lists hold finite numbers and text alone; frames are such.

    A level at a time, without a loop of Python's over its items.
    """
    for _ in range(_MOST_LEVELS):
        if set(map(type, items)) != {list}:
            break
        items = list(chain.from_iterable(items))
    try:
        # Far cheaper than the set of the types.
        msgspec.convert(items, list[int])
    except msgspec.ValidationError:
        kinds = set(map(type, items))
        floats = items if kinds == {float} else [item for item in items if type(item) is float]
        return kinds <= _PLAIN and math.isfinite(sum(floats))
    return True


_MOST_LEVELS = 32
_PLAIN = {int, bool, str, float, type(None)}


def _parts(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, msgspec.Struct):
        return [(f".{name}", getattr(value, name)) for name in value.__struct_fields__]
    if isinstance(value, dict):
        return [(f".{key}", entry) for key, entry in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [(f"[{index}]", entry) for index, entry in enumerate(value)]
    return []


def decode_json(text: bytes | str) -> JSON:
    """The value of a JSON text.

    Raises:
        ProtocolError: the text is not JSON (bare NaN and Infinity included), not UTF-8, or nested too deeply.
    """
    try:
        return _decoder.decode(text)  # type: ignore[no-any-return]  # any JSON, as the decoder says
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ProtocolError(f"expected JSON: {error}", received=_excerpt(text)) from error


def decode_reply(text: bytes | str) -> Reply:
    """A server's message.

    Raises:
        ProtocolError: it is not JSON, or not a message a server may send.
    """
    try:
        return _reply_decoder.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ProtocolError(
            f"expected an OpenEnv reply, got one that does not fit: {error}; it begins {_excerpt(text)!r}",
            received=_excerpt(text),
        ) from error


def _excerpt(text: bytes | str) -> str:
    start = text[:200]
    return start.encode("utf-8", "replace").decode() if isinstance(start, str) else start.decode("utf-8", "replace")
