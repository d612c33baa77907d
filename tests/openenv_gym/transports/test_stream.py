"""Bytes on a non-blocking socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from openenv_gym.transports import stream as streams
from openenv_gym.transports.stream import Stream


@pytest.fixture
def pair() -> Iterator[tuple[Stream, socket.socket]]:
    left, right = socket.socketpair()
    with left, right:
        yield Stream(left), right


def test_what_came_is_read_and_then_nothing_and_then_the_end(pair: tuple[Stream, socket.socket]) -> None:
    stream, peer = pair
    assert stream.read() is None
    peer.sendall(b"hello")
    assert stream.wait(1.0)
    assert bytes(stream.read() or b"") == b"hello"
    peer.close()
    assert stream.wait(1.0)
    data = stream.read()
    assert data is not None
    assert not data


def test_a_buffer_that_was_filled_grows_and_is_read_again_without_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "_FIRST_BUFFER", 4)
    left, peer = socket.socketpair()
    with left, peer:
        stream = Stream(left)
        peer.sendall(b"12345678")
        assert bytes(stream.read() or b"") == b"1234"
        assert stream.wait(0)
        assert bytes(stream.read() or b"") == b"5678"
        assert len(stream._buffer) == 8


def test_what_the_socket_does_not_take_stays_to_be_written(pair: tuple[Stream, socket.socket]) -> None:
    stream, peer = pair
    size = 20_000_000
    stream.output.append(b"x" * size)
    stream.write()
    left = sum(len(data) for data in stream.output)
    assert 0 < left < size
    peer.setblocking(False)
    taken = 0
    while stream.output or taken < size:
        taken += len(peer.recv(1 << 20))
        stream.write()
    assert taken == size


def test_a_cut_ends_it_for_both_and_closing_may_be_repeated(pair: tuple[Stream, socket.socket]) -> None:
    stream, peer = pair
    stream.cut()
    assert peer.recv(1) == b""
    data = stream.read()
    assert data is not None
    assert not data
    peer.close()
    stream.cut()
    stream.close()
    stream.close()
    assert stream.fileno() == -1
    stream.cut()


def test_a_held_descriptor_is_cut_at_once_and_closed_at_the_end_of_the_hold(
    pair: tuple[Stream, socket.socket],
) -> None:
    stream, peer = pair
    peer.settimeout(5.0)
    stream.hold("one", lambda: True)
    stream.hold("another", lambda: True)
    stream.close()
    assert peer.recv(1) == b""
    stream.let_go("one")
    assert stream.fileno() != -1
    stream.let_go("another")
    assert stream.fileno() == -1


def test_who_holds_a_descriptor_and_lives_no_longer_keeps_nothing_open(pair: tuple[Stream, socket.socket]) -> None:
    stream, _ = pair
    stream.hold("dead", lambda: False)
    stream.hold("dead too", lambda: False)
    stream.close()
    assert stream.fileno() == -1


def test_a_forked_child_closes_what_is_held_and_cuts_nothing(pair: tuple[Stream, socket.socket]) -> None:
    stream, peer = pair
    with socket.socket(fileno=os.dup(stream.fileno())) as parents:
        stream.hold("loop", lambda: True)
        stream.abandon()
        assert stream.fileno() == -1
        parents.sendall(b"still here")
        assert peer.recv(16) == b"still here"


def test_what_is_given_back_is_read_once_more_before_anything_else(pair: tuple[Stream, socket.socket]) -> None:
    stream, peer = pair
    peer.sendall(b"hello")
    assert stream.wait(1.0)
    data = stream.read()
    assert data is not None
    stream.give_back(data[2:])
    peer.sendall(b"!")
    assert stream.ready
    assert stream.wait(0)
    room = memoryview(bytearray(2))
    assert bytes(stream.read(room) or b"") == b"ll"
    assert bytes(stream.read() or b"") == b"o"
    assert not stream.ready
    assert stream.wait(1.0)
    assert bytes(stream.read() or b"") == b"!"
