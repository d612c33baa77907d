"""The server end of an embedded process.

It serves one target on loopback to whoever has the token that its parent made up, reports its port, and lives as long
as its line to the parent: when standard input ends, the parent closed it or died. Started by
``openenv_gym.providers.process`` through ``guard.py``, never by hand.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import traceback
from typing import Any, TextIO

import uvicorn

from openenv_gym.errors import OpenEnvGymError
from openenv_gym.providers._boot import loaded
from openenv_gym.transports.listening import listener
from openenv_gym.types import ServerMode
from openenv_gym_server.parent_line import ParentLine
from openenv_gym_server.precedence import serving_options
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.target import load_app
from openenv_gym_server.tuning import collect_rarely

__all__ = ["main"]

_MESSAGE_SIZE_MB = 100.0
"""What the parent's own client sends at most, the two being one program's; the server's default is for strangers."""


def main(config: dict[str, Any], *, grace_s: float) -> None:
    """Serve until the parent is gone.

    Args:
        config: ``target``, what to serve; ``mode``, else simulation; ``parent``, the parent's process id; ``token``,
            what every request must carry, or None where the address is for others too.
        grace_s: seconds for the environments to close after the parent's end.
    """
    report = _take_stdout()
    line = ParentLine(int(config["parent"]), grace_s)
    try:
        server, listener = _prepare(str(config["target"]), config.get("mode"), config["token"], grace_s)
    except BaseException as error:  # noqa: BLE001  (SystemExit of a module too: the parent shows it, whatever it is)
        typed = isinstance(error, OpenEnvGymError)
        summary = str(error) if typed else f"{type(error).__name__}: {error}"
        _say(report, {"error": traceback.format_exc(), "summary": summary, "typed": typed})
        return
    line.ends(server)
    collect_rarely()
    _say(report, {"port": listener.getsockname()[1]})
    server.run(sockets=[listener])


def _prepare(target: str, mode: str | None, token: str | None, grace_s: float) -> tuple[uvicorn.Server, socket.socket]:
    private = token is not None
    settings = ServerSettings(
        # The environment variable OPENENV_MODE is for servers of their own; this one is its parent's.
        mode=mode or ServerMode.SIMULATION,
        max_concurrent_envs="unlimited",
        # Only the parent itself may reach into the environment; whoever else has the address may not.
        allowed_env_kwargs="all" if private else frozenset(),
        remote_names="all" if private else frozenset(),
        token=token,
        share_tracebacks=private,
        max_message_size_mb=_MESSAGE_SIZE_MB,
        shutdown_timeout_s=grace_s,
    )
    app = load_app(target, settings, given={"token": "the token"} if private else {})
    loaded()
    listening = listener("127.0.0.1", 0)
    config = uvicorn.Config(
        app,
        # Environments that raise are logged by the server itself; uvicorn's own lines are not for a learner's terminal.
        log_level="critical",
        # The line to the parent tells when it is gone; a parent that is only stopped or busy must not lose its
        # episodes.
        ws_ping_interval=None,
        **serving_options(app, settings),
    )
    return uvicorn.Server(config), listening


def _take_stdout() -> TextIO:
    """Keep standard output for the report, and let whatever an environment prints go to standard error."""
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return report


def _say(report: TextIO, message: dict[str, Any]) -> None:
    # A parent that is gone already hears nothing; the watch then ends this process.
    with contextlib.suppress(OSError):
        report.write(json.dumps(message) + "\n")
        report.close()
