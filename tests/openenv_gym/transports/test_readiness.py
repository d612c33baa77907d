"""Waiting for a socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from openenv_gym.transports.readiness import Readiness, Watch


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair()
    with left, right:
        yield left, right


def test_nothing_to_read_is_false_after_the_timeout(pair: tuple[socket.socket, socket.socket]) -> None:
    assert Readiness(pair[0]).wait(0.01) is False


def test_something_to_read_is_true(pair: tuple[socket.socket, socket.socket]) -> None:
    readiness = Readiness(pair[0])
    pair[1].send(b"x")
    assert readiness.wait(10**12) is True
    assert readiness.wait(0) is True


def test_without_a_timeout_it_waits_until_there_is_something(pair: tuple[socket.socket, socket.socket]) -> None:
    timer = threading.Timer(0.05, pair[1].send, [b"x"])
    timer.start()
    assert Readiness(pair[0]).wait(None) is True
    timer.join()


def test_room_to_write_counts_when_writing(pair: tuple[socket.socket, socket.socket]) -> None:
    assert Readiness(pair[0]).wait(1.0, writing=True) is True


def test_of_many_those_with_something_to_read_are_told(pair: tuple[socket.socket, socket.socket]) -> None:
    watch = Watch()
    left, right = (sock.fileno() for sock in pair)
    watch.add(left)
    watch.add(right)
    assert watch.readable() == []
    pair[1].send(b"x")
    assert watch.readable() == [left]
    watch.discard(left)
    watch.discard(left)
    assert watch.readable() == []


def test_a_closed_one_counts_as_readable() -> None:
    left, right = socket.socketpair()
    watch = Watch()
    number = left.fileno()
    watch.add(number)
    left.close()
    right.close()
    assert watch.readable() == [number]


def test_the_first_of_many_is_waited_for(pair: tuple[socket.socket, socket.socket]) -> None:
    watch = Watch()
    watch.add(pair[0].fileno())
    assert watch.readable(0.01) == []
    timer = threading.Timer(0.05, pair[1].send, [b"x"])
    timer.start()
    assert watch.readable(None) == [pair[0].fileno()]
    timer.join()
    assert watch.readable(10**12) == [pair[0].fileno()]
