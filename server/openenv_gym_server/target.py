"""What can be served, by name: a Gymnasium id, a package of an environment, or ``"module:attribute"``.

The one place that reads such a name; the command line and the embedded server both come here.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Mapping
from typing import Any

import gymnasium
from fastapi import FastAPI

from openenv_gym.errors import SettingsError
from openenv_gym_server.gym_app import create_gym_app
from openenv_gym_server.settings import ServerSettings

__all__ = ["load_app"]

_VERSIONED = re.compile(r"^(?:[\w:-]+/)?[\w:.-]+-v\d+$")


def load_app(
    target: str, settings: ServerSettings | None = None, *, env_kwargs: Mapping[str, Any] | None = None
) -> FastAPI:
    """The app that serves the target.

    Args:
        target: ``"CartPole-v1"``, ``"module:namespace/Name-v0"`` (imports the module first), ``"package.with.app"``
            (its ``create_app(settings=…)`` if it has one, else its ``app``), or ``"module:attribute"`` (an app, or a
            callable that makes one).
        settings: how it is served; an app that is made already keeps its own.
        env_kwargs: keyword arguments for the making of a Gymnasium environment.

    Raises:
        SettingsError: the name is none of these, or names something that is no app.
        ImportError: the module cannot be imported.
    """
    module_name, _, attribute = target.partition(":")
    if _is_gymnasium_id(target):
        try:
            return create_gym_app(target, settings=settings, env_kwargs=env_kwargs)
        except gymnasium.error.UnregisteredEnv as error:
            raise SettingsError(
                f"expected a registered Gymnasium id, got {target!r}: {error}", setting="target"
            ) from error
    if env_kwargs:
        raise SettingsError(f"env_kwargs are for a Gymnasium id, got {target!r}", setting="env_kwargs")
    if attribute:
        return _app(getattr(importlib.import_module(module_name), attribute, None), target, settings)
    try:
        found = importlib.util.find_spec(module_name) is not None
    except (ImportError, ValueError):
        found = False
    if not found:
        raise SettingsError(
            f"expected a Gymnasium id such as CartPole-v1, an importable package, or module:attribute, got {target!r}; "
            'an id that a package registers is given as "package:namespace/Name-v0"',
            setting="target",
        )
    module = importlib.import_module(module_name)
    return _app(getattr(module, "create_app", None) or getattr(module, "app", None), target, settings)


def _is_gymnasium_id(target: str) -> bool:
    name = target.rpartition(":")[2]
    return bool(_VERSIONED.match(name)) or "/" in name or name in _unversioned()


def _unversioned() -> set[str]:
    """Ids that may be given without their version."""
    return {
        spec.name if spec.namespace is None else f"{spec.namespace}/{spec.name}" for spec in gymnasium.registry.values()
    }


def _app(made: Any, target: str, settings: ServerSettings | None) -> FastAPI:
    if isinstance(made, FastAPI):
        return made
    if callable(made):
        app = made(settings=settings)
        if isinstance(app, FastAPI):
            return app
    raise SettingsError(
        f"expected {target!r} to have a FastAPI app, or a function create_app(settings=…) that makes one, got {made!r}",
        setting="target",
    )
