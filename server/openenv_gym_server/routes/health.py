"""``GET /health``: the process lives. ``GET /ready``: an environment can be made and reset."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from openenv_gym.types import HealthResponse
from openenv_gym_server.routes.served import Served, guarded_router

__all__ = ["router"]


def router(served: Served) -> APIRouter:
    """The two routes."""
    routes = guarded_router(served)

    @routes.get("/health", tags=["Health"], summary="Whether the process lives")
    async def health() -> HealthResponse:
        return HealthResponse()

    @routes.get("/ready", tags=["Health"], summary="Whether an environment can be made and reset")
    async def ready() -> Response:
        readiness = await served.catalogue.readiness()
        capacity = served.sessions.capacity()
        if readiness.ready:
            return JSONResponse({"status": "ready", "capacity": capacity})
        return JSONResponse({"status": "unavailable", "reason": readiness.reason, "capacity": capacity}, 503)

    return routes
