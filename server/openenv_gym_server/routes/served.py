"""What every route has at hand: the application's parts, the guard against foreign web pages, answers to errors."""

from __future__ import annotations

from typing import NamedTuple

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from openenv_gym_server.catalogue import Catalogue
from openenv_gym_server.errors import http_answer
from openenv_gym_server.protection import page_refusal
from openenv_gym_server.routes.sending import bounded
from openenv_gym_server.rpc_methods import RpcMethods
from openenv_gym_server.sessions import Sessions
from openenv_gym_server.settings import ServerSettings

__all__ = ["Served", "failure", "guarded_router"]


class Served(NamedTuple):
    """What every route has at hand.

    The mode is that of ``settings``: one server's sessions may serve in two applications of two modes.
    """

    name: str
    sessions: Sessions
    catalogue: Catalogue
    settings: ServerSettings
    rpc: RpcMethods


def guarded_router(served: Served) -> APIRouter:
    """A router whose routes refuse foreign web pages, and wait for no peer that does not read."""

    async def guard(request: Request) -> None:
        refused = page_refusal(request.scope, served.settings)
        if refused is not None:
            raise HTTPException(refused.status, refused.reason)

    return APIRouter(dependencies=[Depends(guard)], route_class=_Route)


class _Route(APIRoute):
    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await super().handle(scope, receive, bounded(send))


def failure(error: Exception, request: Request | None = None, session_id: str | None = None) -> Response:
    """The HTTP answer to an error."""
    message = "an HTTP request" if request is None else f"{request.method} {request.url.path}"
    status, body = http_answer(error, session_id, message)
    return PlainTextResponse(body, status) if isinstance(body, str) else JSONResponse(body, status)
