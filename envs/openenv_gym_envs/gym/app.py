"""The application: ``uvicorn openenv_gym_envs.gym.app:app`` or ``openenv-gym serve openenv_gym_envs.gym``."""

from __future__ import annotations

import os
from typing import Any

from fastapi import FastAPI

from openenv_gym.errors import ProtocolError, SettingsError
from openenv_gym.json_text import decode_json
from openenv_gym_server.gym_app import create_gym_app
from openenv_gym_server.settings import ServerSettings

__all__ = ["app", "create_app"]

DEFAULT_ENV_ID = "CartPole-v1"


def create_app(settings: ServerSettings | None = None) -> FastAPI:
    """The application that serves the environment named by the environment variables.

    Raises:
        SettingsError: ``OPENENV_GYM_ENV_KWARGS`` is not a JSON object.
        gymnasium.error.Error: ``OPENENV_GYM_ENV_ID`` is not registered; the message suggests the nearest.
    """
    env_id = os.environ.get("OPENENV_GYM_ENV_ID") or DEFAULT_ENV_ID
    return create_gym_app(env_id, env_kwargs=_env_kwargs(), settings=settings)


def _env_kwargs() -> dict[str, Any]:
    text = os.environ.get("OPENENV_GYM_ENV_KWARGS") or "{}"
    try:
        kwargs = decode_json(text)
    except ProtocolError:
        kwargs = None
    if not isinstance(kwargs, dict):
        raise SettingsError(
            f'expected OPENENV_GYM_ENV_KWARGS to be a JSON object such as {{"is_slippery": false}}, got {text[:200]!r}',
            setting="OPENENV_GYM_ENV_KWARGS",
        )
    return kwargs


app = create_app()
