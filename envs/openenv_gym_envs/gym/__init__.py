"""Any Gymnasium environment as an OpenEnv service, chosen by environment variables.

``OPENENV_GYM_ENV_ID`` names it (``CartPole-v1`` without it) and ``OPENENV_GYM_ENV_KWARGS`` holds its keyword arguments
as a JSON object. For an application of your own, ``openenv_gym_server.create_gym_app`` is the shorter way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openenv_gym.lazy import lazy_names

if TYPE_CHECKING:
    from openenv_gym_envs.gym.app import create_app

__all__ = ["create_app"]

# The application brings a web server; who imports this package for something else should not pay for it.
__getattr__, __dir__ = lazy_names(__name__, {"create_app": "openenv_gym_envs.gym.app"})
