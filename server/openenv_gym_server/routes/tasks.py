"""The task API: ``GET /list_environments`` and ``/{env}/splits``, ``tasks``, ``num_tasks``, ``task``, ``task_range``.

An environment that is a ``TaskProvider`` is asked on a thread of its own, like every other question about it. A task is
chosen with reset's keywords (``split``, ``index``), not here. Paths, shapes and statuses are those of ``openenv``
0.10.0, in production too; what JSON cannot say is said as in observations, and what has no JSON form is an error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import ClientDisconnect
from starlette.routing import Match
from starlette.types import Scope

from openenv_gym.errors import OpenEnvGymError, ValueMappingError
from openenv_gym.json_text import JSON, JSONObject, encode_json
from openenv_gym.types import GetTaskRangeRequest, GetTaskRequest, ListTasksRequest, NumTasksRequest
from openenv_gym_server.errors import TaskError, encoding, raise_as_environments, raise_as_unsendable
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.plain import drained, plain_record
from openenv_gym_server.reading import off_the_loop
from openenv_gym_server.routes import body
from openenv_gym_server.routes.served import Served, failure, guarded_router
from openenv_gym_server.session import Serving

__all__ = ["router"]

SPLIT_TYPES = frozenset({"train", "validation", "test"})
"""Names of splits that tell their type; every other is one of validation."""


class _Question(NamedTuple):
    """One of the routes with a body."""

    path: str
    method: str
    model: type[BaseModel]
    answer: Callable[[str, JSON], JSONObject]
    summary: str


_QUESTIONS = (
    _Question(
        "tasks",
        "list_tasks",
        ListTasksRequest,
        lambda name, tasks: {"tasks": tasks, "env_name": name},
        "The tasks of a split",
    ),
    _Question(
        "num_tasks", "num_tasks", NumTasksRequest, lambda _, number: {"num_tasks": number}, "How many tasks a split has"
    ),
    _Question("task", "get_task", GetTaskRequest, lambda _, task: {"task": task}, "One task of a split"),
    _Question(
        "task_range",
        "get_task_range",
        GetTaskRangeRequest,
        lambda _, tasks: {"tasks": tasks},
        "Tasks of a split, between two bounds as in a Python slice",
    ),
)


def router(served: Served) -> APIRouter:
    """The six routes. Those with ``{env_name}`` match much, and leave to others what is not the environment's name."""
    routes = guarded_router(served)
    routes.route_class = _route_class(served.name)

    @routes.get("/list_environments", tags=["Task API"], summary="The environment's name, in a list")
    async def list_environments() -> list[str]:
        return [served.name]

    @routes.get(
        "/{env_name}/splits",
        tags=["Task API"],
        summary="The splits that the tasks are in",
        responses={200: {"model": list[dict[str, Any]]}},
    )
    async def splits(request: Request, env_name: str) -> Response:
        try:
            _check_name(served, env_name)
            return _json(await served.sessions.ask(_splits, Serving(served.settings.mode)))
        except OpenEnvGymError as error:
            return failure(error, request)

    for question in _QUESTIONS:
        _add(routes, served, question)
    return routes


def _add(routes: APIRouter, served: Served, question: _Question) -> None:
    async def answered(request: Request, env_name: str) -> Response:
        try:
            raw = await body.received(request, served.settings.max_message_bytes)
            asked = body.checked(question.model, await off_the_loop(len(raw), body.decoded, raw))
            _check_name(served, env_name)
            answer = functools.partial(question.answer, served.name)
            args = [getattr(asked, name) for name in question.model.model_fields]
            job = functools.partial(_answer, question.method, args, answer)
            return _json(await served.sessions.ask(job, Serving(served.settings.mode)))
        except OpenEnvGymError as error:
            return failure(error, request)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody hears it

    routes.add_api_route(
        f"/{{env_name}}/{question.path}",
        answered,
        methods=["POST"],
        name=question.method,
        tags=["Task API"],
        summary=question.summary,
        **body.documented(question.model, dict[str, Any]),
    )


def _route_class(own_name: str) -> type[APIRoute]:
    class Yielding(APIRoute):
        """Under another name than the environment's, any route that matches in full goes first, also a later one."""

        def matches(self, scope: Scope) -> tuple[Match, Scope]:
            match, child = super().matches(scope)
            name = child.get("path_params", {}).get("env_name", own_name)
            if match is Match.FULL and not _is_name(name, own_name):
                match = Match.PARTIAL
            return match, child

    return Yielding


def _is_name(name: str, own_name: str) -> bool:
    return name.lower() == own_name.lower()


def _check_name(served: Served, env_name: str) -> None:
    """Hold the name in a path to the environment's, in any letter case."""
    if not _is_name(env_name, served.name):
        raise TaskError(f"unknown environment {env_name!r}", code="VALIDATION_ERROR", status=404)


def _json(content: bytes) -> Response:
    return Response(content, media_type="application/json")


# ---------------------------------------------------------------------------------------------- on its thread


def _splits(hosted: HostedEnvironment) -> bytes:
    splits = _asked(hosted, "list_splits", ())
    with encoding("splits", advanced=False):
        return encode_json([_split(one) for one in splits])


def _split(split: object) -> JSON:
    if isinstance(split, str):
        name = str.__str__(split)
        return {"name": name, "type": name if name in SPLIT_TYPES else "validation"}
    plain = plain_record(split)
    return plain if isinstance(plain, dict) else {"name": str(split), "type": "validation"}


def _answer(method: str, args: list[object], answer: Callable[[JSON], JSONObject], hosted: HostedEnvironment) -> bytes:
    value = _asked(hosted, method, args)
    with encoding("answer", advanced=False):
        return encode_json(answer(plain_record(value)))


def _asked(hosted: HostedEnvironment, method: str, args: Any) -> Any:
    """What the environment's method gives.

    Raises:
        TaskError: it has no such method, or no task at that index.
        EnvironmentExecutionError: it raised anything else.
    """
    try:
        value = hosted.consult(method, *args)
        return _listed(value)
    except NotImplementedError as error:
        message = f"{method} is not supported for this environment"
        raise TaskError(message, code="VALIDATION_ERROR", status=501) from error
    except IndexError as error:
        raise TaskError("Invalid task index", code="VALIDATION_ERROR", status=400) from error
    except BaseException as error:  # noqa: BLE001 - an environment may raise anything; all of it is its own error
        raise_as_environments(error)


def _listed(value: object) -> object:
    """A generator's values, which may have attributes where JSON has keys."""
    try:
        return drained(value)
    except ValueMappingError as error:
        raise_as_unsendable(error, "answer", advanced=False)
