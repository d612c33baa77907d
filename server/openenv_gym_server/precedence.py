"""Whose word holds: the operator's options, the author's arguments and settings, the environment's variables.

An application that a module makes while it is imported (``app = create_app(…)``) is made by its author, before anybody
could hand it the operator's options. So the operator acts while the module is imported: every application made
meanwhile has the operator's settings where its author gave none, and the options that were given in so many words go
over what the author gave. Not for reading options (the command line) nor for what a setting means (``settings.py``).
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from fastapi import FastAPI
from starlette.routing import Mount

from openenv_gym.errors import SettingsError
from openenv_gym.types import ConcurrencyConfig
from openenv_gym_server.settings import ServerSettings, capacity_from_environment, uvicorn_options

__all__ = ["Held", "Operator", "acting", "current", "held", "hold", "serving_options"]

_CAPACITY = "max_concurrent_envs"
_PROTOCOL = "openenv_gym_server.websocket_protocol:WebSocketProtocol"  # by name: importing uvicorn is not free


@dataclasses.dataclass(frozen=True, eq=False)
class Operator:
    """The operator's settings for applications that are made by others.

    Attributes:
        settings: what holds where an author gives no settings.
        given: the fields of ``settings`` that go over an author's own, each with what the operator calls it.

    Example:
        >>> operator = Operator(ServerSettings(step_timeout_s=5.0), {"step_timeout_s": "--step-timeout"})
        >>> operator.over(ServerSettings(step_timeout_s=1.0, max_message_size_mb=2.0)).step_timeout_s
        5.0
    """

    settings: ServerSettings
    given: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def over(self, authors: ServerSettings) -> ServerSettings:
        """An author's settings with what the operator has given over them.

        Raises:
            SettingsError: the author's mode is production and the operator's simulation: what its author has closed,
                nobody opens by an option.
        """
        if "mode" in self.given and authors.production and not self.settings.production:
            raise SettingsError(
                f"expected {self.given['mode']} production or none at all, got simulation: the application is made "
                'with mode="production" (by its module, or by the environment variable OPENENV_MODE), where reset, '
                "step and state do not exist; change it there",
                setting="mode",
            )
        return dataclasses.replace(authors, **{name: getattr(self.settings, name) for name in self.given})

    def merged(
        self, authors: ServerSettings | None, capacity: int | None, concurrency: ConcurrencyConfig | None
    ) -> ServerSettings:
        """The settings in force, of what an author has given to an application.

        Args:
            authors: the author's settings.
            capacity: the author's ``max_concurrent_envs``.
            concurrency: the author's ``concurrency_config``.

        Raises:
            SettingsError: two of them contradict each other.
        """
        settings = self.settings
        if authors is not None and authors is not settings:
            settings = self.over(authors)
        elif _CAPACITY not in self.given and (capacity is not None or concurrency is not None):
            # A default, which the author's arguments go over.
            settings = dataclasses.replace(settings, max_concurrent_envs=None)
        if _CAPACITY not in self.given:
            settings = _with_capacity(settings, capacity, concurrency)
        if concurrency is not None and concurrency.session_timeout and "session_timeout_s" not in self.given:
            settings = dataclasses.replace(settings, session_timeout_s=concurrency.session_timeout)
        if settings.max_concurrent_envs is None:
            settings = dataclasses.replace(settings, max_concurrent_envs=capacity_from_environment())
        return settings


def _with_capacity(
    settings: ServerSettings, capacity: int | None, concurrency: ConcurrencyConfig | None
) -> ServerSettings:
    arguments = (
        (_CAPACITY, capacity),
        ("concurrency_config", None if concurrency is None else concurrency.max_concurrent_envs),
        (f"settings.{_CAPACITY}", settings.max_concurrent_envs),
    )
    said = [(name, value) for name, value in arguments if value is not None]
    if len(said) > 1:
        raise SettingsError(f"expected one of them, got both {said[0][0]} and {said[1][0]}", setting=_CAPACITY)
    return dataclasses.replace(settings, max_concurrent_envs=said[0][1]) if said else settings


# ------------------------------------------------------------------------------------------------- while one acts


_current: ContextVar[Operator | None] = ContextVar("openenv_gym_operator", default=None)


def current() -> Operator:
    """Who is acting; one who has given nothing, where nobody is."""
    return _current.get() or Operator(ServerSettings())


@contextlib.contextmanager
def acting(operator: Operator) -> Iterator[None]:
    """Let the operator's settings hold for the applications that are made meanwhile, on this thread."""
    token = _current.set(operator)
    try:
        yield
    finally:
        _current.reset(token)


# --------------------------------------------------------------------------------------- what an application holds


class Held(NamedTuple):
    """The settings of one server in an application, and who was acting when it was made."""

    settings: ServerSettings
    operator: Operator


def hold(app: FastAPI, settings: ServerSettings, operator: Operator) -> None:
    """Note the settings of a server that was put into an application."""
    app.state.openenv_gym_held = [*getattr(app.state, "openenv_gym_held", ()), Held(settings, operator)]


def held(app: FastAPI) -> list[Held]:
    """The settings of all servers in an application, those of applications mounted in it included."""
    found: list[Held] = list(getattr(app.state, "openenv_gym_held", ()))
    for route in app.routes:
        if isinstance(route, Mount) and isinstance(route.app, FastAPI):
            found += held(route.app)
    return found


def serving_options(app: FastAPI, settings: ServerSettings) -> dict[str, Any]:
    """``uvicorn_options`` for the settings that are in force in an application, and the protocol of its WebSockets.

    Args:
        app: the application.
        settings: what holds for an application that says nothing of its own.
    """
    every = [uvicorn_options(server.settings) for server in held(app)] or [uvicorn_options(settings)]
    return {name: max(options[name] for options in every) for name in every[0]} | {"ws": _PROTOCOL}
