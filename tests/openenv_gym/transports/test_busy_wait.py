"""Waits that ask before they sleep."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from openenv_gym.errors import SettingsError
from openenv_gym.transports import busy_wait
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.busy_wait import BusyWait, usable_cpus


@pytest.fixture(autouse=True)
def several_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy_wait, "SEVERAL_CPUS", True)


class Clock:
    """Waits that take what they are told to, by a clock that only they move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, takes_s: float) -> None:
        self.now, self.takes_s, self.asked, self.slept = 0.0, takes_s, 0, 0
        self._left = takes_s
        monkeypatch.setattr(busy_wait.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(busy_wait, "give_way", self._give_way)

    def _give_way(self) -> None:
        self.now += 0.0001
        self._left -= 0.0001

    def wait(self, timeout_s: float | None) -> bool:
        if timeout_s == 0:
            self.asked += 1
        else:
            self.slept += 1
            self.now += self._left
            self._left = 0.0
        came = self._left <= 1e-9
        if came:
            self._left = self.takes_s
        return came


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with monkeypatch.context() as patch:
        yield Clock(patch, 0.0002)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with monkeypatch.context() as patch:
        yield Clock(patch, 0.1)


def test_the_first_wait_sleeps_and_those_after_a_short_one_ask(quick: Clock) -> None:
    wait = BusyWait(quick.wait)
    assert wait(60.0)
    assert (quick.slept, quick.asked) == (1, 0)
    assert wait(60.0)
    assert wait(None)
    assert (quick.slept, quick.asked) == (1, 6)


def test_after_a_long_wait_nobody_asks(slow: Clock) -> None:
    wait = BusyWait(slow.wait)
    assert all(wait(60.0) for _ in range(3))
    assert (slow.slept, slow.asked) == (3, 0)


def test_asking_ends_in_a_sleep_and_is_not_begun_again_after_it(quick: Clock) -> None:
    wait = BusyWait(quick.wait)
    assert wait(60.0)
    quick._left = 5.0
    assert wait(60.0)
    assert quick.asked > 1
    asked, slept = quick.asked, quick.slept
    assert wait(60.0)
    assert (quick.asked, quick.slept) == (asked, slept + 1)


def test_a_wait_that_is_due_sooner_than_the_asking_would_end_sleeps(quick: Clock) -> None:
    wait = BusyWait(quick.wait)
    assert wait(60.0)
    assert wait(0.0005)
    assert (quick.slept, quick.asked) == (2, 0)


@pytest.mark.parametrize("cpus", [True, False])
def test_it_is_never_asked_where_that_is_off_or_there_is_one_processor(
    quick: Clock, monkeypatch: pytest.MonkeyPatch, cpus: bool
) -> None:
    monkeypatch.setattr(busy_wait, "SEVERAL_CPUS", cpus)
    wait = BusyWait(quick.wait, 0.0 if cpus else 0.001)
    assert all(wait(60.0) for _ in range(3))
    assert quick.asked == 0


@pytest.mark.parametrize(("text", "cpus"), [("50000 100000\n", 0.5), ("max 100000\n", None), ("", None), (None, None)])
def test_a_containers_limit_counts(tmp_path: Path, text: str | None, cpus: float | None) -> None:
    file = tmp_path / "cpu.max"
    if text is not None:
        file.write_text(text)
    machine = float(len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else float(os.cpu_count() or 1)
    assert usable_cpus(str(file)) == (machine if cpus is None else cpus)


def test_a_negative_time_is_no_setting() -> None:
    with pytest.raises(SettingsError) as caught:
        ConnectionSettings(busy_wait_s=-1.0)
    assert caught.value.setting == "busy_wait_s"
