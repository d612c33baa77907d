"""``GET /metadata`` and ``GET /schema``: what the environment says about itself, and what crosses the wire."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from openenv_gym.errors import OpenEnvGymError
from openenv_gym.json_text import JSONObject
from openenv_gym.types import EnvironmentMetadata, SchemaResponse
from openenv_gym_server.routes.served import Served, failure, guarded_router

__all__ = ["router"]


def router(served: Served) -> APIRouter:
    """The two routes."""
    routes = guarded_router(served)

    @routes.get(
        "/metadata",
        tags=["Environment Info"],
        summary="What the environment says about itself",
        responses={200: {"model": EnvironmentMetadata}},
    )
    async def metadata(request: Request) -> Response:
        try:
            return JSONResponse(_with_shards(await served.catalogue.metadata(), served.settings.shards))
        except OpenEnvGymError as error:
            return failure(error, request)

    @routes.get(
        "/schema",
        tags=["Schema"],
        summary="JSON Schemas of actions, observations and state",
        responses={200: {"model": SchemaResponse}},
    )
    async def schema(request: Request) -> Response:
        try:
            return JSONResponse(await served.catalogue.schema())
        except OpenEnvGymError as error:
            return failure(error, request)

    return routes


def _with_shards(metadata: JSONObject, shards: tuple[str, ...]) -> JSONObject:
    """The document with the processes that serve together: among what is said to Gymnasium, where something is."""
    if not shards:
        return metadata
    said = metadata.get("gymnasium")
    if isinstance(said, dict):
        return {**metadata, "gymnasium": {**said, "shards": list(shards)}}
    return {**metadata, "shards": list(shards)}
