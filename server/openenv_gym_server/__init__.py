"""OpenEnv servers for environments written in Python, and for any Gymnasium environment.

``create_app`` serves an ``Environment``; ``create_gym_app`` serves a ``gymnasium.Env``. Names load when they are
first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openenv_gym.types import (
        Action,
        ConcurrencyConfig,
        EnvironmentMetadata,
        Observation,
        ServerCapacityStatus,
        SessionInfo,
        State,
    )
    from openenv_gym_server.app import HTTPEnvServer, create_app, create_fastapi_app
    from openenv_gym_server.codec import Codec, ModelCodec
    from openenv_gym_server.environment import Environment
    from openenv_gym_server.errors import ConcurrencyConfigurationError
    from openenv_gym_server.gym_app import create_gym_app
    from openenv_gym_server.gym_environment import GymEnvironment
    from openenv_gym_server.settings import ServerSettings, uvicorn_options

__all__ = [
    "Action",
    "Codec",
    "ConcurrencyConfig",
    "ConcurrencyConfigurationError",
    "Environment",
    "EnvironmentMetadata",
    "GymEnvironment",
    "HTTPEnvServer",
    "ModelCodec",
    "Observation",
    "ServerCapacityStatus",
    "ServerSettings",
    "SessionInfo",
    "State",
    "create_app",
    "create_fastapi_app",
    "create_gym_app",
    "uvicorn_options",
]

_HOMES = {
    "Action": "openenv_gym.types",
    "Codec": "openenv_gym_server.codec",
    "ConcurrencyConfig": "openenv_gym.types",
    "ConcurrencyConfigurationError": "openenv_gym_server.errors",
    "Environment": "openenv_gym_server.environment",
    "EnvironmentMetadata": "openenv_gym.types",
    "GymEnvironment": "openenv_gym_server.gym_environment",
    "HTTPEnvServer": "openenv_gym_server.app",
    "ModelCodec": "openenv_gym_server.codec",
    "Observation": "openenv_gym.types",
    "ServerCapacityStatus": "openenv_gym.types",
    "ServerSettings": "openenv_gym_server.settings",
    "SessionInfo": "openenv_gym.types",
    "State": "openenv_gym.types",
    "create_app": "openenv_gym_server.app",
    "create_fastapi_app": "openenv_gym_server.app",
    "create_gym_app": "openenv_gym_server.gym_app",
    "uvicorn_options": "openenv_gym_server.settings",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *__all__})
