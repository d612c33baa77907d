"""``Places`` over clients in memory: who gets which session when, and what is left behind."""

from __future__ import annotations

import asyncio

import pytest

from openenv_gym import pool_places
from openenv_gym.errors import CapacityError, SessionStateError, UnreachableError
from openenv_gym.pool_places import Places
from tests.openenv_gym.places_in_memory import WAIT_S, Client, Server, places_on, run, settle, until


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(pool_places, "_FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(pool_places, "_LONGEST_PAUSE_S", 0.004)


def test_a_session_is_kept_for_the_next_caller():
    async def play():
        server = Server()
        places = places_on(server)
        first = await places.take()
        places.leave(first, keep=True)
        second = await places.take()
        assert second.client is first.client
        assert (server.asked, server.open) == (1, 1)
        places.leave(second, keep=False)
        third = await places.take()
        await settle()
        assert (server.asked, server.open, places.in_use) == (2, 1, 1)
        assert third.client is not None
        await places.close()
        await places.close()
        assert server.open == 0

    run(play())


def test_a_lost_session_is_opened_anew_when_it_is_asked_for():
    async def play():
        places = places_on(Server())
        place = await places.take()
        places.leave(place, keep=True)
        await place.client.disconnect()
        again = await places.take()
        assert again.client is place.client
        assert again.client.has_session

    run(play())


def test_no_more_than_the_limit_are_in_use_and_the_rest_is_served_in_order():
    async def play():
        server, order, gates = Server(), [], [asyncio.Event() for _ in range(6)]
        places = places_on(server, limit=2)

        async def caller(number):
            place = await places.take()
            order.append(number)
            await gates[number].wait()
            places.leave(place, keep=number % 2 == 0)

        tasks = [asyncio.create_task(caller(number)) for number in range(6)]
        for number in range(6):
            await settle()
            assert order[number:] == list(range(number, min(number + 2, 6)))
            assert places.waiting == max(4 - number, 0)
            gates[number].set()
        await asyncio.gather(*tasks)
        await settle()
        assert (server.most, places.in_use, places.waiting) == (2, 0, 0)

    run(play())


def test_servers_with_the_fewest_sessions_get_the_next():
    async def play():
        servers = [Server(f"http://{name}") for name in "abc"]
        places = places_on(*servers, limit=7)
        held = [await places.take() for _ in range(7)]
        assert sorted(server.open for server in servers) == [2, 2, 3]
        for place in held:
            if place.client.server is servers[1]:
                places.leave(place, keep=True)
        assert (await places.take()).client.server is servers[1]

    run(play())


def test_an_idle_session_of_one_server_makes_room_for_one_of_another():
    async def play():
        servers = [Server("http://a"), Server("http://b", capacity=0)]
        places = places_on(*servers, limit=3)
        held = [await places.take() for _ in range(3)]
        assert [server.open for server in servers] == [3, 0]
        servers[1].capacity = 9
        await until(lambda: places._sites[1].may_open)
        for place in held[:2]:
            places.leave(place, keep=True)
        assert (await places.take()).client.server is servers[1]
        assert [server.open for server in servers] == [2, 1]

    run(play())


@pytest.mark.parametrize("late", [False, True])
def test_a_server_with_less_room_bounds_the_pool_and_all_are_served(late):
    async def play():
        server = Server(capacity=3, late=late)
        places = places_on(server, limit=20, timeout_s=0.1)
        done = []

        async def caller(number):
            place = await places.take()
            await settle()
            assert places.in_use <= 3
            done.append(number)
            places.leave(place, keep=number % 5 != 0)

        await asyncio.gather(*(caller(number) for number in range(40)))
        assert sorted(done) == list(range(40))
        await places.close()
        assert server.open == 0

    run(play())


def test_a_full_server_is_asked_by_one_caller_at_a_time():
    async def play():
        server = Server(capacity=0)
        places = places_on(server, limit=10, timeout_s=None)
        tasks = [asyncio.create_task(places.take()) for _ in range(10)]
        await until(lambda: server.asked > 13)
        assert sum(site.opening for site in places._sites) <= 1
        server.capacity = 10
        await asyncio.gather(*tasks)
        assert server.open == 10

    run(play())


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("timeout_s", [0, 0.02])
def test_a_server_full_of_others_sessions_is_one_clear_error(timeout_s, late):
    async def play():
        server = Server(capacity=5, late=late)
        server.open = 5
        places = places_on(server, limit=8, timeout_s=timeout_s)
        results = await asyncio.gather(*(places.take() for _ in range(12)), return_exceptions=True)
        assert {type(result) for result in results} == {CapacityError}
        assert (results[0].active_sessions, results[0].max_sessions) == (5, 5)
        assert "max_concurrent_envs" in str(results[0])
        assert "capacity_timeout_s" in str(results[0])
        assert (places.in_use, places.waiting, server.open) == (0, 0, 5)

    run(play())


def test_a_session_of_ones_own_in_use_is_waited_for_without_a_limit():
    async def play():
        server = Server(capacity=1)
        places = places_on(server, timeout_s=0)
        first = await places.take()
        second = asyncio.create_task(places.take())
        await until(lambda: server.asked > 4)
        places.leave(first, keep=True)
        assert (await second).client is first.client

    run(play())


def test_another_server_has_room_where_one_is_full():
    async def play():
        servers = [Server("http://a", capacity=1), Server("http://b", capacity=4)]
        places = places_on(*servers, limit=5)
        await asyncio.gather(*(places.take() for _ in range(5)))
        assert [server.open for server in servers] == [1, 4]

    run(play())


def test_a_server_that_is_down_is_an_error_and_does_not_get_every_next_caller():
    async def play():
        servers = [Server("http://a", down=True), Server("http://b")]
        places = places_on(*servers, limit=9)
        places._sites[0]._pause_s = WAIT_S
        results = await asyncio.gather(*(places.take() for _ in range(3)), return_exceptions=True)
        assert any(isinstance(result, UnreachableError) for result in results)
        asked = servers[0].asked
        await places.take()
        assert servers[0].asked == asked
        servers[0].down = False
        places._sites[0].resume()
        await places.take()
        assert servers[0].open == 1

    run(play())


@pytest.mark.parametrize("turns", range(12))
def test_a_cancelled_caller_leaves_nothing_behind(turns):
    async def play():
        server = Server()
        places = places_on(server, limit=1)
        held = await places.take()
        waiting = asyncio.create_task(places.take())
        after = asyncio.create_task(places.take())
        await settle()
        places.leave(held, keep=False)
        for _ in range(turns):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        if not waiting.cancelled():
            places.leave(waiting.result(), keep=True)
        last = await after
        assert (places.in_use, places.waiting) == (1, 0)
        places.leave(last, keep=True)
        await places.close()
        assert server.open == 0

    run(play())


def test_a_caller_cancelled_at_the_moment_it_is_given_an_idle_session_passes_it_on():
    async def play():
        places = places_on(Server(), limit=1)
        held = await places.take()
        first, second = (asyncio.create_task(places.take()) for _ in range(2))
        await settle()
        places.leave(held, keep=True)
        first.cancel()
        assert (await second).client is held.client
        assert first.cancelled()

    run(play())


def test_a_caller_cancelled_at_the_moment_it_may_open_one_passes_that_on():
    async def play():
        server = Server(capacity=0)
        places = places_on(server, limit=3, timeout_s=None)
        tasks = [asyncio.create_task(places.take()) for _ in range(3)]
        await settle()
        spare = Client(server)
        places._sites[0].spare.append(spare)
        places._sites[0].welcome()
        places._admit()
        tasks[0].cancel()
        server.capacity = 3
        await asyncio.gather(*tasks[1:])
        assert tasks[0].cancelled()
        assert server.open == 2

    run(play())


def test_a_closed_pool_refuses_new_callers_and_those_in_line():
    async def play():
        server = Server()
        places = places_on(server, limit=1)
        held = await places.take()
        waiting = asyncio.create_task(places.take())
        gone = asyncio.create_task(places.take())
        await settle()
        gone.cancel()
        await settle()
        await places.close()
        for late in (waiting, places.take()):
            with pytest.raises(SessionStateError) as caught:
                await late
            assert caught.value.state == "closed"
        places.leave(held, keep=True)
        await settle()
        assert (server.open, places.in_use, places.idle) == (0, 0, 0)

    run(play())


@pytest.mark.parametrize("turns", range(4))
def test_a_session_that_opens_while_the_pool_closes_is_closed_too(turns):
    async def play():
        server = Server()
        places = places_on(server)
        opening = asyncio.create_task(places.take())
        for _ in range(turns):
            await asyncio.sleep(0)
        await places.close()
        result = (await asyncio.gather(opening, return_exceptions=True))[0]
        if not isinstance(result, SessionStateError):
            places.leave(result, keep=True)
        await settle()
        assert (server.open, places.in_use) == (0, 0)

    run(play())


def test_a_failure_of_closing_comes_out_after_all_else_is_closed():
    class Stuck(Client):
        async def close(self):
            raise OSError("it does not stop")

    async def play():
        server = Server()
        places = Places([Stuck(Server()), Client(server)], 4, None)
        with pytest.raises(OSError, match="does not stop"):
            await places.close()
        assert server.closed == 1

    run(play())
