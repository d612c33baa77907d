"""``openenv-gym serve``: one environment as an OpenEnv service.

The server is named by module path, so that a client-only program never imports it.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import json
import socket
import sys
from typing import Annotated, Any

import typer
import uvicorn

from openenv_gym.cli.failures import told_short
from openenv_gym.errors import OpenEnvGymError, SettingsError

__all__ = ["serve"]

_NEVER = {"none", "off", "0"}


def serve(  # noqa: PLR0917  (one parameter an option)
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            help="A Gymnasium id (CartPole-v1, package:namespace/Name-v0), a package of an environment "
            "(openenv_gym_envs.echo), module:app, or module:Class, the class of an environment."
        ),
    ],
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(envvar="PORT", min=0, max=65535, help="0: the system chooses.")] = 8000,
    mode: Annotated[
        str | None, typer.Option(envvar="OPENENV_MODE", help="simulation, or production: no reset, step, state.")
    ] = None,
    max_concurrent_envs: Annotated[
        str | None, typer.Option(envvar="MAX_CONCURRENT_ENVS", help='Sessions at a time; a number or "unlimited".')
    ] = None,
    env_kwarg: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE for its making, in JSON or Python; may be repeated.")
    ] = None,
    allow_env_kwarg: Annotated[
        list[str] | None, typer.Option(help='A name clients may give as env_kwargs; "all" for every one.')
    ] = None,
    allow_remote: Annotated[
        list[str] | None, typer.Option(help='A method or attribute clients may use; "all" for every one.')
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="OPENENV_TOKEN", help="What every client must send as a bearer token.")
    ] = None,
    session_timeout: Annotated[str, typer.Option(help="Seconds a session may be idle; none: no limit.")] = "none",
    step_timeout: Annotated[str, typer.Option(help="Seconds a step may take; none: no limit.")] = "none",
    ping_interval: Annotated[str, typer.Option(help="Seconds between WebSocket pings; none: no pings.")] = "20",
    ping_timeout: Annotated[str, typer.Option(help="Seconds to wait for a pong; none: for ever.")] = "20",
    max_message_size_mb: Annotated[float, typer.Option(help="Limit of one inbound message, in MiB.")] = 16.0,
    log_level: Annotated[str, typer.Option(help="critical, error, warning, info, debug or trace.")] = "info",
    proxy_headers: Annotated[bool, typer.Option(help="Believe X-Forwarded-* of proxies on this machine.")] = True,
) -> None:
    """Serve an environment over HTTP and WebSocket, until interrupted.

    With module:app, an option that is given goes over what the module gave its app, and one that cannot hold there is
    refused; --mode simulation never opens an app that its module made for production. Options that are not given leave
    the module's own as they are, and so do the variables OPENENV_MODE and MAX_CONCURRENT_ENVS.
    """
    given = _given(context)
    settings = _settings(
        mode=mode if "mode" in given else None,
        max_concurrent_envs=_capacity(max_concurrent_envs) if "max_concurrent_envs" in given else None,
        allowed_env_kwargs=_names(allow_env_kwarg),
        remote_names=_names(allow_remote),
        token=token,
        session_timeout_s=_seconds("session-timeout", session_timeout),
        step_timeout_s=_seconds("step-timeout", step_timeout),
        max_message_size_mb=max_message_size_mb,
    )
    options: dict[str, Any] = {
        "log_level": log_level,
        "proxy_headers": proxy_headers,
        "ws_ping_interval": _seconds("ping-interval", ping_interval),
        "ws_ping_timeout": _seconds("ping-timeout", ping_timeout),
    }
    # As "python -m" does: what lies in the current directory can be served by name.
    sys.path.insert(0, "")
    app = _load(target, settings, env_kwargs=dict(map(_keyword, env_kwarg or ())), given=given)
    options |= importlib.import_module("openenv_gym_server.precedence").serving_options(app, settings)
    listener = _listen(host, port)
    _Announcing(uvicorn.Config(app, **options), target).run(sockets=[listener])


_FIELDS = {
    "mode": "mode",
    "max_concurrent_envs": "max_concurrent_envs",
    "allow_env_kwarg": "allowed_env_kwargs",
    "allow_remote": "remote_names",
    "token": "token",
    "session_timeout": "session_timeout_s",
    "step_timeout": "step_timeout_s",
    "max_message_size_mb": "max_message_size_mb",
}
"""The options that are fields of ``ServerSettings``, with the fields' names."""

