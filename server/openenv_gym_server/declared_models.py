"""The classes of an environment's actions, observations and state, as the bases of its class name them.

So that ``class Shout(Environment[Say, Heard, State])`` can be served by its name alone. Not for the classes that an
application is given (``app.py``).
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from typing import Any, ForwardRef, NamedTuple, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from openenv_gym.tools import CallToolAction, CallToolObservation
from openenv_gym.types import State
from openenv_gym_server.environment import Environment
from openenv_gym_server.mcp_environment import MCPEnvironment

__all__ = ["DeclaredModels", "declared_models", "declared_state"]


class DeclaredModels(NamedTuple):
    """The classes that an application needs of an environment."""

    action: type[Any]
    observation: type[Any]
    state: type[Any] = State


def declared_models(kind: type[Environment[Any, Any, Any]]) -> DeclaredModels | None:
    """What the bases of an environment's class say of its models; None where they leave something open.

    An environment with tools needs no saying: its actions are calls.

    Example:
        >>> from openenv_gym.types import Action, Observation
        >>> class Idle(Environment[Action, Observation, State]):
        ...     pass
        >>> declared_models(Idle).action.__name__
        'Action'
        >>> declared_models(Environment) is None
        True
    """
    if issubclass(kind, MCPEnvironment):
        return DeclaredModels(CallToolAction, CallToolObservation)
    arguments = _arguments(kind)
    if arguments is None or len(arguments) != 3:
        return None
    action, observation, state = (_resolved(argument, kind) for argument in arguments)
    if not _is_model(action) or not _is_model(observation):
        return None
    return DeclaredModels(action, observation, state if _is_model(state) else State)


def _arguments(kind: type[Any]) -> tuple[Any, ...] | None:
    """The arguments that a class gives to ``Environment``, through classes that are generic themselves."""
    for base in kind.__dict__.get("__orig_bases__", kind.__bases__):
        origin = get_origin(base) or base
        if not inspect.isclass(origin) or not issubclass(origin, Environment):
            continue
        given = get_args(base)
        if origin is Environment:
            return given or None
        inner = _arguments(origin)
        if inner is not None:
            known = dict(zip(getattr(origin, "__parameters__", ()), given, strict=False))
            return tuple(known.get(argument, argument) for argument in inner)
    return None


def _resolved(argument: Any, kind: type[Any]) -> Any:
    """A class that is named in quotes, being defined further down in the same module."""
    if not isinstance(argument, ForwardRef):
        return argument
    return getattr(sys.modules.get(kind.__module__), argument.__forward_arg__, None)


def _is_model(kind: object) -> bool:
    return inspect.isclass(kind) and (issubclass(kind, BaseModel) or dataclasses.is_dataclass(kind))


def declared_state(cls: type[Any]) -> type[Any] | None:
    """The class that the annotation of ``state`` names, so that its fields are in the schema."""
    getter = getattr(getattr(cls, "state", None), "fget", None)
    try:
        declared = get_type_hints(getter).get("return") if getter else None
    except (NameError, TypeError, AttributeError):  # an annotation that is only there for type checkers
        return None
    is_record = inspect.isclass(declared) and (issubclass(declared, BaseModel) or dataclasses.is_dataclass(declared))
    return declared if is_record else None
