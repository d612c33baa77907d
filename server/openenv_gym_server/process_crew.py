"""A vector session's environments in processes of their own, which run at the same time, whatever holds Python's lock.

Each process has one, and the very code that plays several in turn: ``vectorization="async"`` differs from
``"sync"`` in time alone. (``gymnasium.vector.AsyncVectorEnv`` names no environment that raised, waits for ever for one
whose exception cannot be pickled, and steps all or none.) Not for making what is in them (``vector_making.py``).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from gymnasium.vector.utils import CloudpickleWrapper

from openenv_gym.errors import EnvironmentExecutionError, OpenEnvGymError
from openenv_gym.info import decode_info, encode_info
from openenv_gym_server.crews import Crew, alone, joined
from openenv_gym_server.errors import text_of
from openenv_gym_server.lanes import Lanes, LaneSettings, Player, Rows

__all__ = ["InProcesses"]

CLOSE_TIMEOUT_S = 5.0
"""How long all of the processes have to close their environments and end, before they are killed."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """An exception that crosses from one process to another, whatever it is made of."""

    kind: str
    text: str
    trace: str
    own: OpenEnvGymError | None

    @classmethod
    def of(cls, error: BaseException) -> _Failure:
        plain = isinstance(error, OpenEnvGymError) and error.__cause__ is None
        cause = error.__cause__ or error
        trace = "".join(traceback.format_exception(cause)).encode("utf-8", "backslashreplace").decode()
        return cls(type(cause).__name__, text_of(cause), trace, error if plain else None)  # type: ignore[arg-type]

    def rebuilt(self) -> BaseException:
        """The exception: ours as it was, any other as one of the same name, with the traceback as a note."""
        if self.own is not None:
            return self.own
        error = type(self.kind, (Exception,), {})(self.text)
        error.add_note(f"in the process of the environment:\n{self.trace}")
        assert isinstance(error, Exception)
        return error


class InProcesses(Crew):
    """Environments that are played at the same time, each in a process of its own.

    Args:
        makers: make the players, each in its process; closures too.
        settings: how each goes on.

    Raises:
        EnvironmentExecutionError: an environment could not be made, or its process has ended.
    """

    def __init__(self, makers: Sequence[Callable[[], Player]], settings: LaneSettings) -> None:
        self.size = len(makers)
        context = multiprocessing.get_context("forkserver")
        # What every process needs is imported once.
        context.set_forkserver_preload([__name__, "openenv_gym_server.vector_making"])
        self._pipes: list[Connection] = []
        self._processes: list[multiprocessing.process.BaseProcess] = []
        try:
            for index, maker in enumerate(makers):
                ours, theirs = context.Pipe()
                process = context.Process(
                    target=_serve,
                    args=(theirs, pickle.dumps((_Portable(maker), settings))),
                    name=f"openenv-lane-{index}",
                    daemon=True,
                )
                process.start()
                theirs.close()
                self._pipes.append(ours)
                self._processes.append(process)
            for index in range(len(makers)):
                self._receive(index)
        except BaseException:
            self.close()
            raise

    def reset(self, ids: Sequence[int], seeds: Sequence[int | None], options: dict[str, Any] | None) -> Rows:
        """Begin an episode in each of the environments named."""
        return joined(self._exchange(ids, [("reset", ([seed], options)) for seed in seeds]), ids)

    def step(self, ids: Sequence[int], actions: Sequence[Any]) -> Rows:
        """Take an action in each of the environments named."""
        return joined(self._exchange(ids, [("step", ([action],)) for action in actions]), ids)

    def ask(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What the player's method gives, of each."""
        ids = range(len(self._pipes))
        answers = self._exchange(ids, [(f"player.{method}", args) for args in arguments])
        for answer in answers:
            if isinstance(answer, BaseException):
                _raise_as_it_was(answer)
        return answers

    def close(self) -> None:
        """Close every environment and end every process; those that have not ended in time are killed."""
        deadline = time.monotonic() + CLOSE_TIMEOUT_S
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.send(("player.close", ()))
        for pipe in self._pipes:
            with contextlib.suppress(OSError, EOFError):
                if pipe.poll(max(0.0, deadline - time.monotonic())):
                    pipe.recv_bytes()
            pipe.close()  # which ends a process that waits for a request
        for process in self._processes:
            process.join(max(0.1, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()

    def give_up(self) -> None:
        """Kill every process: whoever waits for one is told that it has ended."""
        for process in self._processes:
            process.kill()

    def _exchange(self, ids: Sequence[int], requests: Sequence[tuple[str, tuple[Any, ...]]]) -> list[Any]:
        """Send all before the first answer is awaited; what a lane raised is its answer."""
        for index, request in zip(ids, requests, strict=True):
            with contextlib.suppress(OSError):  # a process that has ended has no answer either
                self._pipes[index].send(request)
        answers: list[Any] = []
        for index in ids:
            try:
                answers.append(self._receive(index))
            except BaseException as error:  # noqa: BLE001 - an environment may raise anything; it is the answer
                answers.append(error)
        return answers

    def _receive(self, index: int) -> Any:
        try:
            answer = self._pipes[index].recv()
        except (EOFError, OSError):
            self._processes[index].join(CLOSE_TIMEOUT_S)
            raise EnvironmentExecutionError(
                f"the environment's process has ended with exit code {self._processes[index].exitcode}; what it wrote "
                "last is in the server's own output",
                code="EXECUTION_ERROR",
            ) from None
        if isinstance(answer, _Failure):
            raise answer.rebuilt()
        return answer


_Portable: Callable[[Callable[[], Player]], Any] = CloudpickleWrapper
"""Pickles closures too; Gymnasium says of it that it is for environments alone."""


def _raise_as_it_was(error: BaseException) -> NoReturn:
    if isinstance(error, OpenEnvGymError):
        raise error
    raise EnvironmentExecutionError(text_of(error), code="EXECUTION_ERROR") from error


def _serve(pipe: Connection, pickled: bytes) -> None:
    """What a process does: make the environment, then answer until the pipe or the environment is closed."""
    # An environment that hangs never comes to see that its pipe is closed.
    threading.Thread(target=_end_with_server, name="openenv-gym-parent", daemon=True).start()
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):  # the server is gone, or ends with this process
        try:
            maker, settings = pickle.loads(pickled)  # noqa: S301 - the server itself wrote it
            lanes = Lanes([maker.fn()], settings)
        except BaseException as error:  # noqa: BLE001 - told to the server; there is nothing else to do here
            pipe.send(_Failure.of(error))
            return
        pipe.send(None)
        method = ""
        while method != "player.close":
            method, args = pipe.recv()
            pipe.send_bytes(_pickled(_answer(lanes, method, args)))


def _end_with_server() -> None:
    server = multiprocessing.parent_process()
    assert server is not None
    server.join()
    os._exit(1)


def _answer(lanes: Lanes, method: str, args: tuple[Any, ...]) -> Any:
    owner, _, name = method.rpartition(".")
    try:
        return getattr(lanes.players[0], name)(*args) if owner else alone(lanes, name, *args)
    except BaseException as error:  # noqa: BLE001 - an environment may raise anything; the server tells the client
        return _Failure.of(error)


def _pickled(answer: Any) -> bytes:
    forms: tuple[Callable[[Any], Any], ...] = (lambda whole: whole, _without_objects)
    for form in forms:
        try:
            return pickle.dumps(form(answer))
        except Exception as error:  # noqa: BLE001 - an info may hold anything, and so may what a method returns
            failure = _Failure.of(error)
    return pickle.dumps(failure)


def _without_objects(rows: Rows) -> Rows:
    """The rows with an ``Opaque`` in their infos for each object that cannot travel."""
    infos = [_sendable(info) for info in rows.infos]
    ends = [(row, observation, _sendable(info)) for row, observation, info in rows.ends]
    return replace(rows, infos=infos, ends=ends)


def _sendable(info: dict[str, Any]) -> dict[str, Any]:
    return decode_info(*encode_info(info))
