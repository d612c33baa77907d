"""What can be served, by name: a Gymnasium id, a package of an environment, or ``"module:attribute"``.

The one place that reads such a name; the command line and the embedded server both come here.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import gymnasium
from fastapi import FastAPI

from openenv_gym.errors import SettingsError
from openenv_gym_server.environment import Environment
from openenv_gym_server.gym_app import create_gym_app
from openenv_gym_server.protection import Gate, token_refusal
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.signatures import keywords_of

__all__ = ["load_app"]

_VERSIONED = re.compile(r"^(?:[\w:-]+/)?[\w:.-]+-v\d+$")


def load_app(
    target: str, settings: ServerSettings | None = None, *, env_kwargs: Mapping[str, Any] | None = None
) -> FastAPI:
    """The app that serves the target.

    Args:
        target: ``"CartPole-v1"``; ``"module:namespace/Name-v0"``, which imports the module first;
            ``"module:attribute"``, an app, a Gymnasium environment's class, or a function
            ``create_app(settings=…)``; or ``"package.with.app"``, its own ``create_app(settings=…)`` if it has one,
            else its ``app``.
        settings: how it is served; an app that is made already keeps its own, but for the token, which holds for
            every app.
        env_kwargs: keyword arguments for the making of a Gymnasium environment.

    Raises:
        SettingsError: the name is none of these, or names something that cannot be served.
        ImportError: something that the module imports is missing.
    """
    if _is_gymnasium_id(target):
        return _gymnasium_app(target, target, settings, env_kwargs)
    module_name, colon, attribute = target.partition(":")
    module = _module(module_name, target)
    found = getattr(module, attribute, None) if colon else _app_of(module)
    if isinstance(found, type) and _is_gymnasium_class(found):
        return _gymnasium_app(found, target, settings, env_kwargs)
    if env_kwargs:
        raise SettingsError(f"env_kwargs are for a Gymnasium environment, got {target!r}", setting="env_kwargs")
    return _app(found, target, settings)


def _gymnasium_app(
    env: str | type[Any], target: str, settings: ServerSettings | None, env_kwargs: Mapping[str, Any] | None
) -> FastAPI:
    try:
        return create_gym_app(env, settings=settings, env_kwargs=env_kwargs)
    except gymnasium.error.Error as error:
        raise SettingsError(f"{target!r} cannot be made: {error}{_hint(error, target)}", setting="target") from error
    except ModuleNotFoundError as error:
        if error.name != target.partition(":")[0].partition(".")[0]:
            raise
        raise _not_importable(error.name, target) from error
    except TypeError as error:
        if not env_kwargs:
            raise
        raise SettingsError(
            f"expected env_kwargs that {target!r} takes, got {sorted(env_kwargs)}: {error}", setting="env_kwargs"
        ) from error


def _hint(error: gymnasium.error.Error, target: str) -> str:
    if not isinstance(error, gymnasium.error.UnregisteredEnv) or ":" in target:
        return ""
    return f' (an id that a package or your own module registers is given with its name, "package:{target}")'


def _is_gymnasium_id(target: str) -> bool:
    name = target.rpartition(":")[2]
    return bool(_VERSIONED.match(name)) or "/" in name or name in _unversioned()


def _unversioned() -> set[str]:
    """Ids that may be given without their version."""
    return {
        spec.name if spec.namespace is None else f"{spec.namespace}/{spec.name}" for spec in gymnasium.registry.values()
    }


def _is_gymnasium_class(kind: type[Any]) -> bool:
    """An environment of Gymnasium's API or the old one; one for OpenEnv needs an app, which knows its models."""
    return callable(getattr(kind, "step", None)) and not issubclass(kind, Environment)


def _module(name: str, target: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (ModuleNotFoundError, ValueError, TypeError) as error:
        missing = getattr(error, "name", None) or name
        # What the module itself imports is another matter, and another's error.
        if name != missing and not name.startswith(f"{missing}."):
            raise
        raise _not_importable(name, target) from error


def _not_importable(name: str, target: str) -> SettingsError:
    return SettingsError(
        f"expected a Gymnasium id such as CartPole-v1, an importable package, or module:attribute, got {target!r}: "
        f'{name!r} cannot be imported; an id that a package registers is given as "package:namespace/Name-v0"',
        setting="target",
    )


def _app_of(module: ModuleType) -> Any:
    """The package's own way to make its app; a ``create_app`` that it merely imported is somebody else's."""
    own = getattr(module, "create_app", None)
    if str(getattr(own, "__module__", "")).startswith(module.__name__):
        return own
    return getattr(module, "app", None)


def _app(found: Any, target: str, settings: ServerSettings | None) -> FastAPI:
    app = found
    if callable(found) and not isinstance(found, type | FastAPI) and keywords_of(found).takes("settings"):
        app = found(settings=settings)
    if isinstance(app, FastAPI):
        if settings is not None and settings.token is not None:
            app.add_middleware(Gate, check=functools.partial(token_refusal, token=settings.token))
        return app
    hint = '; an Environment class needs an app: app = create_app(…), served as "module:app"'
    raise SettingsError(
        f"expected {target!r} to be a FastAPI app, the class of a Gymnasium environment, or a function "
        f"create_app(settings=…) that makes an app, got {found!r}{hint if isinstance(found, type) else ''}",
        setting="target",
    )
