"""The server end of an embedded process.

It serves one target on loopback, reports its port, and lives as long as its line to the parent: when standard input
ends, the parent closed it or died. Started by ``openenv_gym.providers.process``, never by hand.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import traceback
from typing import Any, TextIO

import uvicorn

from openenv_gym_server.settings import ServerSettings, uvicorn_options
from openenv_gym_server.target import load_app
from openenv_gym_server.tuning import collect_rarely

__all__ = ["main"]

_GRACE_S = 3.0
_PARENT_POLL_S = 1.0


def main(config: dict[str, Any]) -> None:
    """Serve until the parent is gone.

    Args:
        config: ``target``, what to serve; ``parent``, the parent's process id.
    """
    report = _take_stdout()
    try:
        server, listener = _prepare(str(config["target"]))
    except BaseException as error:  # noqa: BLE001  (SystemExit of a user's module included: the parent shows it, whatever it is)
        _say(report, {"error": traceback.format_exc(), "summary": f"{type(error).__name__}: {error}"})
        return
    watch = threading.Thread(
        target=_watch, args=(server, int(config["parent"])), name="openenv-gym-parent", daemon=True
    )
    watch.start()
    collect_rarely()
    _say(report, {"port": listener.getsockname()[1]})
    server.run(sockets=[listener])


def _prepare(target: str) -> tuple[uvicorn.Server, socket.socket]:
    settings = ServerSettings(
        max_concurrent_envs="unlimited", allowed_env_kwargs="all", remote_names="all", shutdown_timeout_s=_GRACE_S
    )
    app = load_app(target, settings)
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    config = uvicorn.Config(
        app,
        log_level="warning",
        # The line to the parent tells when it is gone; a parent that is only stopped or busy must not lose its
        # episodes.
        ws_ping_interval=None,
        **uvicorn_options(settings),
    )
    return uvicorn.Server(config), listener


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


def _watch(server: uvicorn.Server, parent: int) -> None:
    """End the server when the parent is gone, gently first."""
    ended = threading.Event()
    threading.Thread(target=_await_end_of_input, args=(ended,), name="openenv-gym-line", daemon=True).start()
    # A forked sibling can hold the line open beyond the parent's death; the parent's id cannot be held.
    while not ended.wait(_PARENT_POLL_S) and os.getppid() == parent:
        pass
    server.should_exit = True
    # An environment's thread may never end, and would keep this process from ending.
    time.sleep(2 * _GRACE_S)
    os._exit(1)


def _await_end_of_input(ended: threading.Event) -> None:
    with contextlib.suppress(OSError, ValueError):
        while os.read(0, 1024):
            pass
    ended.set()
