"""The application, for ``openenv-gym serve openenv_gym_envs.blackjack`` and for uvicorn."""

from __future__ import annotations

from fastapi import FastAPI

from openenv_gym_envs.blackjack.environment import BlackjackEnvironment
from openenv_gym_envs.blackjack.models import BlackjackAction, BlackjackObservation
from openenv_gym_server.app import create_app as create_openenv_app
from openenv_gym_server.settings import ServerSettings

__all__ = ["app", "create_app"]


def create_app(settings: ServerSettings | None = None) -> FastAPI:
    """The application that serves the game.

    A client may choose its rules with the keywords ``natural`` and ``sab`` as far as the settings allow them.
    """
    return create_openenv_app(
        BlackjackEnvironment, BlackjackAction, BlackjackObservation, env_name="blackjack", settings=settings
    )


app = create_app()
