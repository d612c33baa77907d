"""Tests of ``openenv_gym_server.thread_lanes``."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from gymnasium.vector import AutoresetMode

from openenv_gym_server.lanes import LaneSettings
from openenv_gym_server.thread_lanes import made_on_threads, players_on_threads, started
from openenv_gym_server.worker import Worker


class Made:
    """Remembers its threads."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.threads = [threading.get_ident()]

    def step(self, action: Any) -> Any:
        self.threads.append(threading.get_ident())
        return self.threads[-1], 1.0, False, False, {}

    def plain(self, result: Any) -> Any:
        return result

    def close(self) -> None:
        self.threads.append(threading.get_ident())


def test_each_is_made_played_and_closed_on_its_own_thread() -> None:
    players: list[Made] = []

    def make() -> Any:
        players.append(Made())
        return players[-1]

    crew = players_on_threads(make, 3, LaneSettings(AutoresetMode.NEXT_STEP, None))
    crew.begin([2, 0, 1], [0, 0, 0])
    ids, rows = crew.collect(3, 10)
    assert (sorted(ids), len(rows.observations)) == ([0, 1, 2], 3)
    assert not crew.busy
    crew.close()
    assert [len(set(player.threads)) for player in players] == [1] * 3
    assert len({player.threads[0] for player in players}) == 3


def test_where_a_thread_cannot_be_started_those_that_were_end() -> None:
    workers: list[Worker] = []

    def start(index: int) -> Worker:
        if index == 2:
            raise RuntimeError("can't start new thread")
        workers.append(Worker(f"lane-{index}"))
        return workers[-1]

    with pytest.raises(RuntimeError, match="new thread"):
        started(3, start)
    assert [worker.join(10) for worker in workers] == [True, True]


def test_where_one_fails_the_others_are_closed_and_the_threads_end() -> None:
    made: list[Made] = []

    def make(worker: Worker) -> Made:
        if worker is workers[1]:
            raise OSError("no such device")
        made.append(Made())
        return made[-1]

    workers = [Worker(f"lane-{index}") for index in range(3)]
    with pytest.raises(OSError, match="no such device"):
        made_on_threads(workers, make)
    assert [len(each.threads) for each in made] == [2, 2]
    assert all(worker.join(10) for worker in workers)
