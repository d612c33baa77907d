"""Blackjack in words: a game whose best play is known, for language models and for learners of any kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openenv_gym.lazy import lazy_names

if TYPE_CHECKING:
    from openenv_gym_envs.blackjack.app import create_app
    from openenv_gym_envs.blackjack.client import BlackjackEnv
    from openenv_gym_envs.blackjack.environment import BlackjackEnvironment
    from openenv_gym_envs.blackjack.models import BlackjackAction, BlackjackObservation

__all__ = ["BlackjackAction", "BlackjackEnv", "BlackjackEnvironment", "BlackjackObservation", "create_app"]

# Who talks to a server should not pay for a server of their own, nor the other way round.
_HOMES = {
    "BlackjackAction": "openenv_gym_envs.blackjack.models",
    "BlackjackEnv": "openenv_gym_envs.blackjack.client",
    "BlackjackEnvironment": "openenv_gym_envs.blackjack.environment",
    "BlackjackObservation": "openenv_gym_envs.blackjack.models",
    "create_app": "openenv_gym_envs.blackjack.app",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