_OF_THE_SERVER = {"mode", "max_concurrent_envs"}
"""Those whose environment variables every server reads itself, where nothing else is said."""


def _given(context: typer.Context) -> dict[str, str]:
    """The fields of ``ServerSettings`` that were given and not left at their defaults, each with its option."""
    given = {}
    for name, field in _FIELDS.items():
        source = getattr(context.get_parameter_source(name), "name", "")
        if source == "COMMANDLINE" or (source == "ENVIRONMENT" and name not in _OF_THE_SERVER):
            given[field] = f"--{name.replace('_', '-')}"
    return given


def _load(target: str, settings: Any, **keywords: Any) -> Any:
    """The target's app; what its own module raises is told short, and is no error of this program's."""
    load_app = importlib.import_module("openenv_gym_server.target").load_app
    try:
        return load_app(target, settings, **keywords)
    except OpenEnvGymError:
        raise
    except Exception as error:  # the module's own code may raise anything, and its author has to be told
        typer.echo(f"openenv-gym: {target} cannot be loaded: {told_short(error)}", err=True)
        raise typer.Exit(1) from error


class _Announcing(uvicorn.Server):
    """A server that says, once it listens, how to use it: with port 0 nobody else knows the address."""

    def __init__(self, config: uvicorn.Config, target: str) -> None:
        super().__init__(config)
        self._target = target

    async def startup(self, sockets: list[Any] | None = None) -> None:
        await super().startup(sockets)
        if not self.started:
            return
        importlib.import_module("openenv_gym_server.tuning").collect_rarely()
        host, port = (sockets or [])[0].getsockname()[:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        env_id = _IDS.get(self._target.partition(":")[0], "openenv/remote-v0")
        typer.echo(f'{self._target} at {url}    gymnasium.make("{env_id}", base_url="{url}")')


_IDS = {"openenv_gym_envs.echo": "openenv/echo-v0"}
"""The ids of targets whose calls of tools have an id that makes one text of each."""


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket, or an error that says what to do."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise SettingsError(
            f"expected to listen on {host} port {port}, but: {error.strerror or error}; choose others with --host and "
            "--port, or --port 0 for a free one",
            setting="port",
        ) from error


def _settings(*, mode: str | None, **fields: Any) -> Any:
    if mode is not None:
        fields["mode"] = mode
    return importlib.import_module("openenv_gym_server.settings").ServerSettings(**fields)


def _capacity(text: str | None) -> int | str | None:
    if text is None or text == "unlimited":
        return text
    try:
        return int(text)
    except ValueError:
        raise SettingsError(
            f'expected --max-concurrent-envs (or MAX_CONCURRENT_ENVS) to be a number or "unlimited", got {text!r}',
            setting="max_concurrent_envs",
        ) from None


def _names(names: list[str] | None) -> frozenset[str] | str:
    return "all" if "all" in (names or ()) else frozenset(names or ())


def _seconds(option: str, text: str) -> float | None:
    if text.strip().lower() in _NEVER:
        return None
    try:
        return float(text)
    except ValueError:
        raise SettingsError(f"expected --{option} to be seconds or none, got {text!r}", setting=option) from None


def _keyword(entry: str) -> tuple[str, Any]:
    name, equals, text = entry.partition("=")
    if not equals or not name.isidentifier():
        raise SettingsError(f"expected --env-kwarg NAME=JSON, got {entry!r}", setting="env_kwargs")
    for read in (json.loads, ast.literal_eval):
        # Both spellings of true, false and none, since a Python programmer will type either.
        with contextlib.suppress(ValueError, SyntaxError):
            return name, read(text)
    # A bare word is the string it looks like: --env-kwarg map_name=8x8.
    return name, text
