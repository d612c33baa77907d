"""What makes environments: a class, a callable, or one instance that is lent from session to session.

Tells what is known of an environment before there is one. Not for calling an environment (``hosting.py``).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from openenv_gym_server.errors import factory_calls, fault, invalid_message
from openenv_gym_server.settings import Names
from openenv_gym_server.signatures import keywords_of

__all__ = ["EnvironmentFactory", "Method", "is_async", "overrides_twin"]


class EnvironmentFactory:
    """Makes environments from what an application was given.

    A class with the factory's flags, a function that makes one, a ``functools.partial`` of either, or an instance. A
    function may carry the flags (``SUPPORTS_CONCURRENT_SESSIONS`` …) as attributes, so that nothing need be made to
    know them.

    Args:
        source: the class, callable or instance.

    Attributes:
        name: what error frames and metadata call it.
        instance: the instance that was given, else None.

    Raises:
        TypeError: ``source`` is none of these.
    """

    def __init__(self, source: Callable[..., Any] | object) -> None:
        self.instance: object | None = None
        if _is_instance(source):
            self.instance = source
            self._known: object = type(source)
            self.name = type(source).__name__
        elif callable(source):
            self._make = source
            self._known = _unwrap(source)
            self.name = str(getattr(self._known, "__name__", type(source).__name__))
        else:
            raise TypeError(
                "expected a callable that makes environments (a class or a function), or an instance with reset and "
                f"step, got {type(source).__name__}"
            )

    def declares(self, flag: str) -> bool | None:
        """A class flag of the environments; None where only an environment could tell."""
        value = getattr(self._known, flag, None)
        if value is None and inspect.isclass(self._known):
            return False
        return None if value is None else bool(value)

    @property
    def may_be_async(self) -> bool:
        """Whether an event loop has to be there before an environment is made."""
        return is_async(self._known) if inspect.isclass(self._known) else True

    def make(
        self,
        env_kwargs: Mapping[str, Any] | None = None,
        allowed: Names = frozenset(),
        render_mode: str | None = None,
        read: Callable[[str, Any], Any] = lambda _, value: value,
    ) -> Any:
        """An environment, made with the client's keywords where it gave any.

        Raises:
            InvalidActionError: as ``keywords``.
            EnvironmentFactoryError: the factory raised.
        """
        keywords = self.keywords(env_kwargs, allowed, render_mode, read)
        if self.instance is not None:
            return self.instance
        with factory_calls(self.name):
            return self._make(**keywords)

    @property
    def make_vector(self) -> Callable[..., Any] | None:
        """What makes several environments as one, where the factory has ways of its own for that."""
        if self.instance is not None:
            return None
        return getattr(self._make, "make_vector", None)

    def keywords(
        self,
        env_kwargs: Mapping[str, Any] | None,
        allowed: Names,
        render_mode: str | None,
        read: Callable[[str, Any], Any],
    ) -> dict[str, Any]:
        """The keywords of the factory, of what the client sent.

        Args:
            env_kwargs: the client's keywords for the factory.
            allowed: those of them that the operator allows.
            render_mode: the client's render mode, which needs no allowance.
            read: makes a keyword's value, by its name, of what the client sent; only for those that are accepted.

        Raises:
            InvalidActionError: a keyword that the operator does not allow or the factory does not take; or a render
                mode that needs a window.
        """
        given = env_kwargs or {}
        for name, value in given.items():
            if allowed != "all" and name not in allowed:
                message = (
                    f"the server's setting allowed_env_kwargs does not have {name[:100]!r}; its operator can add it "
                    f"(--allow-env-kwarg {name[:100]})"
                )
                raise invalid_message(fault("not_allowed", ["data", "env_kwargs", name], message, value))
            self._check(name, value, ["data", "env_kwargs", name])
        keywords = {name: read(name, value) for name, value in given.items()}
        _check_window(keywords.get("render_mode"), ["data", "env_kwargs", "render_mode"])
        if render_mode is not None:
            _check_window(render_mode, ["data", "render_mode"])
            self._check("render_mode", render_mode, ["data", "render_mode"])
            keywords["render_mode"] = render_mode
        return keywords

    def _check(self, name: str, value: object, loc: list[str | int]) -> None:
        if self.instance is not None or not keywords_of(self._make, unknown=True).takes(name):
            message = f"the environment factory {self.name!r} takes no keyword {name[:100]!r}"
            if name == "render_mode":
                message += ": this environment does not render"
            raise invalid_message(fault("unexpected_keyword_argument", loc, message, value))


def _check_window(render_mode: object, loc: list[str | int]) -> None:
    """Refuse a render mode that would open a window, which would be on the server's machine and not the client's."""
    if isinstance(render_mode, str) and render_mode.removesuffix("_list") == "human":
        message = "a client cannot have a window opened on the server's machine; ask for rgb_array and show its frames"
        raise invalid_message(fault("render_mode", loc, message, render_mode))


def is_async(kind: object) -> bool:
    """Whether an environment, or its class, has anything to await."""
    if overrides_twin(kind, "reset_async") or overrides_twin(kind, "step_async"):
        return True
    return any(inspect.iscoroutinefunction(getattr(kind, name, None)) for name in _MAY_BE_ASYNC)


_MAY_BE_ASYNC = ("reset", "step", "close", "render", "after_tool", "_step_impl")


def overrides_twin(kind: object, name: str) -> bool:
    """Whether ``reset_async`` or ``step_async`` is what to call: the nearest class that has either method decides.

    A base class's twin that only does what the plain method does is none (``not_an_override``, or beside an abstract
    plain method).
    """
    cls = kind if inspect.isclass(kind) else type(kind)
    plain_name = name.removesuffix("_async")
    for base in cls.__mro__:
        twin, plain = base.__dict__.get(name), base.__dict__.get(plain_name)
        if twin is not None:
            return not (getattr(twin, "not_an_override", False) or getattr(plain, "__isabstractmethod__", False))
        if plain is not None:
            return False
    return False


class Method:
    """Reset or step of one environment: the asynchronous twin where the class has overridden it, and what it takes."""

    __slots__ = ("call", "name", "takes")

    def __init__(self, env: Any, name: str) -> None:
        self.name = name
        twin = f"{name}_async"
        self.call: Callable[..., Any] = getattr(env, twin if overrides_twin(env, twin) else name)
        self.takes = keywords_of(self.call).takes


def _is_instance(source: object) -> bool:
    return not inspect.isclass(source) and all(callable(getattr(source, name, None)) for name in ("reset", "step"))


def _unwrap(source: object) -> object:
    while isinstance(source, functools.partial):
        source = source.func
    return source
