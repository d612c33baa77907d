"""``POST /reset``, ``POST /step``, ``GET /state`` and ``DELETE /session/{id}``: episodes over plain HTTP.

Without the header ``X-OpenEnv-Session`` each request has an environment of its own, as in the reference. ``POST
/reset`` with the header's value ``new`` keeps the environment and names it in the reply's header; later requests with
that name act on it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect

from openenv_gym.errors import InvalidActionError, MessageTooLargeError, OpenEnvGymError, ProtocolError
from openenv_gym.messages import JSON, JSONObject, Reset, State, Step, decode_json, encode_json
from openenv_gym.types import ResetRequest, StepRequest, StepResponse
from openenv_gym_server import dispatch
from openenv_gym_server.dispatch import Terms
from openenv_gym_server.errors import SessionEndedError, encoding, fault, invalid_action, invalid_message
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.reading import off_the_loop
from openenv_gym_server.routes.served import Served, failure, guarded_router
from openenv_gym_server.session import Limit
from openenv_gym_server.sessions import Sessions

__all__ = ["SESSION_HEADER", "router"]

SESSION_HEADER = "X-OpenEnv-Session"

_TERMS = Terms()

Job = Callable[[HostedEnvironment], bytes]
Prepare = Callable[[], Awaitable[tuple[Job, Limit]]]
"""Reads a request: what to do with the environment, and how long that may take."""


def router(served: Served) -> APIRouter:
    """The four routes."""
    routes = guarded_router(served)
    sessions = served.sessions
    reset_limit, step_limit = Limit.reset(served.settings), Limit.step(served.settings)

    @routes.post("/reset", tags=["Environment Control"], summary="Begin an episode", **_documented(ResetRequest))
    async def reset(request: Request) -> Response:
        async def prepare() -> tuple[Job, Limit]:
            body = await _body(request, served.settings.max_message_bytes)
            content = await off_the_loop(len(body), _reset_content, body)
            return lambda hosted: _reset_result(hosted, content), reset_limit

        return await _answered(request, sessions, prepare, begins=True)

    @routes.post("/step", tags=["Environment Control"], summary="Take an action", **_documented(StepRequest))
    async def step(request: Request) -> Response:
        async def prepare() -> tuple[Job, Limit]:
            body = await _body(request, served.settings.max_message_bytes)
            content = await off_the_loop(len(body), _step_content, body)
            action = Step(data=content.pop("action"))  # type: ignore[arg-type]
            limit = step_limit.within(content.get("timeout_s"), "the request's timeout_s")  # type: ignore[arg-type]
            return lambda hosted: _result(dispatch.step(hosted, action, _TERMS, content)), limit

        return await _answered(request, sessions, prepare)

    @routes.get("/state", tags=["State Management"], summary="Where the episode is")
    async def state(request: Request) -> Response:
        async def prepare() -> tuple[Job, Limit]:
            return lambda hosted: _encoded("state", dispatch.state(hosted, State(), _TERMS).data), step_limit

        return await _answered(request, sessions, prepare)

    @routes.delete("/session/{session_id}", tags=["Environment Control"], summary="End a kept session")
    async def end(request: Request, session_id: str) -> Response:
        try:
            session = sessions.kept(session_id)
        except OpenEnvGymError as error:
            return failure(error, request)
        if session.attached:
            session.end_at_detach = True
            return JSONResponse({"session_id": session_id, "closed": False, "closing": True}, 202)
        await sessions.end(session, "it was deleted")
        return Response(status_code=204)

    return routes


async def _answered(request: Request, sessions: Sessions, prepare: Prepare, *, begins: bool = False) -> Response:
    """The answer of a job, on the environment that the session header asks for: a new one only if ``begins``."""
    name = request.headers.get(SESSION_HEADER)
    try:
        job, limit = await prepare()
        if name is None:
            return _json(await sessions.borrow(job, limit))
        if name == "new" and begins:
            return await _first(request, sessions, job, limit)
        session = sessions.kept(name)
        try:
            return _json(await session.run(job, limit), session.id)
        except SessionEndedError as error:
            sessions.begin_end(session, str(error))
            raise
    except OpenEnvGymError as error:
        return failure(error, request, name)
    except ClientDisconnect:
        return Response(status_code=400)  # nobody hears it


async def _first(request: Request, sessions: Sessions, job: Job, limit: Limit) -> Response:
    """Keep a new session, unless its first reset fails or its client leaves, who alone would know its name."""
    session = await sessions.open("kept")
    try:
        await _still_there(request)
        answer = await session.run(job, limit)
        await _still_there(request)
    except BaseException:
        sessions.begin_end(session, "its first reset failed, or its client left")
        raise
    return _json(answer, session.id)


async def _still_there(request: Request) -> None:
    if await request.is_disconnected():
        raise ClientDisconnect


async def _body(request: Request, limit: int) -> bytes:
    """A body, received within the limit whatever its headers say.

    Raises:
        MessageTooLargeError: it is above the limit.
        ClientDisconnect: it did not come to its end.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise MessageTooLargeError(
                f"expected a body of at most {limit} bytes; the server's setting is max_message_size_mb "
                "(--max-message-size-mb)",
                size=len(body),
                limit=limit,
                setting="max_message_size_mb",
            )
    return bytes(body)


