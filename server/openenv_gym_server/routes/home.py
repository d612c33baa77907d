"""``GET /``: a small page that says what runs here, as HTML for a browser and as JSON for everyone else."""

from __future__ import annotations

from html import escape

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from openenv_gym_server.routes.served import Served, guarded_router

__all__ = ["router"]

_PATHS = {"health": "/health", "readiness": "/ready", "metadata": "/metadata", "schema": "/schema", "docs": "/docs"}

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{name}</title>
<body style="font-family: system-ui; max-width: 40rem; margin: 3rem auto">
<h1>{name}</h1><p>An OpenEnv environment, served in {mode} mode. {clients}</p>
<ul>{links}</ul></body></html>
"""

_AGENTS = "Agents call its tools at <code>/mcp</code>."


def router(served: Served) -> APIRouter:
    """The route."""
    routes = guarded_router(served)
    clients = _AGENTS if served.settings.production else f"Clients connect to <code>/ws</code>. {_AGENTS}"

    @routes.get("/", include_in_schema=False)
    async def home(request: Request) -> Response:
        if "text/html" not in request.headers.get("accept", ""):
            said = {"name": served.name, "mode": served.settings.mode}
            return JSONResponse({**said, "websocket": "/ws", "mcp": "/mcp", **_PATHS})
        prefix = escape(request.scope.get("root_path", ""))
        links = "".join(f'<li><a href="{prefix}{path}">{name}</a></li>' for name, path in _PATHS.items())
        page = _PAGE.format(name=escape(served.name), mode=served.settings.mode, clients=clients, links=links)
        return HTMLResponse(page)

    return routes
