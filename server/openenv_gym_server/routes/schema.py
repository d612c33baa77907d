"""``GET /schema``: JSON Schemas of actions, observations and state."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from openenv_gym.errors import OpenEnvGymError
from openenv_gym.types import SchemaResponse
from openenv_gym_server.routes.served import Served, failure, guarded_router

__all__ = ["router"]


def router(served: Served) -> APIRouter:
    """The route."""
    routes = guarded_router(served)

    @routes.get(
        "/schema",
        tags=["Schema"],
        summary="JSON Schemas of actions, observations and state",
        responses={200: {"model": SchemaResponse}},
    )
    async def schema() -> Response:
        try:
            return JSONResponse(await served.catalogue.schema())
        except OpenEnvGymError as error:
            return failure(error)

    return routes
