"""``GET /metadata``: what the environment says about itself."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from openenv_gym.errors import OpenEnvGymError
from openenv_gym.types import EnvironmentMetadata
from openenv_gym_server.routes.served import Served, failure, guarded_router

__all__ = ["router"]


def router(served: Served) -> APIRouter:
    """The route."""
    routes = guarded_router(served)

    @routes.get(
        "/metadata",
        tags=["Environment Info"],
        summary="What the environment says about itself",
        responses={200: {"model": EnvironmentMetadata}},
    )
    async def metadata() -> Response:
        try:
            return JSONResponse(await served.catalogue.metadata())
        except OpenEnvGymError as error:
            return failure(error)

    return routes
