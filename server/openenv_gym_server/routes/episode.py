"""``POST /reset``, ``POST /step``, ``GET /state`` and ``DELETE /session/{id}``: episodes over plain HTTP.

Without the header ``X-OpenEnv-Session`` each request has an environment of its own, as in the reference. ``POST
/reset`` with the header's value ``new`` keeps the environment and names it in the reply's header; later requests with
that name act on it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError

from openenv_gym.errors import MessageTooLargeError, OpenEnvGymError, ProtocolError
from openenv_gym.messages import JSON, JSONObject, Reset, State, Step, decode_json, encode_json
from openenv_gym.types import ResetRequest, StepRequest, StepResponse
from openenv_gym_server import dispatch
from openenv_gym_server.dispatch import Terms
from openenv_gym_server.errors import SessionEndedError, encoding, fault, invalid_action, invalid_message
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.routes.served import Served, failure, guarded_router
from openenv_gym_server.sessions import Sessions

__all__ = ["SESSION_HEADER", "router"]

SESSION_HEADER = "X-OpenEnv-Session"

LARGE_BODY = 1_000_000
"""Bodies above this many bytes are parsed off the event loop."""

_TERMS = Terms()

Job = Callable[[HostedEnvironment], bytes]


def router(served: Served) -> APIRouter:
    """The four routes."""
    routes = guarded_router(served)
    sessions = served.sessions

    @routes.post("/reset", tags=["Environment Control"], summary="Begin an episode", **_documented(ResetRequest))
    async def reset(request: Request) -> Response:
        async def job() -> Job:
            data = await _body(request, served.settings.max_message_bytes)
            content = {} if data is None else _valid(ResetRequest, data)
            dispatch.check_reset(content, "body")
            return lambda hosted: _result(dispatch.reset(hosted, Reset(data=content), _TERMS))

        return await _answered(request, sessions, job, limit="reset_timeout_s")

    @routes.post("/step", tags=["Environment Control"], summary="Take an action", **_documented(StepRequest))
    async def step(request: Request) -> Response:
        async def job() -> Job:
            content = _valid(StepRequest, await _body(request, served.settings.max_message_bytes))
            action = Step(data=content.pop("action"))  # type: ignore[arg-type]
            return lambda hosted: _result(dispatch.step(hosted, action, _TERMS, content))

        return await _answered(request, sessions, job, limit="step_timeout_s")

    @routes.get("/state", tags=["State Management"], summary="Where the episode is")
    async def state(request: Request) -> Response:
        async def job() -> Job:
            return lambda hosted: _encoded("state", dispatch.state(hosted, State(), _TERMS).data)

        return await _answered(request, sessions, job, limit="step_timeout_s")

    @routes.delete("/session/{session_id}", tags=["Environment Control"], summary="End a kept session")
    async def end(session_id: str) -> Response:
        try:
            session = sessions.kept(session_id)
        except OpenEnvGymError as error:
            return failure(error)
        if session.attached:
            session.end_at_detach = True
            return JSONResponse({"session_id": session_id, "closed": False, "closing": True}, 202)
        await sessions.end(session, "it was deleted")
        return Response(status_code=204)

    return routes


async def _answered(request: Request, sessions: Sessions, prepare: Callable[[], Any], *, limit: str) -> Response:
    """The answer of a job, on the environment that the session header asks for."""
    try:
        job = await prepare()
        name = request.headers.get(SESSION_HEADER)
        if name is None:
            return _json(await sessions.borrow(job, limit=limit))
        if name == "new" and limit == "reset_timeout_s":
            return await _first(sessions, job)
        session = sessions.kept(name)
        try:
            return _json(await session.run(job, limit), session.id)
        except SessionEndedError as error:
            sessions.begin_end(session, str(error))
            raise
    except OpenEnvGymError as error:
        return failure(error)


async def _first(sessions: Sessions, job: Job) -> Response:
    """Keep a new session, unless its first reset fails."""
    session = await sessions.open("kept")
    try:
        return _json(await session.run(job, "reset_timeout_s"), session.id)
    except BaseException:
        sessions.begin_end(session, "its first reset failed")
        raise


async def _body(request: Request, limit: int) -> JSON:
    """The JSON of a body, read within the limit whatever its headers say; None where there is none.

    Raises:
        MessageTooLargeError: it is above the limit.
        InvalidActionError: it is not JSON.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise MessageTooLargeError(
                f"expected a body of at most {limit} bytes; the server's setting is max_message_size_mb",
                size=len(body),
                limit=limit,
                setting="max_message_size_mb",
            )
    if not body:
        return None
    try:
        if len(body) > LARGE_BODY:
            return await asyncio.to_thread(decode_json, bytes(body))
        return decode_json(bytes(body))
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
