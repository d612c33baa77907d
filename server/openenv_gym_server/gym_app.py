"""The web application that serves a Gymnasium environment.

Not for environments written for OpenEnv (``app.create_app``), nor for starting the application (``uvicorn`` or
``openenv-gym serve`` does).
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fastapi import FastAPI
from gymnasium.envs.registration import EnvSpec

from openenv_gym.errors import OpenEnvGymError, SettingsError
from openenv_gym_server.app import create_app
from openenv_gym_server.errors import fault, invalid_message, text_of
from openenv_gym_server.gym_environment import GymEnvironment, InlineGymEnvironment
from openenv_gym_server.gym_making import EnvSource, is_classic_control, registered_name
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.precedence import current
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.vector_hosting import HostedVector
from openenv_gym_server.vector_making import VectorSettings, make_lanes, make_native

__all__ = ["GymFactory", "create_gym_app"]

logger = logging.getLogger("openenv_gym_server")


def create_gym_app(
    env: EnvSource,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    settings: ServerSettings | None = None,
    mode: str | None = None,
    max_concurrent_envs: int | None = None,
    named_actions: Mapping[str, Any] | None = None,
) -> FastAPI:
    """An application that serves a Gymnasium environment to any OpenEnv client; each session gets its own.

    Agents find it as tools: ``act``, ``observe`` and, where it renders, ``render``. In production, where nobody else
    could ask for frames, it is made with a render mode that has them, if it can and ``env_kwargs`` have none.

    What cannot be made fails here and not at the first client, as far as that is certain: where clients may give
    keyword arguments, an environment that lacks some is made for them alone.

    Args:
        env: an environment id (``"module:namespace/Name-v0"`` imports the module first), an ``EnvSpec``, or a callable
            that returns an environment, of Gymnasium's API or of the old ``gym``'s.
        env_kwargs: the environment's keyword arguments. A client's own go over them, as far as
            ``settings.allowed_env_kwargs`` has their names.
        settings: the operator's settings; as in ``create_app``, the options of ``openenv-gym serve`` go before them.
        mode: ``"simulation"`` or ``"production"``; else the settings'.
        max_concurrent_envs: sessions at a time; else the settings'.
        named_actions: actions that get a tool each, beside ``act``, by the tool's name: ``{"left": 0, "right": 2}``.

    Raises:
        TypeError: ``env`` is none of these, or does not take the arguments.
        gymnasium.error.Error: the id is not registered; the message suggests the nearest.
        SpaceMappingError: a Space of the environment has no JSON form.
        SettingsError: two settings contradict each other; or an action that has a name is none.

    Example:
        >>> app = create_gym_app("CartPole-v1")
        >>> app.title
        'OpenEnv Environment HTTP API'
    """
    factory = GymFactory(env, dict(env_kwargs or {}), dict(named_actions or {}))
    in_force = current().merged(settings, max_concurrent_envs, None)
    env_name = _checked(factory, in_force)
    return create_app(
        _with_frames(factory) if _is_production(in_force, mode) else factory,
        dict,
        dict,
        env_name=env_name,
        max_concurrent_envs=max_concurrent_envs,
        mode=mode,
        settings=settings,
    )


def _checked(factory: GymFactory, settings: ServerSettings) -> str:
    """The name of the factory's environment, which can be made by all that is known so far.

    Raises:
        TypeError: it does not take the arguments, and no client can give others.
        gymnasium.error.Error: the id is not registered.
        SpaceMappingError: a Space of the environment has no JSON form.
    """
    told_later = bool(settings.allowed_env_kwargs)
    if told_later and (known := registered_name(factory.env)) is not None:
        # A client's keywords decide what the environment is; one without them is made only if it is asked for.
        return known
    try:
        probe = factory()
    except (TypeError, ValueError) as error:
        if not told_later or not callable(factory.env) or isinstance(error, OpenEnvGymError):
            raise
        logger.warning("%s cannot be made without a client's keywords: %s", factory.__name__, text_of(error))
        return factory.__name__
    try:
        probe.close()
    except Exception:  # best-effort clean-up of an environment's own: it could be made, which was the question
        logger.warning("%s raised in close()", probe.env_id, exc_info=True)
    return probe.env_id


def _is_production(settings: ServerSettings, mode: str | None) -> bool:
    wanted = settings if mode is None else dataclasses.replace(settings, mode=mode)
    return current().over(wanted).production


def _with_frames(factory: GymFactory) -> GymFactory:
    """The factory, of environments made to render frames or texts where they can and nobody has said otherwise."""
    if "render_mode" in factory.env_kwargs:
        return factory
    try:
        probe = factory()
        modes = [] if probe.render_mode is not None else list(probe.gymnasium_env.metadata.get("render_modes") or ())
        probe.close()
        if (mode := next((mode for mode in _SENT if mode in modes), None)) is not None:
            drawn = dataclasses.replace(factory, env_kwargs={**factory.env_kwargs, "render_mode": mode})
            drawn().close()
            return drawn
    except Exception:  # best effort: it can be played without, whatever its making raises
        logger.info("%s is served without a tool that renders", factory.__name__, exc_info=True)
    return factory


_SENT = ("rgb_array", "ansi")
"""The render modes whose frames can be sent, the better first."""


@dataclass(frozen=True)
class GymFactory:
    """Makes one session's environment.

    Args:
        env: what ``create_gym_app`` was given.
        env_kwargs: the operator's keyword arguments.
        named_actions: actions with a tool each.

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
    named_actions: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, **session_kwargs: Any) -> GymEnvironment:
        """A new environment; the session's keyword arguments (``render_mode`` is one) go over the operator's.

        Raises:
            InvalidActionError: the session asks for a ``_list`` render mode that the environment itself does not have.
            SettingsError: an action that has a name is none.
        """
        kind = InlineGymEnvironment if is_classic_control(self.env) else GymEnvironment
        made = kind(self.env, **{**self.env_kwargs, **session_kwargs})
        if self.named_actions:
            try:
                made.name_actions(self.named_actions)
            except SettingsError:
                made.close()
                raise
        mode = session_kwargs.get("render_mode")
        if mode is None or not made.collects_frames:
            return made
        made.close()
        message = (
            f"{made.env_id} has no render mode {mode!r} of its own, and the server keeps no frames for a client; ask "
            f"for {mode.removesuffix('_list')!r} and collect what render() gives"
        )
        raise invalid_message(fault("render_mode", ["data", "render_mode"], message, mode))

    def make_vector(
        self, settings: VectorSettings, host: Callable[[GymEnvironment], HostedEnvironment], **session_kwargs: Any
    ) -> HostedVector:
        """Several environments as one; the session's keyword arguments go over the operator's.

        Args:
            settings: how many, and how they go on after an episode.
            host: makes of the first what the server knows of each.
            **session_kwargs: the session's keyword arguments.

        Raises:
            InvalidActionError: the environment does not offer what the settings ask for.
        """
        kwargs = {**self.env_kwargs, **session_kwargs}
        if settings.vectorization == "vector_entry_point":
            return make_native(self.env, kwargs, settings)
        first = self(**session_kwargs)
        try:
            return make_lanes(self.env, kwargs, settings, host(first))
        except BaseException:
            first.close()
            raise

    @property
    def __name__(self) -> str:
        """What error messages call the factory: the environment it makes."""
        if isinstance(self.env, str | EnvSpec):
            return self.env if isinstance(self.env, str) else self.env.id
        return _name_of(self.env)


def _name_of(make: Callable[..., Any]) -> str:
    return str(getattr(make, "__name__", type(make).__name__))