def _reset_content(body: bytes) -> JSONObject:
    data = _decoded(body)
    content = {} if data is None else _valid(ResetRequest, data)
    dispatch.check_reset(content, "body")
    return content


def _step_content(body: bytes) -> JSONObject:
    return _valid(StepRequest, _decoded(body))


def _decoded(body: bytes) -> JSON:
    """The JSON of a body; None where there is none.

    Raises:
        InvalidActionError: it is not JSON.
    """
    if not body:
        return None
    try:
        return decode_json(body)
    except ProtocolError as error:
        place = re.search(r"\(byte (\d+)\)", str(error))
        entry = fault("json_invalid", ["body", int(place[1]) if place else 0], "JSON decode error", {})
        raise invalid_message(entry | {"ctx": {"error": str(error)}}) from error


def _valid(model: type[BaseModel], data: JSON) -> JSONObject:
    """The fields of a body that were sent, checked by its model.

    Raises:
        InvalidActionError: each fault's path begins with ``body``.
    """
    if data is None:
        raise invalid_message(fault("missing", ["body"], "Field required", None))
    if not isinstance(data, dict):
        raise invalid_message(fault("model_attributes_type", ["body"], "Input should be a valid dictionary", data))
    try:
        # What the model makes of a value (a string that reads as a number) is what the environment gets.
        checked = model.model_validate({name: value for name, value in data.items() if name != "seed"})
    except ValidationError as error:
        raise invalid_action(error, ("body",)) from error
    content = {name: getattr(checked, name) for name in checked.model_fields_set}
    return content | ({"seed": data["seed"]} if "seed" in data else {})


def _reset_result(hosted: HostedEnvironment, content: JSONObject) -> bytes:
    try:
        return _result(dispatch.reset(hosted, Reset(data=content), _TERMS))
    except InvalidActionError as error:
        # A keyword that the environment refuses lies in the body here, and in a message's data elsewhere.
        faults = [one | {"loc": ["body", *one["loc"][1:]]} for one in error.errors or [] if one.get("loc")]
        raise (invalid_message(*faults) if faults else error) from error


def _result(reply: Any) -> bytes:
    outcome = reply.data
    reward = outcome.reward if outcome.reward is None else float(outcome.reward)
    metadata = outcome.metadata or None
    return _encoded(
        "observation",
        {"observation": outcome.observation, "reward": reward, "done": outcome.done, "metadata": metadata},
    )


def _encoded(what: str, content: object) -> bytes:
    with encoding(what, advanced=what == "observation"):
        return encode_json(content)


def _json(content: bytes, session_id: str | None = None) -> Response:
    headers = {SESSION_HEADER: session_id} if session_id else None
    return Response(content, media_type="application/json", headers=headers)


def _documented(model: type[BaseModel]) -> dict[str, Any]:
    """What OpenAPI says of a route that reads its body itself."""
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {
        "responses": {200: {"model": StepResponse}},
        "openapi_extra": {"requestBody": {"content": content, "required": model is StepRequest}},
    }
