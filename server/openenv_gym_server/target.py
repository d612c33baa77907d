"""What can be served, by name: a Gymnasium id, a package of an environment, or ``"module:attribute"``.

The one place that reads such a name; the command line and the embedded server both come here.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import re
import sys
from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

import gymnasium
from fastapi import FastAPI

from openenv_gym.errors import SettingsError
from openenv_gym_server.app import create_app
from openenv_gym_server.declared_models import declared_models
from openenv_gym_server.environment import Environment
from openenv_gym_server.gym_app import create_gym_app
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.precedence import Operator, acting, held
from openenv_gym_server.protection import Gate, token_refusal
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.signatures import keywords_of

__all__ = ["load_app"]

_NOTHING: Mapping[str, str] = MappingProxyType({})

_VERSIONED = re.compile(r"^(?:[\w:-]+/)?[\w:.-]+-v\d+$")


def load_app(
    target: str,
    settings: ServerSettings | None = None,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    given: Mapping[str, str] = _NOTHING,
    named_actions: Mapping[str, Any] = _NOTHING,
) -> FastAPI:
    """The app that serves the target.

    Args:
        target: ``"CartPole-v1"``; ``"module:namespace/Name-v0"``, which imports the module first;
            ``"module:attribute"``, an app, the class of an environment, or a function ``create_app(settings=…)``; or
            ``"package.with.app"``, its own ``create_app(settings=…)`` if it has one, else its ``app``.
        settings: how it is served. An app that the module makes itself has them where its author gave it none; the
            token holds for every app.
        env_kwargs: keyword arguments for the making of an environment.
        given: the fields of ``settings`` that must hold, also over what an author gave an app, each with what the
            operator calls it.
        named_actions: actions of a Gymnasium environment that get a tool each, by the tool's name.

    Raises:
        SettingsError: the name is none of these, or names something that cannot be served, or where what was given
            cannot hold.
        ConcurrencyConfigurationError: several sessions for an environment that does not declare
            ``SUPPORTS_CONCURRENT_SESSIONS``.
        Exception: whatever the module itself raises.
    """
    making = _Making(env_kwargs, named_actions)
    if _is_gymnasium_id(target):
        _check_without_code(target, given)
        return _gymnasium_app(target, target, settings, making)
    operator = Operator(settings or ServerSettings(), given)
    module_name, colon, attribute = target.partition(":")
    known = module_name in sys.modules
    with acting(operator):
        module = _module(module_name, target)
        found = _attribute(module, attribute, target) if colon else _app_of(module)
        if isinstance(found, type) and issubclass(found, Environment):
            making.check_without_names(target)
            if not issubclass(found, MCPEnvironment):
                _check_without_code(target, given)
            return _environment_app(found, target, operator.settings, env_kwargs)
        if isinstance(found, type) and _is_gymnasium_class(found):
            _check_without_code(target, given)
            return _gymnasium_app(found, target, operator.settings, making)
        making.check_without_names(target)
        if env_kwargs:
            raise SettingsError(
                f"env_kwargs (--env-kwarg) are for an environment's id or class, got {target!r}", setting="env_kwargs"
            )
        return _checked(_app(found, target, operator.settings), target, operator, known=known)


class _Making(NamedTuple):
    """What the operator says of the making of environments."""

    env_kwargs: Mapping[str, Any] | None
    named_actions: Mapping[str, Any]

    def check_without_names(self, target: str) -> None:
        """Refuse names of actions, where there is no action Space."""
        if self.named_actions:
            message = f"named_actions (--named-actions) are for a Gymnasium id or class, got {target!r}"
            raise SettingsError(message, setting="named_actions")


def _check_without_code(target: str, given: Mapping[str, str]) -> None:
    """Refuse code that calls the tools, where the environment is none that runs any."""
    if "allow_code" in given:
        raise SettingsError(
            f"{given['allow_code']} is for the class of an MCPEnvironment, whose tools the code calls, got {target!r}",
            setting="allow_code",
        )


def _gymnasium_app(env: str | type[Any], target: str, settings: ServerSettings | None, making: _Making) -> FastAPI:
    env_kwargs, named = making
    try:
        return create_gym_app(env, settings=settings, env_kwargs=env_kwargs, named_actions=named)
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
    """An environment of Gymnasium's API or the old one."""
    return callable(getattr(kind, "step", None))


