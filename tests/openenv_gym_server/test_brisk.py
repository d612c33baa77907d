"""Loops that stay awake for peers that answer at once."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from openenv_gym_server import brisk
from openenv_gym_server.brisk import AT_ONCE_S, Peer


class Loop:
    """A loop whose callbacks run when the test says so, and its clock."""

    def __init__(self) -> None:
        self.now = 10.0
        self.soon: list[Callable[[], Any]] = []

    def call_soon(self, callback: Callable[..., Any], *args: Any) -> None:
        self.soon.append(lambda: callback(*args))

    def turn(self) -> None:
        due, self.soon = self.soon, []
        for callback in due:
            callback()


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    loop = Loop()
    monkeypatch.setattr(brisk, "SEVERAL_CPUS", True)
    monkeypatch.setattr(brisk.time, "perf_counter", lambda: loop.now)
    return loop


def peer_of(loop: Loop) -> Peer:
    return Peer(loop)  # type: ignore[arg-type]  # as much of a loop as it needs


def test_the_loop_turns_for_a_peer_that_answers_at_once_until_a_moment_has_passed(loop: Loop) -> None:
    peer = peer_of(loop)
    peer.sent()
    loop.now += AT_ONCE_S / 2
    peer.heard()
    for _ in range(3):
        loop.turn()
        assert len(loop.soon) == 1
    loop.now += AT_ONCE_S * 2
    loop.turn()
    assert loop.soon == []
    peer.sent()
    assert len(loop.soon) == 1


def test_the_loop_sleeps_for_a_peer_that_takes_its_time(loop: Loop) -> None:
    peer = peer_of(loop)
    for _ in range(3):
        peer.sent()
        loop.now += AT_ONCE_S * 2
        peer.heard()
        assert loop.soon == []


def test_many_peers_of_a_loop_keep_it_awake_once(loop: Loop) -> None:
    peers = [peer_of(loop) for _ in range(5)]
    for peer in peers:
        peer.sent()
        peer.heard()
    assert len(loop.soon) == 1


def test_a_loop_sleeps_where_there_is_one_processor(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brisk, "SEVERAL_CPUS", False)
    peer = peer_of(loop)
    peer.sent()
    peer.heard()
    assert loop.soon == []


def test_a_loop_that_is_gone_is_not_remembered() -> None:
    loop = asyncio.new_event_loop()
    peer: Peer | None = Peer(loop)
    assert peer is not None
    peer.sent()
    peer.heard()
    loop.close()
    gone = weakref.ref(loop)
    del loop, peer
    gc.collect()
    assert gone() is None
