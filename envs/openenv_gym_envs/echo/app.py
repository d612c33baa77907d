"""The application: ``uvicorn openenv_gym_envs.echo.app:app`` or ``openenv-gym serve openenv_gym_envs.echo``."""

from __future__ import annotations

from fastapi import FastAPI

from openenv_gym.tools import CallToolAction, CallToolObservation
from openenv_gym_envs.echo.environment import EchoEnvironment, EchoObservation
from openenv_gym_server.app import create_app as create_openenv_app
from openenv_gym_server.settings import ServerSettings

__all__ = ["app", "create_app"]


def create_app(settings: ServerSettings | None = None) -> FastAPI:
    """The application that serves the echo environment."""
    return create_openenv_app(
        EchoEnvironment,
        CallToolAction,
        CallToolObservation,
        env_name="echo",
        reset_observation_cls=EchoObservation,
        settings=settings,
    )


app = create_app()
