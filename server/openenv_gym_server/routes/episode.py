"""``POST /reset``, ``POST /step``, ``GET /state`` and ``DELETE /session/{id}``: episodes over plain HTTP.

Without the header ``X-OpenEnv-Session`` each request has an environment of its own, as in the reference. ``POST
/reset`` with the header's value ``new`` keeps the environment and names it in the reply's header; later requests with
that name act on it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.requests import ClientDisconnect

from openenv_gym.errors import InvalidActionError, OpenEnvGymError
from openenv_gym.json_text import JSON, JSONObject, encode_json
from openenv_gym.messages import (
    Outcome,
    Reset,
    State,
    Step,
)
from openenv_gym.types import ResetRequest, ServerMode, StepRequest, StepResponse
from openenv_gym_server import dispatch
from openenv_gym_server.errors import SessionEndedError, encoding, invalid_message
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.parsing import Terms, check_reset
from openenv_gym_server.reading import off_the_loop
from openenv_gym_server.routes import body
from openenv_gym_server.routes.served import Served, failure, guarded_router
from openenv_gym_server.session import TOOL_GRACE_S, Limit, Serving, Session
from openenv_gym_server.sessions import Sessions, without_session
from openenv_gym_server.tool_codec import called_tool

__all__ = ["SESSION_HEADER", "router"]

SESSION_HEADER = "X-OpenEnv-Session"

_TERMS = Terms()

_SERVING = Serving(ServerMode.SIMULATION.value)  # production has none of these routes

_SESSION_PARAMETER = {
    "name": SESSION_HEADER,
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": 'Name of a kept session; "new" with /reset keeps one, whose name is in the reply\'s header. '
    "Without it the request has an environment of its own.",
}

_REFUSALS = {
    404: {"description": "No kept session has that name"},
    422: {"description": "The request is not as it has to be; the environment has not seen it"},
    503: {"description": "The server is full"},
    504: {"description": "The environment took too long; its session has ended"},
}


def _with_session(keywords: dict[str, Any]) -> dict[str, Any]:
    """Keywords of a route's decorator, with what OpenAPI says of the session header."""
    extra = keywords.get("openapi_extra", {}) | {"parameters": [_SESSION_PARAMETER]}
    return keywords | {"openapi_extra": extra, "responses": keywords.get("responses", {}) | _REFUSALS}


_RESET = _with_session(body.documented(ResetRequest, StepResponse, required=False))
_STEP = _with_session(body.documented(StepRequest, StepResponse))
_STATE = _with_session({})

Job = Callable[[HostedEnvironment], bytes]
Prepare = Callable[[], Awaitable[tuple[Job, Limit]]]
"""Reads a request: what to do with the environment, and how long that may take."""


def router(served: Served) -> APIRouter:
    """The four routes."""
    routes = guarded_router(served)
    sessions = served.sessions
    reset_limit, step_limit = Limit.reset(served.settings), Limit.step(served.settings)

    @routes.post("/reset", tags=["Environment Control"], summary="Begin an episode", **_RESET)
    async def reset(request: Request) -> Response:
        async def prepare() -> tuple[Job, Limit]:
            raw = await body.received(request, served.settings.max_message_bytes)
            content = await off_the_loop(len(raw), _reset_content, raw)
            return lambda hosted: _reset_result(hosted, content), reset_limit

        return await _answered(request, sessions, prepare, begins=True)

    @routes.post("/step", tags=["Environment Control"], summary="Take an action", **_STEP)
    async def step(request: Request) -> Response:
        async def prepare() -> tuple[Job, Limit]:
            raw = await body.received(request, served.settings.max_message_bytes)
            content = await off_the_loop(len(raw), _step_content, raw)
            job = _Stepping(Step(data=content.pop("action")), content)  # type: ignore[arg-type]
            return job, job.within(step_limit if SESSION_HEADER in request.headers else without_session(step_limit))

        return await _answered(request, sessions, prepare)

    @routes.get("/state", tags=["State Management"], summary="Where the episode is", **_STATE)
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
        return await _ended(sessions, session)

    return routes


