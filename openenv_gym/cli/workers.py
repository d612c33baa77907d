"""Several server processes for one target, each on a port of its own: ``openenv-gym serve --workers``.

The parent holds the listening sockets and hands one to each worker, so that every port is known, and published by all,
before anybody answers, and stays a worker's own while it is started again. A worker's standard input is its line to the
parent: however the parent ends, the workers end. Not for what a worker does (``serving.py``).
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import json
import os
import queue
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

import typer

from openenv_gym.cli.serving import Service
from openenv_gym.errors import SettingsError
from openenv_gym.providers._boot import boot_command, import_path

__all__ = ["supervise"]

_SERVER = {"module": "openenv_gym_server.guard", "server": "openenv_gym.cli.serving"}
_FIRST_DELAY_S = 0.5
_LONGEST_DELAY_S = 30.0
_WELL_AFTER_S = 60.0
"""A worker that lived so long has not failed: the next start comes after the first delay again."""

_SHUTDOWN_S = 10.0
"""How long a worker may take to stop which has not said it, being still at its start."""

_SLACK_S = 2.0


def supervise(service: Service, listeners: list[socket.socket], tell: Callable[[list[socket.socket]], None]) -> None:
    """Run one worker for each listening socket until interrupted or terminated, and start again those that die.

    The first worker starts alone: what cannot be served is thus said once.

    Args:
        service: what each worker serves. Without ``shards`` of its own, the listeners' ports are published.
        listeners: where the workers listen; closed at the end.
        tell: called with them, once every worker answers.

    Raises:
        SettingsError: an option cannot be, or the system cannot hand sockets to a child.
        typer.Exit: a worker could not be started; it has said why.
    """
    with contextlib.ExitStack() as stack:
        for listener in listeners:
            stack.enter_context(listener)
        if os.name != "posix":
            raise SettingsError("expected --workers 1: several need a system with POSIX processes", setting="workers")
        group = _Group([_Worker(_published(service, listeners), listener) for listener in listeners])
        with _signals_as_events(group.events):
            try:
                number = group.start() or group.keep(lambda: tell(listeners))
            finally:
                group.stop()
    # As one server does that is not several: whoever sent the signal sees a process that it has ended.
    signal.raise_signal(number)


def _published(service: Service, listeners: list[socket.socket]) -> Service:
    """The service with all shards; validated here, so that a mistake is told once."""
    shards = service.fields.get("shards")
    if shards and len(shards) < len(listeners):
        raise SettingsError(
            f"expected a --shard-url for each of {len(listeners)} workers, got {len(shards)}; repeat the option, or "
            "leave it out where clients can reach the ports themselves",
            setting="shards",
        )
    if not shards:
        ports = [f":{listener.getsockname()[1]}" for listener in listeners]
        service = dataclasses.replace(
            service, fields={**service.fields, "shards": ports}, given={**service.given, "shards": "--workers"}
        )
    service.settings()
    service.keywords()
    service.actions()
    return service


@contextlib.contextmanager
def _signals_as_events(events: queue.SimpleQueue[_Event]) -> Iterator[None]:
    """Have interrupt and termination appear among the events."""

    def note(number: int, _: object) -> None:
        events.put(_Signal(number))

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclasses.dataclass(frozen=True)
class _Signal:
    number: int


@dataclasses.dataclass(frozen=True)
class _Ready:
    worker: _Worker
    shutdown_s: float


@dataclasses.dataclass(frozen=True)
class _Ended:
    worker: _Worker
    status: int


_Event: TypeAlias = _Signal | _Ready | _Ended


class _State(enum.Enum):
    """Where a worker is."""

    IDLE = "there is no process, and none is wanted yet"
    STARTING = "its process runs and does not answer yet"
    READY = "it answers"
    RESTING = "its process has ended; it starts again when the time has come"


class _Worker:
    """One server process at a time, on one port.

    Args:
        service: what it serves.
        listener: where.
    """

    def __init__(self, service: Service, listener: socket.socket) -> None:
        self.state = _State.IDLE
        self.port = listener.getsockname()[1]
        self.shutdown_s = _SHUTDOWN_S
        self.due = 0.0
        self._service = service
        self._listener = listener
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: threading.Thread | None = None
        self._began = 0.0
        self._failures = 0

    def start(self, events: queue.SimpleQueue[_Event]) -> None:
        """Start the process; events will tell when it answers, and when it has ended."""
        reading, writing = os.pipe()
        try:
            process = subprocess.Popen(  # noqa: S603  (our own interpreter and our own program)
                boot_command(),
                stdin=subprocess.PIPE,
                pass_fds=(self._listener.fileno(), writing),
                # A ctrl-C at the terminal is for the parent, which then ends its workers.
                start_new_session=True,
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self._process, self._began, self.state = process, time.monotonic(), _State.STARTING
        config = {
            **_SERVER,
            "sys_path": import_path(),
            "parent": os.getpid(),
            "listener": self._listener.fileno(),
            "report": writing,
            "service": dataclasses.asdict(self._service),
        }
        assert process.stdin is not None
        # A child that dies before it reads breaks the pipe; its end is an event of its own.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(config).encode() + b"\n")
            process.stdin.flush()
        name = f"openenv-gym-worker-{self.port}"
        self._watch = threading.Thread(target=self._tell, args=(process, reading, events), name=name, daemon=True)
        self._watch.start()

    def _tell(self, process: subprocess.Popen[bytes], reading: int, events: queue.SimpleQueue[_Event]) -> None:
        with os.fdopen(reading, encoding="utf-8") as report:
            line = report.readline()
        if line:
            events.put(_Ready(self, json.loads(line)["shutdown_s"]))
        events.put(_Ended(self, process.wait()))

    def ended(self) -> float:
        """Note that the process has ended; gives the seconds until it is due again."""
        if time.monotonic() - self._began >= _WELL_AFTER_S:
            self._failures = 0
        delay = min(_LONGEST_DELAY_S, _FIRST_DELAY_S * (1 << self._failures))
        # Bounded, since the power is not.
        self._failures = min(self._failures + 1, 16)
        self.state, self.due = _State.RESTING, time.monotonic() + delay
        self._release()
        return delay

    def terminate(self) -> None:
        """Ask the process to end."""
        if self._process is not None:
            self._process.terminate()

    def kill(self) -> None:
        """End the process, if it has not ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._release()

    @property
    def running(self) -> bool:
        """Whether there is a process whose end was not noted."""
        return self._process is not None

    def _release(self) -> None:
        """Close the line, and see the watching thread end; the process has ended."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        if self._watch is not None:
            self._watch.join()
            self._watch = None


class _Group:
    """All workers, and what happens to them.

    Args:
        workers: not started yet.
    """

    def __init__(self, workers: list[_Worker]) -> None:
        self.events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._workers = workers

    def start(self) -> int | None:
        """Start the workers, the first alone; gives the signal that came meanwhile, if one did.

        Raises:
            typer.Exit: one ended before it answered.
        """
        for workers in (self._workers[:1], self._workers[1:]):
            for worker in workers:
                worker.start(self.events)
            while any(worker.state is not _State.READY for worker in workers):
                match self.events.get():
                    case _Signal(number):
                        return number
                    case _Ended(worker, status):
                        worker.ended()
                        typer.echo(
                            f"openenv-gym: the worker on port {worker.port} ended at its start ({_told(status)})",
                            err=True,
                        )
                        raise typer.Exit(1)
                    case _Ready(worker, shutdown_s):
                        worker.state, worker.shutdown_s = _State.READY, shutdown_s
        return None

    def keep(self, tell: Callable[[], None]) -> int:
        """Tell that all answer, then start again whichever ends; gives the signal that ended this."""
        tell()
        while True:
            event = self._next_event()
            match event:
                case _Signal(number):
                    return number
                case _Ready(worker, shutdown_s):
                    worker.state, worker.shutdown_s = _State.READY, shutdown_s
                    typer.echo(f"openenv-gym: the worker on port {worker.port} answers again", err=True)
                case _Ended(worker, status):
                    delay = worker.ended()
                    text = f"the worker on port {worker.port} ended ({_told(status)}); it starts again in {delay:g} s"
                    typer.echo(f"openenv-gym: {text}", err=True)
                case None:
                    pass
            for worker in self._workers:
                if worker.state is _State.RESTING and worker.due <= time.monotonic():
                    worker.start(self.events)

    def _next_event(self) -> _Event | None:
        """What happens next; None when it is time for a worker to start again."""
        due = [worker.due for worker in self._workers if worker.state is _State.RESTING]
        try:
            return self.events.get(timeout=max(0.0, min(due) - time.monotonic()) if due else None)
        except queue.Empty:
            return None

    def stop(self) -> None:
        """End all workers: gently, and those by force that take longer than they said; a second signal does it now."""
        running = {worker for worker in self._workers if worker.running}
        for worker in running:
            worker.terminate()
        deadline = time.monotonic() + max(worker.shutdown_s for worker in self._workers) + _SLACK_S
        while running:
            try:
                event = self.events.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                break
            if isinstance(event, _Signal):
                break
            if isinstance(event, _Ended):
                running.discard(event.worker)
        for worker in self._workers:
            worker.kill()


def _told(status: int) -> str:
    """An exit status in words."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
