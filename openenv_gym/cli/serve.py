"""``openenv-gym serve``: one environment as an OpenEnv service. Reads the options.

What serves by them is ``serving.py``, one process, or ``workers.py``, several.
"""

from __future__ import annotations

import functools
import socket
import sys
from typing import Annotated, Any

import typer

from openenv_gym.cli.serving import Service, run, url_of
from openenv_gym.cli.workers import supervise
from openenv_gym.errors import SettingsError
from openenv_gym.transports.listening import listener

__all__ = ["serve"]

_NEVER = {"none", "off", "0"}

_Target = Annotated[
    str,
    typer.Argument(
        help="A Gymnasium id (CartPole-v1, package:namespace/Name-v0), a package of an environment "
        "(openenv_gym_envs.echo), module:app, or module:Class, the class of an environment."
    ),
]
_Mode = Annotated[
    str | None, typer.Option(envvar="OPENENV_MODE", help="simulation, or production: no reset, step, state.")
]
_Workers = Annotated[
    int,
    typer.Option(
        min=1, help="Server processes, each on a port of its own: PORT, PORT+1, …; clients shard over all of them."
    ),
]
_Urls = Annotated[
    list[str] | None,
    typer.Option(help="Where clients reach the processes, if not at this host and these ports; repeated."),
]
_Capacity = Annotated[
    str | None,
    typer.Option(envvar="MAX_CONCURRENT_ENVS", help='Sessions at a time of each worker; a number or "unlimited".'),
]
_Keywords = Annotated[
    list[str] | None, typer.Option(help="NAME=VALUE for its making, in JSON or Python; may be repeated.")
]
_NamedActions = Annotated[
    str,
    typer.Option(help="Actions that get a tool each, as left=0,right=2 or a JSON object; for a Gymnasium environment."),
]
_KeywordNames = Annotated[
    list[str] | None, typer.Option(help='A name clients may give as env_kwargs; "all" for every one.')
]
_RemoteNames = Annotated[
    list[str] | None, typer.Option(help='A method or attribute clients may use; "all" for every one.')
]
_Code = Annotated[bool, typer.Option("--allow-code", help="Agents may give Python code that calls the tools.")]
_Seed = Annotated[
    int | None, typer.Option(min=0, help="Of every episode that the server begins itself, for a session over MCP.")
]
_Token = Annotated[
    str | None, typer.Option(envvar="OPENENV_TOKEN", help="What every client must send as a bearer token.")
]


def serve(  # noqa: PLR0917  (one parameter an option)
    context: typer.Context,
    target: _Target,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(envvar="PORT", min=0, max=65535, help="0: the system chooses.")] = 8000,
    mode: _Mode = None,
    workers: _Workers = 1,
    shard_url: _Urls = None,
    max_concurrent_envs: _Capacity = None,
    env_kwarg: _Keywords = None,
    named_actions: _NamedActions = "",
    allow_env_kwarg: _KeywordNames = None,
    allow_remote: _RemoteNames = None,
    allow_code: _Code = False,
    seed: _Seed = None,
    token: _Token = None,
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
    fields: dict[str, Any] = {
        "mode": mode,
        "max_concurrent_envs": _capacity(max_concurrent_envs) if "max_concurrent_envs" in given else None,
        "allowed_env_kwargs": _names(allow_env_kwarg),
        "remote_names": _names(allow_remote),
        "allow_code": allow_code,
        "seed": seed,
        "token": token,
        "session_timeout_s": _seconds("session-timeout", session_timeout),
        "step_timeout_s": _seconds("step-timeout", step_timeout),
        "max_message_size_mb": max_message_size_mb,
        "shards": shard_url or [],
    }
    if "mode" not in given:
        del fields["mode"]
    options = {
        "log_level": log_level,
        "proxy_headers": proxy_headers,
        "ws_ping_interval": _seconds("ping-interval", ping_interval),
        "ws_ping_timeout": _seconds("ping-timeout", ping_timeout),
    }
    # As "python -m" does: what lies in the current directory can be served by name.
    sys.path.insert(0, "")
    service = Service(
        target=target,
        fields=fields,
        given=given,
        env_kwargs=env_kwarg or [],
        options=options,
        named_actions=named_actions,
    )
    if workers == 1:
        run(service, functools.partial(_listen, host, port), functools.partial(_announce, target, mode))
    else:
        supervise(service, _listen_on_all(host, port, workers), functools.partial(_announce_all, target, mode))


_FIELDS = {
    "mode": "mode",
    "max_concurrent_envs": "max_concurrent_envs",
    "allow_env_kwarg": "allowed_env_kwargs",
    "allow_remote": "remote_names",
    "allow_code": "allow_code",
    "seed": "seed",
    "token": "token",
    "session_timeout": "session_timeout_s",
    "step_timeout": "step_timeout_s",
    "max_message_size_mb": "max_message_size_mb",
    "shard_url": "shards",
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


def _announce(target: str, mode: str | None, listening: socket.socket) -> None:
    """Say how to use the server: with port 0 nobody else knows the address."""
    url = url_of(listening)
    typer.echo(f"{target} at {url}    {_one(target, mode, url)}")


def _announce_all(target: str, mode: str | None, listeners: list[socket.socket]) -> None:
    urls = [url_of(listener) for listener in listeners]
    usage = f'gymnasium.make_vec("{_id_for(target)}", num_envs={len(urls)}, base_url="{urls[0]}")'
    typer.echo(f"{target} at {' '.join(urls)}    {_one(target, mode, urls[0]) if _is_production(mode) else usage}")


def _one(target: str, mode: str | None, url: str) -> str:
    asked = ', mode="production"' if _is_production(mode) else ""
    return f'gymnasium.make("{_id_for(target)}", base_url="{url}"{asked})'


def _is_production(mode: str | None) -> bool:
    return (mode or "").strip().lower() == "production"


def _id_for(target: str) -> str:
    return _IDS.get(target.partition(":")[0], "openenv/remote-v0")


_IDS = {"openenv_gym_envs.echo": "openenv/echo-v0"}
"""The ids of targets whose calls of tools have an id that makes one text of each."""


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket, or an error that says what to do."""
    try:
        return listener(host, port)
    except OSError as error:
        raise SettingsError(
            f"expected to listen on {host} port {port}, but: {error.strerror or error}; choose others with --host and "
            "--port, or --port 0 for a free one",
            setting="port",
        ) from error


def _listen_on_all(host: str, port: int, workers: int) -> list[socket.socket]:
    """A listening socket for each worker, on ports in a row; on whichever the system chooses, for port 0."""
    if port and port + workers - 1 > 65535:
        raise SettingsError(
            f"expected the last of {workers} workers' ports to be 65535 at most, got --port {port}; choose a lower "
            "one, or --port 0 for free ones",
            setting="port",
        )
    listeners: list[socket.socket] = []
    try:
        for number in range(workers):
            listeners.append(_listen(host, port + number if port else 0))  # noqa: PERF401 (those before an error close)
    except BaseException:
        for listener in listeners:
            listener.close()
        raise
    return listeners


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


def _names(names: list[str] | None) -> list[str] | str:
    return "all" if "all" in (names or ()) else names or []


def _seconds(option: str, text: str) -> float | None:
    if text.strip().lower() in _NEVER:
        return None
    try:
        return float(text)
    except ValueError:
        raise SettingsError(f"expected --{option} to be seconds or none, got {text!r}", setting=option) from None
