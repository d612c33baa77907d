"""How the environments of a vector session are played: one after another, or each on a thread of its own.

Not for those in processes (``process_crew.py``), nor for what is made of the rows (``lane_vector.py``).
"""

from __future__ import annotations

import functools
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from openenv_gym.errors import EnvironmentExecutionError, OpenEnvGymError
from openenv_gym_server.arrivals import Arrivals
from openenv_gym_server.errors import text_of
from openenv_gym_server.lanes import Lanes, LaneSettings, Player, Rows
from openenv_gym_server.worker import Worker

__all__ = ["Crew", "InTurn", "OnThreads", "alone", "close_all", "joined", "raise_in_lane"]

logger = logging.getLogger("openenv_gym_server")


class Crew(ABC):
    """Several environments; what one raises in a reset or a step becomes an error with its index.

    Attributes:
        size: how many.
    """

    size: int

    @abstractmethod
    def reset(self, ids: Sequence[int], seeds: Sequence[int | None], options: dict[str, Any] | None) -> Rows:
        """Begin an episode in each of the environments named.

        Raises:
            EnvironmentExecutionError: one of them raised.
        """

    @abstractmethod
    def step(self, ids: Sequence[int], actions: Sequence[Any]) -> Rows:
        """Take an action in each of the environments named.

        Raises:
            EnvironmentExecutionError: one of them raised.
        """

    @abstractmethod
    def ask(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What the player's method gives, of each with its own arguments.

        Raises:
            OpenEnvGymError: what the first that raised has raised.
        """

    @abstractmethod
    def close(self) -> None:
        """Close every environment, whatever closing one of them raises."""

    def give_up(self) -> None:  # noqa: B027 - a thread cannot be ended, so most have nothing to do here
        """Have what is under way end with an error, if it can; called while another thread waits for it."""


class InTurn(Crew):
    """Environments that are played one after another on the calling thread.

    Args:
        players: the environments.
        settings: how each goes on.
    """

    def __init__(self, players: Sequence[Player], settings: LaneSettings) -> None:
        self.size = len(players)
        self._lanes = Lanes(players, settings)

    def reset(self, ids: Sequence[int], seeds: Sequence[int | None], options: dict[str, Any] | None) -> Rows:
        """Begin an episode in each of the environments named."""
        rows = Rows()
        try:
            self._lanes.reset(rows, ids, seeds, options)
        except BaseException as error:  # noqa: BLE001 - an environment may raise anything; all of it is its own error
            raise_in_lane(error, ids[len(rows.observations)])
        return rows

    def step(self, ids: Sequence[int], actions: Sequence[Any]) -> Rows:
        """Take an action in each of the environments named."""
        rows = Rows()
        try:
            self._lanes.step(rows, ids, actions)
        except BaseException as error:  # noqa: BLE001 - an environment may raise anything; all of it is its own error
            raise_in_lane(error, ids[len(rows.observations)])
        return rows

    def ask(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What the player's method gives, of each."""
        return [getattr(player, method)(*args) for player, args in zip(self._lanes.players, arguments, strict=True)]

    def close(self) -> None:
        """Close every environment."""
        close_all([player.close for player in self._lanes.players])


class OnThreads(Crew):
    """Environments that are played at the same time, each on the thread where it was made.

    Args:
        players: the environments.
        settings: how each goes on.
        workers: their threads.
    """

    def __init__(self, players: Sequence[Player], settings: LaneSettings, workers: Sequence[Worker]) -> None:
        self.size = len(players)
        self._lanes = [Lanes([player], settings) for player in players]
        self._workers = workers
        self._arrivals: Arrivals[Rows] = Arrivals()
        self._under_way = 0  # begun and not collected

    def reset(self, ids: Sequence[int], seeds: Sequence[int | None], options: dict[str, Any] | None) -> Rows:
        """Begin an episode in each of the environments named."""
        jobs = [
            self._workers[index].submit(alone, self._lanes[index], "reset", [seed], options)
            for index, seed in zip(ids, seeds, strict=True)
        ]
        errors = [job.exception() for job in jobs]
        return joined([error or job.result() for job, error in zip(jobs, errors, strict=True)], ids)

    def step(self, ids: Sequence[int], actions: Sequence[Any]) -> Rows:
        """Take an action in each of the environments named."""
        self.begin(ids, actions)
        done, errors = self._arrivals.take(len(ids), hasty=False)
        self._under_way = 0
        return joined([errors[index] if index in errors else done[index] for index in ids], ids)

    def begin(self, ids: Sequence[int], actions: Sequence[Any]) -> None:
        """Begin a step in each of the environments named, none of which is at one; ``collect`` gives their rows."""
        self._under_way += len(ids)
        for index, action in zip(ids, actions, strict=True):
            self._workers[index].post(functools.partial(self._step, index, action))

    def _step(self, index: int, action: Any) -> None:
        rows = Rows()
        try:
            self._lanes[index].step(rows, (0,), (action,))
        except BaseException as error:  # noqa: BLE001 - an environment may raise anything; all of it is its own error
            self._arrivals.fail(index, error)
        else:
            self._arrivals.put(index, rows)

    @property
    def busy(self) -> bool:
        """Whether a step is not done yet."""
        return self._under_way > len(self._arrivals)

    def collect(self, at_least: int, within_s: float | None) -> tuple[list[int], Rows]:
        """All steps that are done, in the order in which they were done: the environments, and their rows.

        Args:
            at_least: steps to wait for.
            within_s: seconds to wait at most; None: without a limit.

        Raises:
            EnvironmentExecutionError: one of them raised; then no more is waited for.
        """
        done, errors = self._arrivals.take(at_least, within_s)
        self._under_way -= len(done)
        for index, error in errors.items():
            raise_in_lane(error, index)
        return list(done), joined(list(done.values()), list(done))

    def ask(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What the player's method gives, of each."""
        jobs = [
            worker.submit(getattr(lanes.players[0], method), *args)
            for worker, lanes, args in zip(self._workers, self._lanes, arguments, strict=True)
        ]
        for job in jobs:
            job.exception()  # so that none goes on after this has returned
        return [job.result() for job in jobs]

    def close(self) -> None:
        """Close every environment, and let the threads end."""
        jobs = [worker.submit(lanes.players[0].close) for worker, lanes in zip(self._workers, self._lanes, strict=True)]
        close_all([job.result for job in jobs])
        for worker in self._workers:
            worker.stop()


def alone(lanes: Lanes, method: str, *args: Any) -> Rows:
    """What ``reset`` or ``step`` gives for the only environment of these lanes."""
    rows = Rows()
    getattr(lanes, method)(rows, (0,), *args)
    return rows


def joined(answers: Sequence[Rows | BaseException], ids: Sequence[int]) -> Rows:
    """The rows of all, in their order.

    Raises:
        EnvironmentExecutionError: one of them is what its environment has raised.
    """
    rows = Rows()
    for index, answer in zip(ids, answers, strict=True):
        if isinstance(answer, BaseException):
            raise_in_lane(answer, index)
        rows.add(answer)
    return rows


def raise_in_lane(error: BaseException, index: int) -> NoReturn:
    """Raise what an environment of a vector has raised as its error, with its index.

    Raises:
        EnvironmentExecutionError: always.
    """
    cause = error if error.__cause__ is None or not isinstance(error, OpenEnvGymError) else error.__cause__
    raise EnvironmentExecutionError(text_of(error), code="EXECUTION_ERROR", env_index=index) from cause


def close_all(closings: Sequence[Callable[[], object]]) -> None:
    """Close each; what closing one raises is logged, and keeps no other from being closed."""
    for close in closings:
        try:
            close()
        except OpenEnvGymError:
            logger.warning("an environment raised in close()", exc_info=True)
