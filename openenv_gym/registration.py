"""The ids in Gymnasium's registry.

Entry points are strings, so that nothing heavy is imported until an environment is made.
"""

from __future__ import annotations

import gymnasium

__all__ = ["register_ids"]

_ENTRY_POINTS = {
    "remote": "openenv_gym.env:RemoteEnv",
    "gym": "openenv_gym.env:RemoteEnv",
    "echo": "openenv_gym_envs.echo.remote:RemoteEcho",
    "blackjack": "openenv_gym.env:RemoteEnv",
}
_KEYWORDS = {"blackjack": {"target": "openenv_gym_envs.blackjack"}}


def register_ids() -> None:
    """Register ``openenv/<name>-v0`` for remote, gym, echo and blackjack. May be called again."""
    for name, entry_point in _ENTRY_POINTS.items():
        env_id = f"openenv/{name}-v0"
        if env_id not in gymnasium.registry:
            gymnasium.register(id=env_id, entry_point=entry_point, kwargs=_KEYWORDS.get(name))
