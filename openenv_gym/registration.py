"""The ids in Gymnasium's registry.

Entry points are strings, so that nothing heavy is imported until an environment is made.
"""

from __future__ import annotations

import gymnasium

__all__ = ["register_ids"]

_ENTRY_POINT = "openenv_gym.env:RemoteEnv"


def register_ids() -> None:
    """Register ``openenv/remote-v0``, ``openenv/gym-v0`` and ``openenv/echo-v0``. May be called again."""
    for name, kwargs in {
        "remote": {},
        "gym": {},
        "echo": {"target": "openenv_gym_envs.echo"},
    }.items():
        env_id = f"openenv/{name}-v0"
        if env_id not in gymnasium.registry:
            gymnasium.register(id=env_id, entry_point=_ENTRY_POINT, kwargs=kwargs)
