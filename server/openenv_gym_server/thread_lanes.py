"""Making the environments of a vector session each on a thread of its own, all at the same time.

Not for playing them there (``crews.py``), nor for which threads (``workers.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from openenv_gym_server.crews import OnThreads, close_all
from openenv_gym_server.lanes import LaneSettings, Player
from openenv_gym_server.worker import Worker

__all__ = ["made_on_threads", "players_on_threads", "started"]


class _Closable(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=_Closable)


def started(count: int, start: Callable[[int], Worker]) -> list[Worker]:
    """So many threads; where one cannot be started, those that were end.

    Raises:
        BaseException: whatever ``start`` raises, which is given the index of each.
    """
    workers: list[Worker] = []
    try:
        for index in range(count):
            workers.append(start(index))  # noqa: PERF401 - those that were started are ended then
    except BaseException:
        _stop(workers)
        raise
    return workers


def made_on_threads(workers: Sequence[Worker], make: Callable[[Worker], C]) -> list[C]:
    """What ``make`` gives on each of the threads; where one raises, the others are closed and the threads end.

    Raises:
        BaseException: whatever the first that failed has raised.
    """
    jobs = [worker.submit(make, worker) for worker in workers]
    errors = [job.exception() for job in jobs]
    failed = [error for error in errors if error is not None]
    if not failed:
        return [job.result() for job in jobs]
    made = [(worker, job.result()) for worker, job, error in zip(workers, jobs, errors, strict=True) if not error]
    close_all([worker.submit(each.close).result for worker, each in made])
    _stop(workers)
    raise failed[0]


def _stop(workers: Sequence[Worker]) -> None:
    for worker in workers:
        worker.stop()


def players_on_threads(make: Callable[[], Player], count: int, settings: LaneSettings) -> OnThreads:
    """So many lanes, each with a player that was made on its own thread.

    Raises:
        BaseException: whatever the first that failed has raised.
    """
    workers = started(count, lambda index: Worker(f"openenv-lane-{index}"))
    return OnThreads(made_on_threads(workers, lambda _: make()), settings, workers)
