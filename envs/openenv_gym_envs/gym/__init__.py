"""Any Gymnasium environment as an OpenEnv service, chosen by environment variables.

``OPENENV_GYM_ENV_ID`` names it (``CartPole-v1`` without it) and ``OPENENV_GYM_ENV_KWARGS`` holds its keyword arguments
as a JSON object. For an application of your own, ``openenv_gym_server.create_gym_app`` is the shorter way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openenv_gym_envs.gym.app import create_app

__all__ = ["create_app"]


def __getattr__(name: str) -> Any:
    # The application brings a web server; who imports this package for something else should not pay for it.
    if name == "create_app":
        from openenv_gym_envs.gym.app import create_app  # noqa: PLC0415

        return create_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
