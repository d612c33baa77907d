"""One Gymnasium environment out of an id, a spec or a factory.

Ids and specs go through ``gymnasium.make``, so that TimeLimit, OrderEnforcing and registered wrappers act on the server
as they would locally. Environments of the old ``gym`` API are bridged underneath those wrappers. Not for serving what
was made (``gym_environment.py``).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, TypeAlias

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator
from gymnasium.wrappers import RenderCollection

from openenv_gym_server.legacy import AnyEnv, LegacyEnv, as_gymnasium, looks_legacy, modern_metadata
from openenv_gym_server.signatures import keywords_of

__all__ = ["EnvSource", "collects_frames", "is_classic_control", "make_env", "portable", "registered_name"]

EnvSource: TypeAlias = str | EnvSpec | Callable[..., Any]


def make_env(source: EnvSource, render_mode: str | None, env_kwargs: Mapping[str, Any]) -> AnyEnv:
    """Make the environment.

    The environment checker of ``gymnasium.make`` is left out unless ``env_kwargs`` ask for it: it changes no result,
    and the client's own ``gymnasium.make`` applies it to what arrives there.

    Args:
        source: an id of ``gymnasium.registry`` (``"module:namespace/Name-v0"`` imports the module first), an
            ``EnvSpec``, or a callable that returns an environment; a class is such a callable.
        render_mode: passed to the environment where it is not None.
        env_kwargs: the environment's own keyword arguments.

    Raises:
        TypeError: the source is none of these, or its callable does not take the arguments.
        gymnasium.error.Error: the id is not registered; the message suggests the nearest.
    """
    kwargs = dict(env_kwargs) if render_mode is None else {**env_kwargs, "render_mode": render_mode}
    if isinstance(source, str):
        return _make_registered(_registered(source) or source, kwargs)
    if isinstance(source, EnvSpec):
        return _make_registered(source, kwargs)
    if callable(source):
        return _call(source, kwargs)
    raise TypeError(
        "expected an environment id, an EnvSpec or a callable that makes the environment, "
        f"got {type(source).__name__}; wrap an environment that exists already in a function that makes a new one, "
        "because every session needs its own"
    )


def is_classic_control(source: EnvSource) -> bool:
    """Whether the source is one of Gymnasium's classic-control ids, whose steps take microseconds."""
    spec = _registered(source) if isinstance(source, str) else source
    entry_point = spec.entry_point if isinstance(spec, EnvSpec) else None
    return isinstance(entry_point, str) and entry_point.startswith("gymnasium.envs.classic_control")


def registered_name(source: EnvSource) -> str | None:
    """The id of a registered environment, once its code is imported; None where it is not registered by this very id.

    Raises:
        ImportError: what the environment needs is not installed.
    """
    spec = _registered(source) if isinstance(source, str) else source
    if not isinstance(spec, EnvSpec) or spec.entry_point is None:
        return None
    if isinstance(spec.entry_point, str):
        load_env_creator(spec.entry_point)
    return spec.id


def collects_frames(env: AnyEnv) -> bool:
    """Whether ``gymnasium.make`` keeps every frame for a ``_list`` render mode that the environment does not have.

    It keeps them until they are rendered or the episode ends, and nothing bounds an episode.
    """
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, RenderCollection):
            return True
        env = env.env
    return False


def portable(source: EnvSource) -> EnvSource:
    """The source as another process can use it, which may not know the ids that were registered in this one."""
    return (_registered(source) or source) if isinstance(source, str) else source


def _registered(env_id: str) -> EnvSpec | None:
    """The spec under exactly this id. None leaves the id to ``gymnasium.make``, whose errors and guesses are better."""
    module, _, name = env_id.rpartition(":")
    if module:
        try:
            importlib.import_module(module)
        except ImportError:
            return None
    return gymnasium.registry.get(name)


def _make_registered(source: str | EnvSpec, kwargs: dict[str, Any]) -> AnyEnv:
    kwargs = {"disable_env_checker": True, **kwargs}
    if isinstance(source, str) or source.entry_point is None:
        return gymnasium.make(source, **kwargs)
    entry_point = source.entry_point
    creator = load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
    if isinstance(creator, type) and not looks_legacy(creator):
        return gymnasium.make(source, **kwargs)
    bridged = copy(source)
    bridged.entry_point = _bridge(creator)
    env = gymnasium.make(bridged, **kwargs)
    made_from = env.unwrapped.spec
    assert made_from is not None
    made_from.entry_point = entry_point
    return env


def _bridge(creator: Callable[..., Any]) -> Callable[..., AnyEnv]:
    """The creator, with an environment of the old API adapted before ``gymnasium.make`` sees it."""

    def make_bridged(**kwargs: Any) -> AnyEnv:
        return _call(creator, kwargs)

    metadata = getattr(creator, "metadata", None)
    if isinstance(metadata, Mapping):
        make_bridged.metadata = modern_metadata(metadata)  # type: ignore[attr-defined]  # where make looks for it
    return make_bridged


def _call(creator: Callable[..., Any], kwargs: dict[str, Any]) -> AnyEnv:
    """Call a creator; a render mode it has no parameter for goes to the old-style environment it returns."""
    render_mode = kwargs.get("render_mode")
    if render_mode is None or keywords_of(creator, unknown=True).takes("render_mode"):
        return as_gymnasium(creator(**kwargs), render_mode)
    env = as_gymnasium(creator(**{name: value for name, value in kwargs.items() if name != "render_mode"}), render_mode)
    if not isinstance(env.unwrapped, LegacyEnv) and env.render_mode != render_mode:
        env.close()
        raise TypeError(
            f"expected {getattr(creator, '__name__', creator)!r} to take the keyword render_mode, since "
            f"render_mode={render_mode!r} was asked for; give it that parameter and hand it to the environment"
        )
    return env
