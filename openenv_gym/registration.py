"""The ids in Gymnasium's registry.

Entry points are strings, so that nothing heavy is imported until an environment is made. ``gymnasium.make_vec`` takes
the one for vectors where it is not told otherwise.
"""

from __future__ import annotations

import gymnasium

__all__ = ["register_ids"]

_SINGLE, _VECTOR = "openenv_gym.env:RemoteEnv", "openenv_gym.vector:RemoteVectorEnv"
_ECHO = "openenv_gym_envs.echo.remote"
_ENTRY_POINTS = {
    "remote": (_SINGLE, _VECTOR),
    "gym": (_SINGLE, _VECTOR),
    "echo": (f"{_ECHO}:RemoteEcho", f"{_ECHO}:RemoteEchoVector"),
    "blackjack": (_SINGLE, _VECTOR),
}
_KEYWORDS = {"blackjack": {"target": "openenv_gym_envs.blackjack"}}


def register_ids() -> None:
    """Register ``openenv/<name>-v0`` for remote, gym, echo and blackjack. May be called again."""
    for name, (single, vector) in _ENTRY_POINTS.items():
        env_id = f"openenv/{name}-v0"
        if env_id not in gymnasium.registry:
            gymnasium.register(id=env_id, entry_point=single, vector_entry_point=vector, kwargs=_KEYWORDS.get(name))
