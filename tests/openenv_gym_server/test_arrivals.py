"""Tests of ``openenv_gym_server.arrivals``."""

from __future__ import annotations

import threading
from unittest.mock import Mock

from openenv_gym_server.arrivals import Arrivals


def test_what_is_there_is_given_in_its_order() -> None:
    arrivals: Arrivals[str] = Arrivals()
    arrivals.put(4, "b")
    arrivals.put(1, "a")
    assert len(arrivals) == 2
    results, errors = arrivals.take(0)
    assert (list(results.items()), errors) == ([(4, "b"), (1, "a")], {})
    assert arrivals.take(0) == ({}, {})


def test_a_wait_ends_with_the_number_or_with_its_time() -> None:
    arrivals: Arrivals[int] = Arrivals()
    threads = [threading.Thread(target=arrivals.put, args=(index, index)) for index in range(3)]
    for thread in threads:
        thread.start()
    assert arrivals.take(3)[0] == {0: 0, 1: 1, 2: 2}
    assert arrivals.take(1, 0.01) == ({}, {})
    for thread in threads:
        thread.join(10)


def test_a_failure_ends_a_hasty_wait_alone() -> None:
    arrivals: Arrivals[int] = Arrivals()
    error = OSError("no")
    failing = threading.Thread(target=arrivals.fail, args=(2, error))
    failing.start()
    assert arrivals.take(5, 10) == ({}, {2: error})
    failing.join(10)
    arrivals.fail(1, error)
    assert arrivals.take(2, 10) == ({}, {1: error})
    patient: Arrivals[int] = Arrivals()
    patient.fail(0, error)
    later = threading.Thread(target=patient.fail, args=(1, error))
    later.start()
    assert patient.take(2, 10, hasty=False) == ({}, {0: error, 1: error})
    later.join(10)


def test_a_wait_goes_on_where_it_was_woken_for_nothing() -> None:
    arrivals: Arrivals[int] = Arrivals()
    woken: list[float | None] = []

    def wait(timeout: float | None) -> bool:
        woken.append(timeout)
        if len(woken) > 1:  # the first comes of a thread that put before the wait, and set the event in it
            arrivals.put(len(woken), 0)
        return True

    arrivals._enough = Mock(spec=threading.Event, wait=wait)
    assert arrivals.take(2, 10) == ({2: 0, 3: 0}, {})
    assert all(timeout is not None and 0 < timeout <= 10 for timeout in woken)
