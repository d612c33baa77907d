"""Servers in processes of this machine.

``ProcessProvider`` starts one of its own; ``lease_embedded`` shares one among all who ask for the same target. A server
process binds a port that the system chose and reports it over its standard output: no process ever chooses a port for
another. Its standard input is the line that keeps it alive: however this process dies, the line breaks, and the server
ends with it. The other end is ``openenv_gym_server.guard``, named here by module path only.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import secrets
import subprocess
import threading
from collections.abc import Mapping
from typing import Any

from openenv_gym.errors import ProviderError
from openenv_gym.providers._boot import boot_command, import_path, loading
from openenv_gym.providers._ready import wait_until_ready
from openenv_gym.providers.base import Lease, Provider
from openenv_gym.transports.base import ConnectionSettings

__all__ = ["ProcessProvider", "lease_embedded"]

_SERVER_MODULE = "openenv_gym_server.guard"
_STOP_TIMEOUT_S = 5.0

_SIMULATION = "simulation"


class ProcessProvider(Provider):
    """A server in a process of its own on this machine, on loopback.

    Args:
        target: what it serves, as ``openenv-gym serve`` takes it: a Gymnasium id, a package of an environment, or
            ``"module:app"``.
        private: whether it serves this process alone, which then must send ``headers``, a random token. In return
            environment keywords, methods and attributes are open to it; to any user of the machine they never are.
        start_timeout_s: seconds until it must listen.
        mode: "simulation", or "production": no reset, step and state.

    Example:
        >>> provider = ProcessProvider("CartPole-v1")
        >>> base_url = provider.start()
        >>> provider.stop()
    """

    def __init__(
        self, target: str, *, private: bool = False, start_timeout_s: float = 120.0, mode: str = _SIMULATION
    ) -> None:
        self.target = target
        self.private = private
        self.start_timeout_s = start_timeout_s
        self.mode = mode
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0
        self._token: str | None = None

    def configuration(self) -> dict[str, object]:
        """The keyword arguments that make an equal provider."""
        return {
            "target": self.target,
            "private": self.private,
            "start_timeout_s": self.start_timeout_s,
            "mode": self.mode,
        }

    @property
    def headers(self) -> Mapping[str, str]:
        """What a client has to send along; empty unless the running server is private."""
        return {} if self._token is None else {"Authorization": f"Bearer {self._token}"}

    def start(self) -> str:
        """Start the process and return its address as soon as it listens.

        Raises:
            ProviderError: it runs already, or it could not be started: the message has the child's own error.
        """
        if self._process is not None:
            raise ProviderError(f"expected a provider that is not running; it serves {self.target!r}: stop() it first")
        self._token = secrets.token_urlsafe(32) if self.private else None
        config = {
            "module": _SERVER_MODULE,
            "sys_path": import_path(),
            "target": self.target,
            "mode": self.mode,
            "parent": os.getpid(),
            # Over standard input, and not among the arguments, which any user can read.
            "token": self._token,
        }
        variables = loading(self.target)
        self._owner = os.getpid()
        self._process = subprocess.Popen(  # noqa: S603  (our own interpreter and our own program)
            boot_command(),
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            # A ctrl-C at the terminal is for the learner, who then closes its environments.
            start_new_session=True,
        )
        try:
            report = self._handshake(config)
        except BaseException:
            self.stop()
            raise
        if "error" in report:
            self.stop()
            # A typed error says all that matters; anything else needs its place in the code.
            details = "" if report["typed"] else f"\n{report['error']}"
            raise ProviderError(
                f"expected a server of {self.target!r}, but it failed to start: {report['summary']}{details}",
                output=report["error"],
            )
        return f"http://127.0.0.1:{report['port']}"

    def _handshake(self, config: dict[str, Any]) -> dict[str, Any]:
        """Send the configuration and read the one line the child reports."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        # A child that dies before it reads breaks the pipe; its exit status then says more than the broken pipe does.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(config) + "\n")
            process.stdin.flush()
        line = _read_line(process, self.start_timeout_s)
        if line is None:
            raise ProviderError(f"expected the server of {self.target!r} to listen within {self.start_timeout_s:g} s")
        try:
            report = json.loads(line)
        except ValueError:
            report = None
        if not isinstance(report, dict):
            status = process.wait(_STOP_TIMEOUT_S)
            raise ProviderError(
                f"expected the server of {self.target!r} to report its port, but it ended with status {status} and "
                f"said {line!r}; what it printed on standard error stands above",
                output=line,
            )
        return report

    def wait_for_ready(self, base_url: str, timeout_s: float = 30.0) -> None:
        """Return when the server can make its environment.

        Raises:
            ProviderError: it ended, or was not ready in time.
        """
        settings = ConnectionSettings(headers=self.headers)
        wait_until_ready(base_url, timeout_s, settings=settings, ended=self.ended)

    def ended(self) -> str | None:
        """Why the process is gone, or None while it runs."""
        if self._process is None:
            return "it was not started"
        status = self._process.poll()
        return None if status is None else f"exit status {status}"

    def stop(self) -> None:
        """End the process: first by closing its line, then by force. May be called again."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        if self._owner != os.getpid():
            # A forked child holds a copy of the object, not the right to end its parent's server; with its own ends of
            # the pipes closed it has let go of everything.
            process.returncode = 0
            return
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _read_line(process: subprocess.Popen[str], timeout_s: float) -> str | None:
    """One line of the child's standard output, "" at its end, None after the time is up."""
    lines: list[str] = []
    assert process.stdout is not None
    stdout = process.stdout
    # A thread because a pipe has no read with a deadline on every system; it ends with the line or with the process.
    reader = threading.Thread(target=lambda: lines.append(stdout.readline()), name="openenv-gym-start", daemon=True)
    reader.start()
    reader.join(timeout_s)
    if reader.is_alive():
        process.kill()
        reader.join()
        return None
    return lines[0]


