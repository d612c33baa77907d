"""What each message does in a vector session: one plain function a message type, and one table of them.

``dispatch.py`` is the way in and calls these. Not for the environments (``vector_hosting.py`` is their face).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from openenv_gym import frames
from openenv_gym.errors import ProtocolError
from openenv_gym.exact import Writer
from openenv_gym.frames import Kind, Packed, Wait
from openenv_gym.json_text import JSON, decode_json
from openenv_gym.messages import (
    Call,
    CallReply,
    GetAttr,
    GetAttrReply,
    Render,
    RenderReply,
    Reply,
    Reset,
    SetAttr,
    SetAttrReply,
    State,
    StateReply,
    Step,
    VectorOutcome,
    VectorReply,
    VectorReset,
    VectorResetSettings,
    VectorStep,
)
from openenv_gym.spaces.atoms import spell_float
from openenv_gym_server.errors import fault, invalid_message
from openenv_gym_server.first_come import check_idle, no_wait, step_first_come
from openenv_gym_server.parsing import Terms, exact, exact_list, malformed, tag_of, value_data
from openenv_gym_server.remote_names import check_name, check_settable
from openenv_gym_server.vector_hosting import HostedVector, VectorResult, wrong_number

__all__ = ["VECTOR_HANDLERS", "vector_answer", "vector_packed"]


def vector_answer(hosted: HostedVector, request: Any, terms: Terms) -> Reply:
    """The reply to a request, ``x-open`` excepted."""
    if type(request) is VectorStep and request.data.at_least is not None:
        return first_come_step(hosted, request)
    check_idle(hosted, repr(tag_of(request)))
    return VECTOR_HANDLERS[type(request)](hosted, request, terms)


def first_come_step(hosted: HostedVector, request: VectorStep) -> VectorReply:
    """Take actions in some environments, and answer for all that are done once they are enough."""
    data = request.data
    assert data.at_least is not None
    wait = Wait(data.at_least, data.within_s)
    ids, result = step_first_come(
        hosted, data.env_ids, len(data.actions), lambda ids: hosted.decoded(data.actions, ids), wait
    )
    return VectorReply(data=_outcome(hosted, result, ids, ids), id=request.id)


def vector_reset(hosted: HostedVector, request: VectorReset, terms: Terms) -> VectorReply:  # noqa: ARG001
    """Begin episodes in the environments named, or in all."""
    ids = hosted.chosen(request.data.env_ids)
    result = _reset(hosted, request.data, ids)
    return VectorReply(data=_outcome(hosted, result, request.data.env_ids, ids), id=request.id)


def vector_step(hosted: HostedVector, request: VectorStep, terms: Terms) -> VectorReply:  # noqa: ARG001
    """Take an action in each of the environments named, or in all."""
    if request.data.within_s is not None:
        raise no_wait("within_s")
    ids = hosted.chosen(request.data.env_ids)
    if len(request.data.actions) != len(ids):
        raise wrong_number("actions", len(request.data.actions), len(ids))
    result = hosted.step(ids, hosted.decoded(request.data.actions, ids))
    return VectorReply(data=_outcome(hosted, result, request.data.env_ids, ids), id=request.id)


def vector_packed(hosted: HostedVector, packed: Packed) -> bytes:
    """The binary answer to a binary reset or step."""
    if packed.wait is not None:
        done, result = step_first_come(
            hosted, packed.env_ids, packed.count, lambda ids: hosted.unpacked(packed.body, ids), packed.wait
        )
        return _frame(hosted, packed.id, (done, done), result)
    check_idle(hosted, tag_of(packed))
    if packed.env_ids is None and packed.count != hosted.num_envs:
        raise wrong_number("rows", packed.count, hosted.num_envs)
    ids = hosted.chosen(packed.env_ids)
    if packed.kind is Kind.STEP:
        result = hosted.step(ids, hosted.unpacked(packed.body, ids))
    else:
        result = _reset(hosted, reset_settings(packed.body), ids)
    return _frame(hosted, packed.id, (packed.env_ids, ids), result)


def _frame(hosted: HostedVector, request_id: int, named: tuple[Any, Sequence[int]], result: VectorResult) -> bytes:
    """The binary answer, of environments that are named in it (or None) and those that it is of."""
    env_ids, ids = named
    final = result.final
    return frames.write_outcome(
        request_id,
        result.count,
        env_ids,
        observations=hosted.parts(result.observations, result.count, ids) if result.count else (),
        stepped=None if result.rewards is None else (result.rewards, result.terminations, result.truncations),
        info=_written(result.infos) if result.infos else None,
        notes=result.notes,
        final=final and (final[0], hosted.parts(final[1], len(final[0]), [ids[row] for row in final[0]])),
    )


def _reset(hosted: HostedVector, data: VectorResetSettings, ids: Any) -> VectorResult:
    seeds = data.seeds if data.seeds is not None else [None] * len(ids)
    if len(seeds) != len(ids):
        raise wrong_number("seeds", len(seeds), len(ids))
    for row, seed in enumerate(seeds):
        if seed is not None and seed < 0:
            message = "Input should be greater than or equal to 0"
            raise invalid_message(fault("greater_than_equal", ["data", "seeds", row], message, seed))
    options = data.options
    if options is not None:
        options = {name: exact(value, "data", "options", name) for name, value in options.items()}
    return hosted.reset(ids, seeds, options)


def reset_settings(body: memoryview) -> VectorResetSettings:
    """What a binary reset asks for.

    Raises:
        InvalidActionError: it is not as a vector's reset wants it.
    """
    try:
        return msgspec.convert(decode_json(bytes(body) or b"{}"), VectorResetSettings)
    except (ProtocolError, msgspec.ValidationError) as error:
        raise malformed(["data"], f"expected a reset's data as JSON: {error}") from error


def _outcome(hosted: HostedVector, result: VectorResult, env_ids: list[int] | None, ids: Any) -> VectorOutcome:
    final = None
    if result.final is not None:
        rows, observations = result.final
        last = hosted.fields(observations, len(rows), [ids[row] for row in rows])
        final = dict(zip(rows, last, strict=True))
    stepped: dict[str, Any] = {}
    if result.rewards is not None:
        stepped = {
            "rewards": [spell_float(reward) for reward in result.rewards.tolist()],
            "terminations": result.terminations.tolist(),
            "truncations": result.truncations.tolist(),
        }
    return VectorOutcome(
        observations=hosted.fields(result.observations, result.count, ids),
        env_ids=env_ids,
        infos=_written(result.infos) if result.infos else {},
        final=final,
        notes=result.notes,
        **stepped,
    )


def _written(infos: dict[str, Any]) -> JSON:
    """The exact form of infos; an object that cannot travel does not fail the step."""
    return Writer(opaque=True).write(infos)


# ------------------------------------------------------------------------------------------- everything else


def state(hosted: HostedVector, request: State, terms: Terms) -> StateReply:  # noqa: ARG001 - as the table wants
    """Tell where each environment is."""
    return StateReply(data=hosted.state(), id=request.id)


def render(hosted: HostedVector, request: Render, terms: Terms) -> RenderReply:  # noqa: ARG001 - as the table wants
    """Give the current rendering of each."""
    return RenderReply(data=value_data("rendering", hosted.render()), id=request.id)


def call(hosted: HostedVector, request: Call, terms: Terms) -> CallReply:
    """Call a method of each that the operator allows; only then are the arguments read."""
    data = request.data
    check_name(data.name, terms.remote_names)
    args = exact_list(data.args, "data", "args")
    keywords = {name: exact(value, "data", "kwargs", name) for name, value in data.kwargs.items()}
    result = hosted.call(data.name, args, keywords, terms.remote_names)
    return CallReply(data=value_data("result", result), id=request.id)


def get_attr(hosted: HostedVector, request: GetAttr, terms: Terms) -> GetAttrReply:
    """Read an attribute of each that the operator allows; as in Gymnasium, one that can be called is called."""
    result = hosted.call(request.data.name, [], {}, terms.remote_names)
    return GetAttrReply(data=value_data("attribute", result), id=request.id)


def set_attr(hosted: HostedVector, request: SetAttr, terms: Terms) -> SetAttrReply:
    """Set an attribute of each that the operator allows; only then are the values read."""
    check_settable(request.data.name, terms.remote_names)
    values = exact_list(request.data.values, "data", "values")
    hosted.set_attributes(request.data.name, values, terms.remote_names)
    return SetAttrReply(id=request.id)


def single(hosted: HostedVector, request: Reset | Step, terms: Terms) -> Reply:  # noqa: ARG001 - as the table wants
    """Refuse what a session of one environment has."""
    kind = "x-vector_step" if isinstance(request, Step) else "x-vector_reset"
    message = f"this session has {hosted.num_envs} environments: {tag_of(request)!r} is for one; send {kind!r}"
    raise invalid_message(fault("vector_session", ["type"], message, tag_of(request)))


VECTOR_HANDLERS: dict[type[Any], Callable[[HostedVector, Any, Terms], Reply]] = {
    VectorReset: vector_reset,
    VectorStep: vector_step,
    State: state,
    Render: render,
    Call: call,
    GetAttr: get_attr,
    SetAttr: set_attr,
    Reset: single,
    Step: single,
}
"""The function of every message that a vector session answers, ``x-open`` excepted."""
