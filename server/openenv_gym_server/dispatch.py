"""What each message does: one plain function a message type, and one table of them.

Every transport calls these: a route decodes, calls, encodes. They run where the environment lives (its worker's
thread) and never touch a socket. A new message is a class in ``openenv_gym.messages``, a function here and a line in
``HANDLERS``; what it does in a session of several environments is in ``vector_dispatch.py``. Not for reading a message
(``parsing.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from openenv_gym.errors import ValueMappingError
from openenv_gym.frames import Packed
from openenv_gym.json_text import JSONObject, encode_json
from openenv_gym.messages import (
    Call,
    CallReply,
    Close,
    GetAttr,
    GetAttrReply,
    Mcp,
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
    Reset,
    SetAttr,
    SetAttrReply,
    State,
    StateReply,
    Step,
    VectorReset,
    VectorStep,
)
from openenv_gym_server.errors import error_frame, fault, invalid_message, raise_as_unsendable
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.packed import packed_answer
from openenv_gym_server.parsing import (
    Payload,
    Terms,
    check_reset,
    exact,
    exact_list,
    no_binary,
    read,
    tag_of,
    value_data,
)
from openenv_gym_server.remote_names import check_name, check_settable
from openenv_gym_server.reports import report
from openenv_gym_server.vector_dispatch import vector_answer, vector_packed
from openenv_gym_server.vector_hosting import HostedVector, wrong_number

__all__ = ["HANDLERS", "Hosted", "answer", "observed", "perform", "respond"]

Hosted: TypeAlias = HostedEnvironment | HostedVector
"""What a session has: one environment, or several."""


def respond(hosted: Hosted, payload: Payload, terms: Terms) -> str | bytes | Mcp | None:
    """The answer to one message as it came; None where the peer asked to close; a JSON-RPC request is given back.

    Whatever is wrong becomes an error frame: the session goes on, unless an environment of several has raised.
    """
    request = read(payload, terms)
    return request if isinstance(request, str | Mcp) else perform(hosted, request, terms)


def perform(hosted: Hosted, request: Request | Packed, terms: Terms) -> str | bytes | None:
    """The answer to one message that was read; None where the peer asked to close."""
    if type(request) is Close:
        return None
    try:
        if type(request) is Packed:
            return _packed(hosted, request)
        return answer(hosted, request, terms).decode()  # type: ignore[arg-type]  # of the type that is left
    except BaseException as error:  # noqa: BLE001 - the outermost handler of a message; an environment may raise anything
        report(error, terms.session_id, tag_of(request))
        return error_frame(error, request.id, share_traceback=terms.share_tracebacks).decode()


def answer(hosted: Hosted, request: Request, terms: Terms) -> bytes:
    """The JSON text of the reply to a request.

    Raises:
        OpenEnvGymError: what ``errors.error_frame`` makes a frame of.
    """
    if isinstance(hosted, HostedVector) and type(request) is not Open:
        reply = vector_answer(hosted, request, terms)
    else:
        reply = HANDLERS[type(request)](hosted, request, terms)  # type: ignore[arg-type]  # open_ takes either
    try:
        return encode_json(reply, finite=hosted.finite and type(request) in _OF_CODEC)
    except ValueMappingError as error:
        raise_as_unsendable(error, "answer", advanced=type(request) in _ADVANCING)


def _packed(hosted: Hosted, request: Packed) -> bytes:
    if not hosted.binary:
        raise no_binary()
    return vector_packed(hosted, request) if isinstance(hosted, HostedVector) else packed_answer(hosted, request)


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


def open_(hosted: Hosted, request: Open, terms: Terms) -> OpenReply:
    """Tell what the environment is that was made for this very request."""
    if terms.attached:
        if request.data != OpenSettings():
            message = "the session's environment exists already; attach to it without settings"
            raise invalid_message(fault("already_open", ["data"], message, None))
    elif terms.opened:
        raise invalid_message(
            fault("already_open", ["type"], "the session is open already; open another connection", "x-open")
        )
    vector: dict[str, Any] = {}
    if isinstance(hosted, HostedVector):
        vector = {
            "num_envs": hosted.num_envs,
            "autoreset_mode": hosted.autoreset_mode,
            "partial": hosted.partial,
            "first_come": hosted.first_come,
        }
    described = Opened(
        session_id=terms.session_id,
        schema=hosted.schema(),
        metadata=hosted.metadata(),
        render_mode=hosted.render_mode,
        binary=hosted.binary,
        **vector,
    )
    return OpenReply(data=described, id=request.id)


def render(hosted: HostedEnvironment, request: Render, terms: Terms) -> RenderReply:  # noqa: ARG001 - as the table wants
    """Give the current rendering."""
    return RenderReply(data=value_data("rendering", hosted.render()), id=request.id)


def call(hosted: HostedEnvironment, request: Call, terms: Terms) -> CallReply:
    """Call a method that the operator allows; only then are the arguments read."""
    check_name(request.data.name, terms.remote_names)
    args = exact_list(request.data.args, "data", "args")
    keywords = {name: exact(value, "data", "kwargs", name) for name, value in request.data.kwargs.items()}
    result = hosted.remote.call(request.data.name, args, keywords, terms.remote_names)
    return CallReply(data=value_data("result", result), id=request.id)


def get_attr(hosted: HostedEnvironment, request: GetAttr, terms: Terms) -> GetAttrReply:
    """Read an attribute that the operator allows."""
    return GetAttrReply(
        data=value_data("attribute", hosted.remote.attribute(request.data.name, terms.remote_names)), id=request.id
    )


def set_attr(hosted: HostedEnvironment, request: SetAttr, terms: Terms) -> SetAttrReply:
    """Set an attribute that the operator allows; only then is the value read."""
    check_settable(request.data.name, terms.remote_names)
    values = exact_list(request.data.values, "data", "values")
    if len(values) != 1:
        raise wrong_number("values", len(values), 1)
    hosted.remote.set_attribute(request.data.name, values[0], terms.remote_names)
    return SetAttrReply(id=request.id)


def of_several(hosted: HostedEnvironment, request: VectorReset | VectorStep, terms: Terms) -> Reply:  # noqa: ARG001
    """Refuse what a session of several environments has."""
    message = f"this session has one environment and {tag_of(request)!r} is for several; send 'reset' or 'step'"
    raise invalid_message(fault("single_session", ["type"], message, tag_of(request)))


HANDLERS: dict[type[Any], Callable[[HostedEnvironment, Any, Terms], Reply]] = {
    Reset: reset,
    Step: step,
    State: state,
    Open: open_,
    Render: render,
    Call: call,
    GetAttr: get_attr,
    SetAttr: set_attr,
    VectorReset: of_several,
    VectorStep: of_several,
}
"""The function of every message that is answered here; ``close`` and ``mcp`` are not. ``vector_dispatch.py`` has a
vector's."""

_ADVANCING = frozenset({Reset, Step, Call, VectorReset, VectorStep})
_OF_CODEC = frozenset({Reset, Step, VectorReset, VectorStep})