class _Shared:
    """An embedded server and the number of those who use it."""

    def __init__(self, target: str, mode: str) -> None:
        self.provider = ProcessProvider(target, private=True, mode=mode)
        self.base_url = ""
        self.users = 0
        self._starting = threading.Lock()

    def ensure_running(self) -> tuple[str, Mapping[str, str]]:
        """Address and headers, of a new process where the last one is gone."""
        with self._starting:
            if not self.base_url or self.provider.ended() is not None:
                self.provider.stop()
                self.base_url = self.provider.start()
            return self.base_url, self.provider.headers


_shared: dict[tuple[str, str], _Shared] = {}
_lock = threading.Lock()


def lease_embedded(target: str, mode: str = _SIMULATION) -> Lease:
    """The address of the one embedded server of ``target`` in this process and that mode, started if need be.

    It is stopped when the last lease is released, at the interpreter's exit, or with this process, however that ends.

    Raises:
        ProviderError: it could not be started.
    """
    key = target, mode
    with _lock:
        server = _shared.setdefault(key, _Shared(target, mode))
        server.users += 1
    owner = os.getpid()
    try:
        base_url, headers = server.ensure_running()
    except BaseException:
        _release(key, server, owner)
        raise
    return Lease(base_url, headers, release=lambda: _release(key, server, owner), renew=server.ensure_running)


def _release(key: tuple[str, str], server: _Shared, owner: int) -> None:
    if owner != os.getpid():
        return
    with _lock:
        server.users -= 1
        if server.users:
            return
        if _shared.get(key) is server:
            del _shared[key]
    server.provider.stop()


def _stop_all() -> None:
    with _lock:
        servers = list(_shared.values())
        _shared.clear()
    for server in servers:
        server.provider.stop()


def _forget_all() -> None:
    """In a forked child: the servers are the parent's."""
    global _lock  # noqa: PLW0603  (another thread of the parent may have held it at the fork)
    _lock = threading.Lock()
    _shared.clear()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