def _module(name: str, target: str) -> ModuleType:
    if not name or name.startswith(".") or not name.isprintable():
        raise _not_importable(name, target)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name
        # What the module itself imports is another matter, and another's error.
        if missing is None or (name != missing and not name.startswith(f"{missing}.")):
            raise
        raise _not_importable(name, target) from error


def _not_importable(name: str, target: str) -> SettingsError:
    return SettingsError(
        f"expected a Gymnasium id such as CartPole-v1, an importable package, or module:attribute, got {target!r}: "
        f'{name!r} cannot be imported; an id that a package registers is given as "package:namespace/Name-v0"',
        setting="target",
    )


def _attribute(module: ModuleType, name: str, target: str) -> Any:
    found = getattr(module, name, _MISSING)
    if found is _MISSING:
        near = difflib.get_close_matches(name, (each for each in dir(module) if not each.startswith("_")), 3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise SettingsError(
            f"expected {target!r} to name something in {module.__name__}, which has no {name!r}{hint}",
            setting="target",
        )
    return found


_MISSING = object()


def _app_of(module: ModuleType) -> Any:
    """The package's own way to make its app; a ``create_app`` that it merely imported is somebody else's."""
    own = getattr(module, "create_app", None)
    if str(getattr(own, "__module__", "")).startswith(module.__name__):
        return own
    return getattr(module, "app", None)


def _environment_app(
    kind: type[Environment[Any, Any, Any]],
    target: str,
    settings: ServerSettings | None,
    env_kwargs: Mapping[str, Any] | None,
) -> FastAPI:
    """An app for the class of an environment, which has to say itself what its models are."""
    models = declared_models(kind)
    if models is None:
        module, name = target.partition(":")[0], kind.__name__
        raise SettingsError(
            f"expected the class {name} to name its models, as in class {name}(Environment[MyAction, MyObservation, "
            f"State]); or write app = create_app({name}, MyAction, MyObservation) in {module} and serve {module}:app",
            setting="target",
        )
    takes = keywords_of(kind).takes
    unknown = sorted(name for name in env_kwargs or () if not takes(name))
    if unknown:
        raise SettingsError(
            f"expected env_kwargs (--env-kwarg) that {target!r} takes, got {unknown}", setting="env_kwargs"
        )
    make = functools.partial(kind, **env_kwargs) if env_kwargs else kind
    return create_app(make, models.action, models.observation, state_cls=models.state, settings=settings)


def _app(found: Any, target: str, settings: ServerSettings | None) -> FastAPI:
    app = found
    if callable(found) and not isinstance(found, type | FastAPI) and keywords_of(found).takes("settings"):
        app = found(settings=settings)
    if isinstance(app, FastAPI):
        return app
    raise SettingsError(
        f"expected {target!r} to be a FastAPI app, the class of an environment, or a function "
        f"create_app(settings=…) that makes an app, got {found!r}",
        setting="target",
    )


def _checked(app: FastAPI, target: str, operator: Operator, *, known: bool) -> FastAPI:
    """The app, in which all that the operator gave holds.

    Raises:
        SettingsError: it cannot hold there.
    """
    servers = held(app)
    wanted = [option for name, option in operator.given.items() if name != "token"]
    if wanted and not (servers and all(server.operator is operator for server in servers)):
        why = (
            f"{target.partition(':')[0]} was imported already, before its options were known"
            if known
            else "it is no app that openenv_gym_server's create_app, create_gym_app or HTTPEnvServer made while its "
            "module was loaded"
        )
        raise SettingsError(
            f"{' and '.join(wanted)} cannot hold for {target!r}: {why}; leave out what cannot hold, or serve a "
            "function create_app(settings=…) that makes the app",
            setting=next(name for name in operator.given if name != "token"),
        )
    return _gated(app, target, operator.settings.token, [server.settings.token for server in servers])


def _gated(app: FastAPI, target: str, token: str | None, tokens: list[str | None]) -> FastAPI:
    """The app behind the operator's token."""
    if token is None:
        return app
    if any(each not in {None, token} for each in tokens):
        raise SettingsError(
            f"--token cannot hold for {target!r}: its module gave the app a token of its own before the option was "
            "known; leave one of them out",
            setting="token",
        )
    # Where the app has one already, a second asks for the same.
    app.add_middleware(Gate, check=functools.partial(token_refusal, token=token))
    return app
