"""Turns between the calls of a connection and its keeper."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time

import pytest

from openenv_gym.transports.turns import Turn, Turns
from tests.openenv_gym.interrupting import apart
from tests.openenv_gym.transports.conftest import WAIT_S, interrupted_at


def test_a_turn_is_one_at_a_time_and_may_be_given_back_twice() -> None:
    turns, mine, other = Turns(), Turn(), Turn()
    assert turns.holder is None
    assert turns.take(mine)
    assert turns.holder is mine
    assert not turns.take(other)
    turns.give_back(other)
    assert turns.holder is mine
    turns.give_back(mine)
    turns.give_back(mine)
    assert turns.take(other)


def test_a_call_is_not_waited_for() -> None:
    turns = Turns()
    turns.take(Turn())
    start = time.monotonic()
    assert not turns.take(Turn(), patience_s=WAIT_S)
    assert time.monotonic() - start < WAIT_S / 2


def test_a_visit_of_another_thread_is_waited_for() -> None:
    turns = Turns()
    visit, taken = threading.Event(), threading.Event()

    def keep() -> None:
        turn = Turn(visit=True)
        assert turns.take(turn)
        taken.set()
        visit.wait(WAIT_S)
        turns.give_back(turn)

    thread = threading.Thread(target=keep)
    thread.start()
    assert taken.wait(WAIT_S)
    assert not turns.take(Turn(), patience_s=0.01)
    threading.Timer(0.05, visit.set).start()
    assert turns.take(Turn(), patience_s=WAIT_S)
    thread.join(WAIT_S)


def test_a_visit_of_the_same_thread_is_not_waited_for() -> None:
    turns = Turns()
    turns.take(Turn(visit=True))
    start = time.monotonic()
    assert not turns.take(Turn(), patience_s=WAIT_S)
    assert time.monotonic() - start < WAIT_S / 2


@pytest.mark.parametrize("point", range(1, 25))
@apart
def test_an_interrupted_turn_can_be_given_back(point: int) -> None:
    turns, turn = Turns(), Turn()
    with interrupted_at(point, within="turns.py"), contextlib.suppress(KeyboardInterrupt):
        turns.take(turn)
        turns.give_back(turn)
    turns.give_back(turn)
    assert turns.take(Turn())


def test_only_a_turn_of_the_very_thread_is_interrupted_by_another_and_none_of_a_task():
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        mine, task = Turn(), Turn(loop=loop)
        assert mine.interrupted_by(Turn())
        assert not task.interrupted_by(Turn(loop=loop))
        assert not task.interrupted_by(mine)
