"""An ``EnvClient`` whose server is full, goes away, comes back, or cannot make its environment."""

import asyncio
import threading

import pytest

from openenv_gym.errors import (
    CapacityError,
    EnvironmentFactoryError,
    RequestTimeoutError,
    SessionLostError,
    UnreachableError,
)
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym_server import create_app
from tests.openenv_gym.talking import Heard, Say, TalkClient, gate, gates, serve_talk
from tests.serving import serve


def test_a_server_that_goes_away_is_a_lost_session_and_one_that_comes_back_is_found_again():
    async def play():
        with serve_talk("ours") as url:
            client = TalkClient(url, settings=ConnectionSettings(connect_timeout_s=5))
            await client.reset()
            await client.step("x")
        with pytest.raises(SessionLostError):
            await client.step("x")
        with pytest.raises(UnreachableError):
            await client.reset()
        with pytest.raises(SessionLostError):
            await client.step("x")
        with serve_talk("ours") as url:
            client._link._lease.base_url = url
            await client.reset()
            assert (await client.step("back")).observation == "back"
            await client.close()

    asyncio.run(play())


@pytest.mark.parametrize("make", ["ours", "stock"])
def test_a_full_server_is_a_typed_error_and_a_closed_client_makes_room(make):
    async def play(url):
        first, second = TalkClient(url), TalkClient(url)
        await first.reset()
        with pytest.raises(CapacityError) as caught:
            await second.reset()
        assert (caught.value.active_sessions, caught.value.max_sessions) == (1, 1)
        with pytest.raises(CapacityError):
            await (await first.new_session()).reset()
        await first.close()
        assert (await second.reset()).observation.startswith("ready")
        await second.close()

    with serve_talk(make, capacity=1) as url:
        asyncio.run(play(url))


def test_a_factory_that_fails_is_named():
    def broken():
        raise ArithmeticError("no environment today")

    async def play(url):
        client = TalkClient(url)
        with pytest.raises(EnvironmentFactoryError) as caught:
            await client.connect()
        assert caught.value.factory_name == "broken"
        await client.close()

    with serve(create_app(broken, Say, Heard)) as url:
        asyncio.run(play(url))


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("make", ["ours", "stock"])
def test_a_reset_waits_until_the_server_has_freed_the_place_of_the_lost_session(make, sync):
    async def play(url):
        client = TalkClient(url, message_timeout_s=0.2)
        await client.reset()
        with gate("place") as arrived:
            with pytest.raises(RequestTimeoutError):
                await client.step("wait place")
            assert arrived.is_set()
            opening = threading.Timer(0.3, gates["place"].set)
            opening.start()
            assert (client.sync().reset() if sync else await client.reset()).observation.startswith("ready")
            opening.join()
        assert (await client.step("on")).observation == "on"
        await client.close()

    with serve_talk(make, capacity=1) as url:
        asyncio.run(play(url))


def test_a_place_that_is_not_freed_in_time_is_a_full_server():
    async def play(url):
        settings = ConnectionSettings(step_timeout_s=0.1, close_timeout_s=0.2)
        client = TalkClient(url, settings=settings)
        await client.reset()
        with gate("never"):
            with pytest.raises(RequestTimeoutError):
                await client.step("wait never")
            with pytest.raises(CapacityError):
                await client.reset()
            with pytest.raises(SessionLostError):
                await client.step("x")
        await client.close()

    with serve_talk("stock", capacity=1) as url:
        asyncio.run(play(url))


def test_a_reset_opens_a_new_session_where_the_old_one_ended_unnoticed():
    async def play():
        with serve_talk("ours") as second:
            with serve_talk("ours") as first:
                client = TalkClient(first)
                await client.reset()
            client._link._lease.base_url = second
            assert (await client.reset()).observation.startswith("ready")
            await client.close()

    asyncio.run(play())