async def _ended(sessions: Sessions, session: Session) -> Response:
    """End a kept session; or say that it ends later: with its socket, or when what hangs in it returns."""
    if session.attached:
        session.end_at_detach = True
    else:
        await sessions.end(session, "it was deleted")
    if session.gone.done():
        return Response(status_code=204)
    return JSONResponse({"session_id": session.id, "closed": False, "closing": True}, 202)


async def _answered(request: Request, sessions: Sessions, prepare: Prepare, *, begins: bool = False) -> Response:
    """The answer of a job, on the environment that the session header asks for: a new one only if ``begins``."""
    name = request.headers.get(SESSION_HEADER)
    try:
        job, limit = await prepare()
        if name is None:
            return _json(await sessions.borrow(job, limit, _SERVING))
        if name == "new" and begins:
            return await _first(request, sessions, job, limit)
        session = sessions.kept(name)
        try:
            return _json(await _on_session(session, job, limit), session.id)
        except SessionEndedError as error:
            sessions.begin_end(session, str(error))
            raise
    except OpenEnvGymError as error:
        return failure(error, request, name)
    except ClientDisconnect:
        return Response(status_code=400)  # nobody hears it


class _Stepping:
    """A step, as a job."""

    def __init__(self, step: Step, keywords: JSONObject) -> None:
        self.step = step
        self._keywords = keywords
        self.timeout_s: float | None = keywords.get("timeout_s")  # type: ignore[assignment]  # its model has checked it

    def within(self, limit: Limit) -> Limit:
        """The time it has."""
        limit = limit.within(self.timeout_s, "the request's timeout_s")
        return limit if called_tool(self.step.data) is None else limit._replace(grace=TOOL_GRACE_S)

    def __call__(self, hosted: HostedEnvironment) -> bytes:
        return _result(dispatch.step(hosted, self.step, _TERMS, self._keywords).data)


async def _on_session(session: Session, job: Job, limit: Limit) -> bytes:
    """The answer of a job on a kept session, which outlives a tool that takes too long."""
    if isinstance(job, _Stepping) and (tool := session.called_tool(job.step.data)) is not None:
        return await session.call_tool(job, tool, _result, job.timeout_s)
    return await session.run(job, limit)


async def _first(request: Request, sessions: Sessions, job: Job, limit: Limit) -> Response:
    """Keep a new session, unless its first reset fails or its client leaves, who alone would know its name."""
    session = await sessions.open("kept", serving=_SERVING)
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


def _reset_content(raw: bytes) -> JSONObject:
    data = body.decoded(raw, required=False)
    content = {} if data is None else _valid(ResetRequest, data)
    check_reset(content, "body")
    return content


def _step_content(raw: bytes) -> JSONObject:
    return _valid(StepRequest, body.decoded(raw))


def _valid(model: type[BaseModel], data: JSON) -> JSONObject:
    """The fields of a body that were sent, checked by its model.

    Raises:
        InvalidActionError: each fault's path begins with ``body``.
    """
    # What the model makes of a value (a string that reads as a number) is what the environment gets.
    seedless = {name: value for name, value in data.items() if name != "seed"} if isinstance(data, dict) else data
    checked = body.checked(model, seedless)
    content = {name: getattr(checked, name) for name in checked.model_fields_set}
    return content | ({"seed": data["seed"]} if isinstance(data, dict) and "seed" in data else {})


def _reset_result(hosted: HostedEnvironment, content: JSONObject) -> bytes:
    try:
        return _result(dispatch.reset(hosted, Reset(data=content), _TERMS).data)
    except InvalidActionError as error:
        # A keyword that the environment refuses lies in the body here, and in a message's data elsewhere.
        faults = [one | {"loc": ["body", *one["loc"][1:]]} for one in error.errors or [] if one.get("loc")]
        raise (invalid_message(*faults) if faults else error) from error


def _result(outcome: Outcome) -> bytes:
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
