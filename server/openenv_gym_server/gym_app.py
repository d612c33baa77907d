"""The web application that serves a Gymnasium environment.

Not for environments written for OpenEnv (``app.create_app``), nor for starting the application (``uvicorn`` or
``openenv-gym serve`` does).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fastapi import FastAPI
from gymnasium.envs.registration import EnvSpec

from openenv_gym_server.app import create_app
from openenv_gym_server.gym_environment import GymEnvironment, InlineGymEnvironment
from openenv_gym_server.gym_making import EnvSource, is_classic_control
from openenv_gym_server.settings import ServerSettings

__all__ = ["GymFactory", "create_gym_app"]


def create_gym_app(
    env: EnvSource,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    settings: ServerSettings | None = None,
    mode: str | None = None,
    max_concurrent_envs: int | None = None,
) -> FastAPI:
    """An application that serves a Gymnasium environment to any OpenEnv client; each session gets its own.

    One environment is made and closed at once, so that one that cannot be made fails here and not at the first client.

    Args:
        env: an environment id (``"module:namespace/Name-v0"`` imports the module first), an ``EnvSpec``, or a callable
            that returns an environment, of Gymnasium's API or of the old ``gym``'s.
        env_kwargs: the environment's keyword arguments. A client's own go over them, as far as
            ``settings.allowed_env_kwargs`` has their names.
        settings: the operator's settings.
        mode: ``"simulation"`` or ``"production"``; else the settings'.
        max_concurrent_envs: sessions at a time; else the settings'.

    Raises:
        TypeError: ``env`` is none of these, or does not take the arguments.
        gymnasium.error.Error: the id is not registered; the message suggests the nearest.
        SpaceMappingError: a Space of the environment has no JSON form.
        SettingsError: two settings contradict each other.

    Example:
        >>> app = create_gym_app("CartPole-v1")
        >>> app.title
        'OpenEnv Environment HTTP API'
    """
    factory = GymFactory(env, dict(env_kwargs or {}))
    probe = factory()
    env_name = probe.env_id
    probe.close()
    return create_app(
        factory,
        dict,
        dict,
        env_name=env_name,
        max_concurrent_envs=max_concurrent_envs,
        mode=mode,
        settings=settings,
    )


@dataclass(frozen=True)
class GymFactory:
    """Makes one session's environment.

    Args:
        env: what ``create_gym_app`` was given.
        env_kwargs: the operator's keyword arguments.

    Example:
        >>> make = GymFactory("FrozenLake-v1", {"is_slippery": False})
        >>> environment = make(map_name="8x8")
        >>> environment.codec.schema()["observation"]["properties"]["obs"]["maximum"]
        63
        >>> environment.close()
    """

    SUPPORTS_CONCURRENT_SESSIONS: ClassVar[bool] = True
    REQUIRES_SINGLE_THREAD_EXECUTOR: ClassVar[bool] = False

    env: EnvSource
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, **session_kwargs: Any) -> GymEnvironment:
        """A new environment; the session's keyword arguments (``render_mode`` is one) go over the operator's."""
        kind = InlineGymEnvironment if is_classic_control(self.env) else GymEnvironment
        return kind(self.env, **{**self.env_kwargs, **session_kwargs})

    @property
    def __name__(self) -> str:
        """What error messages call the factory: the environment it makes."""
        if isinstance(self.env, str | EnvSpec):
            return self.env if isinstance(self.env, str) else self.env.id
        return _name_of(self.env)


def _name_of(make: Callable[..., Any]) -> str:
    return str(getattr(make, "__name__", type(make).__name__))
