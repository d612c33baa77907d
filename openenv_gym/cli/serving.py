"""One server process of ``openenv-gym serve``: load the target, listen, say so.

The command itself is such a process, or several of them are its children (``workers.py``). Not for reading options
(``serve.py``). The server is named by module path, so that a client-only program never imports it.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import importlib
import json
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

import typer
import uvicorn

from openenv_gym.cli.failures import told_short
from openenv_gym.errors import OpenEnvGymError, SettingsError

__all__ = ["Service", "main", "run", "url_of"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Service:
    """What is served, and how; all of it can be written as JSON.

    Attributes:
        target: what ``openenv_gym_server.target.load_app`` takes.
        fields: keyword arguments of ``ServerSettings``, an allow-list as a list or ``"all"``.
        given: those of them that go over what an app says itself, each with the option's name.
        env_kwargs: ``NAME=VALUE``, one a keyword argument of the environment.
        options: keyword arguments of ``uvicorn.Config``.
        named_actions: ``NAME=VALUE,…`` or a JSON object, the actions that get a tool each.

    Example:
        >>> Service(target="CartPole-v1", fields={"max_concurrent_envs": 4}).settings().max_concurrent_envs
        4
    """

    target: str
    fields: dict[str, Any] = dataclasses.field(default_factory=dict)
    given: dict[str, str] = dataclasses.field(default_factory=dict)
    env_kwargs: list[str] = dataclasses.field(default_factory=list)
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    named_actions: str = ""

    def settings(self) -> Any:
        """The ``ServerSettings``.

        Raises:
            SettingsError: one of them cannot be.
        """
        return importlib.import_module("openenv_gym_server.settings").ServerSettings(**self.fields)

    def keywords(self) -> dict[str, Any]:
        """The environment's keyword arguments, read.

        Raises:
            SettingsError: one has no name or no value.
        """
        return dict(_named("--env-kwarg", entry) for entry in self.env_kwargs)

    def actions(self) -> dict[str, Any]:
        """The actions with a name, read.

        Raises:
            SettingsError: one has no name or no value.
        """
        text = self.named_actions.strip()
        if not text.startswith("{"):
            named = [_named("--named-actions", entry.strip()) for entry in text.split(",") if entry.strip()]
            if len(dict(named)) < len(named):
                raise SettingsError(
                    f"expected a name in --named-actions once, got {text[:200]!r}", setting="named_actions"
                )
            return dict(named)
        try:
            return dict(json.loads(text))
        except ValueError as error:
            raise SettingsError(
                f"expected --named-actions as NAME=VALUE,… or a JSON object, got {text[:200]!r}: {error}",
                setting="named_actions",
            ) from None


def run(service: Service, listen: Callable[[], socket.socket], tell: Callable[[socket.socket], None]) -> None:
    """Serve until interrupted.

    Args:
        service: what to serve.
        listen: gives the listening socket; called when there is something to serve.
        tell: called with it, once the server answers.

    Raises:
        OpenEnvGymError: it cannot be served.
    """
    config = _configured(service)
    _Telling(config, tell).run(sockets=[listen()])


def main(config: dict[str, Any], *, grace_s: float) -> None:
    """Be one of several workers; started by ``workers.py`` through ``openenv_gym_server.guard``.

    Args:
        config: ``service``, the fields of a ``Service``; ``parent``, the parent's process id; ``listener`` and
            ``report``, the numbers of two inherited files: the listening socket, and where to say that it answers.
        grace_s: seconds for the environments to close after the parent's end.
    """
    # Before anything else is loaded: a parent that is gone meanwhile must end this process too.
    line = importlib.import_module("openenv_gym_server.parent_line").ParentLine(config["parent"], grace_s)
    # What the environment starts must not hold the port.
    os.set_inheritable(config["listener"], False)
    os.set_inheritable(config["report"], False)

    try:
        server_config = _configured(Service(**config["service"]))
    except OpenEnvGymError as error:
        typer.echo(f"openenv-gym: {error}", err=True)
        sys.exit(1)
    except typer.Exit as end:
        sys.exit(end.exit_code)

    def report(_: socket.socket) -> None:
        # Half of the time to stop is for requests in flight, as settings.uvicorn_options says.
        message = {"shutdown_s": 2 * (server_config.timeout_graceful_shutdown or 0)}
        # A parent that is gone already hears nothing; the line then ends this process.
        with contextlib.suppress(OSError), os.fdopen(config["report"], "w", encoding="utf-8") as stream:
            stream.write(json.dumps(message) + "\n")

    server = _Telling(server_config, report)
    line.ends(server)
    server.run(sockets=[socket.socket(fileno=config["listener"])])


def url_of(listener: socket.socket) -> str:
    """The base URL of a server that listens there."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _configured(service: Service) -> uvicorn.Config:
    settings = service.settings()
    app = _load(service, settings)
    held = importlib.import_module("openenv_gym_server.precedence").serving_options(app, settings)
    return uvicorn.Config(app, **service.options, **held)


def _load(service: Service, settings: Any) -> Any:
    """The target's app; what its own module raises is told short, and is no error of this program's."""
    load_app = importlib.import_module("openenv_gym_server.target").load_app
    try:
        return load_app(
            service.target,
            settings,
            env_kwargs=service.keywords(),
            given=service.given,
            named_actions=service.actions(),
        )
    except OpenEnvGymError:
        raise
    except Exception as error:  # the module's own code may raise anything, and its author has to be told
        typer.echo(f"openenv-gym: {service.target} cannot be loaded: {told_short(error)}", err=True)
        raise typer.Exit(1) from error


class _Telling(uvicorn.Server):
    """A server that tells, once it listens."""

    def __init__(self, config: uvicorn.Config, tell: Callable[[socket.socket], None]) -> None:
        super().__init__(config)
        self._tell = tell

    async def startup(self, sockets: list[Any] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            importlib.import_module("openenv_gym_server.tuning").collect_rarely()
            self._tell((sockets or [])[0])


def _named(option: str, entry: str) -> tuple[str, Any]:
    name, equals, text = entry.partition("=")
    if not equals or not name.isidentifier():
        raise SettingsError(
            f"expected {option} NAME=JSON{_COMMAS.get(option, '')}, got {entry!r}", setting=_SETTINGS[option]
        )
    for read in (json.loads, ast.literal_eval):
        # Both spellings of true, false and none, since a Python programmer will type either.
        with contextlib.suppress(ValueError, SyntaxError):
            return name, read(text)
    # A bare word is the string it looks like: --env-kwarg map_name=8x8.
    return name, text


_SETTINGS = {"--env-kwarg": "env_kwargs", "--named-actions": "named_actions"}
_COMMAS = {"--named-actions": " with a comma between two of them, or where a value has one all as a JSON object"}
