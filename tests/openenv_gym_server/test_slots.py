"""Tests of ``openenv_gym_server.slots``."""

from __future__ import annotations

import asyncio
import threading

import pytest

from openenv_gym_server.slots import Place, Slots

WAIT_S = 10.0


def test_whoever_comes_when_none_is_free_waits_for_its_turn() -> None:
    async def main() -> None:
        slots = Slots(1)
        await slots.acquire()
        order: list[int] = []

        async def take(number: int) -> None:
            await slots.acquire()
            order.append(number)

        waiting = [asyncio.ensure_future(take(number)) for number in range(3)]
        await asyncio.sleep(0)
        assert order == []
        for _ in range(3):
            threading.Thread(target=slots.release).start()
        await asyncio.wait_for(asyncio.gather(*waiting), WAIT_S)
        assert order == [0, 1, 2]
        slots.release()
        assert slots.free == 1

    asyncio.run(main())


def test_several_loops_share_them() -> None:
    slots = Slots(1)
    held, entered = threading.Event(), threading.Event()

    async def hold() -> None:
        await slots.acquire()
        held.set()
        assert await asyncio.to_thread(entered.wait, WAIT_S)
        slots.release()

    async def follow() -> None:
        taking = asyncio.ensure_future(slots.acquire())
        await asyncio.sleep(0)
        entered.set()
        await asyncio.wait_for(taking, WAIT_S)
        slots.release()

    other = threading.Thread(target=lambda: asyncio.run(hold()))
    other.start()
    assert held.wait(WAIT_S)
    asyncio.run(follow())
    other.join(WAIT_S)
    assert slots.free == 1


def test_whoever_stops_waiting_leaves_its_turn_to_the_next() -> None:
    async def main() -> None:
        slots = Slots(1)
        await slots.acquire()
        impatient = asyncio.ensure_future(slots.acquire())
        patient = asyncio.ensure_future(slots.acquire())
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.wait([impatient])
        slots.release()
        await asyncio.wait_for(patient, WAIT_S)
        late = asyncio.ensure_future(slots.acquire())
        await asyncio.sleep(0)
        # Its turn comes, and it is cancelled before it hears of it.
        slots.release()
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
        assert slots.free == 1

    asyncio.run(main())


def test_abandoned_work_frees_its_slot_up_to_a_bound_and_gives_back_once() -> None:
    slots, abandoned = Slots(3), Slots(1)
    places = []
    for _ in range(3):
        assert slots.take()
        places.append(Place(slots, abandoned))
    assert not slots.take()
    for place in places:
        place.abandon()
    assert (slots.free, abandoned.free) == (1, 0)
    for place in (*places, *places):
        place.give_back()
    places[0].abandon()
    assert (slots.free, abandoned.free) == (3, 1)
