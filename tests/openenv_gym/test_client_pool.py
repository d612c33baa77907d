"""``pool``: rollouts in bulk, over real servers of both makes and over one embedded server."""

from __future__ import annotations

import asyncio
import contextlib
import itertools

import pytest

import openenv_gym
from openenv_gym.client_pool import PoolStats, pool
from openenv_gym.errors import (
    CapacityError,
    EnvironmentExecutionError,
    SessionStateError,
    SettingsError,
    UnreachableError,
)
from openenv_gym.generic_client import GenericEnvClient
from openenv_gym.providers.embedded import EmbeddedProvider
from openenv_gym.tools import CallToolAction
from openenv_gym_envs.echo import EchoEnv
from tests.openenv_gym.talking import TalkClient, serve_talk

WAIT_S = 60.0


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, WAIT_S))


async def until(condition):
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.002)


def talk_pool(url, **settings):
    return pool(url, client=TalkClient, **settings)


async def say(client, word):
    await client.reset()
    return (await client.step(str(word))).observation


def test_220_sessions_play_at_once_on_one_embedded_server_and_are_used_again():
    sessions = 220

    async def play():
        everybody, used = asyncio.Barrier(sessions), set()

        async def rollout(client, task):
            used.add(client)
            await client.reset()
            if task < sessions:
                await everybody.wait()
            return (
                await client.step(CallToolAction(tool_name="echo_message", arguments={"message": f"{task} ö"}))
            ).observation.result

        async with openenv_gym.pool(client=EchoEnv, max_sessions=sessions) as clients:
            results = [result async for result in clients.map(rollout, range(600), ordered=True)]
            assert clients.stats == PoolStats(in_use=0, idle=sessions, waiting=0, done=600, failed=0)
        assert len(used) == sessions
        assert clients.stats.idle == 0
        assert [str(task) for task in range(600)] == [result_text(result).split()[0] for result in results]

    run(play())


def result_text(result):
    return result if isinstance(result, str) else result["data"]


@pytest.mark.parametrize("make", ["ours", "stock"])
def test_a_server_with_less_room_than_the_pool_serves_all(make):
    async def play(url):
        most = 0

        async def rollout(client, word):
            nonlocal most
            most = max(most, clients.stats.in_use)
            return await say(client, word)

        async with talk_pool(url, max_sessions=30, capacity_timeout_s=5.0) as clients:
            results = {result async for result in clients.map(rollout, range(50))}
            assert clients.stats.done == 50
        assert results == {str(number) for number in range(50)}
        assert most <= 3

    with serve_talk(make, capacity=3) as url:
        run(play(url))


@pytest.mark.parametrize("make", ["ours", "stock"])
def test_a_server_full_of_others_is_an_error_in_time_and_its_room_is_used_once_it_comes(make):
    async def play(url):
        async with TalkClient(url) as other, talk_pool(url, max_sessions=5, capacity_timeout_s=0.1) as clients:
            await other.reset()
            with pytest.raises(CapacityError) as caught:
                async with clients.session():
                    pass
            assert caught.value.max_sessions == 1
            assert "max_concurrent_envs" in str(caught.value)
            await other.disconnect()
            assert [result async for result in clients.map(say, "ab")] == ["a", "b"]

    with serve_talk(make, capacity=1) as url:
        run(play(url))


def test_sessions_are_spread_over_the_servers():
    async def play(*urls):
        async with talk_pool(urls, max_sessions=6) as clients, contextlib.AsyncExitStack() as stack:
            held = [await stack.enter_async_context(clients.session()) for _ in range(6)]
            assert sorted(client.base_url for client in held) == sorted(urls * 3)

    with serve_talk("ours") as first, serve_talk("stock") as second:
        run(play(first, second))


def test_a_rollout_that_raises_ends_the_others_and_loses_its_session():
    async def play(url):
        ended, all_begun = [], asyncio.Barrier(3)

        async def rollout(client, word):
            await client.reset()
            await all_begun.wait()
            try:
                await client.step(word)
                await asyncio.Event().wait()
            finally:
                ended.append(word)

        async with talk_pool(url) as clients:
            with pytest.raises(EnvironmentExecutionError, match="cannot count"):
                async for _ in clients.map(rollout, ["a", "b", "raise"]):
                    pass
            assert sorted(ended) == ["a", "b", "raise"]
            await until(lambda: clients.stats.in_use == 0)
            assert clients.stats == PoolStats(in_use=0, idle=0, waiting=0, done=0, failed=3)
            assert [result async for result in clients.map(say, "x")] == ["x"]

    with serve_talk("ours") as url:
        run(play(url))


@pytest.mark.parametrize("ordered", [False, True])
def test_errors_can_be_results(ordered):
    async def play(url):
        async with talk_pool(url, max_sessions=4) as clients:
            words = ["a", "raise", "b", "raise", "c"] * 4
            results = [result async for result in clients.map(say, words, ordered=ordered, on_error="return")]
        kinds = [type(result) for result in results]
        assert kinds.count(EnvironmentExecutionError) == 8
        if ordered:
            assert ["raise" if isinstance(result, Exception) else result for result in results] == words

    with serve_talk("ours") as url:
        run(play(url))


def test_a_rollout_that_was_cancelled_alone_is_a_result_too():
    async def rollout(client, task):
        raise asyncio.CancelledError

    async def play(url):
        async with talk_pool(url) as clients:
            (result,) = [each async for each in clients.map(rollout, [1], on_error="return")]
            assert isinstance(result, asyncio.CancelledError)

    with serve_talk("ours") as url:
        run(play(url))


def test_results_come_as_they_are_ready_or_in_order():
    async def play(url):
        first = asyncio.Event()

        async def rollout(client, task):
            await client.reset()
            if task == 0:
                await first.wait()
            return task

        async with talk_pool(url, max_sessions=3) as clients:
            results = clients.map(rollout, range(9))
            early = [await anext(results) for _ in range(8)]
            assert sorted(early) == list(range(1, 9))
            first.set()
            assert [each async for each in results] == [0]

            first.clear()
            results = clients.map(rollout, range(9), ordered=True)
            waiting = asyncio.ensure_future(anext(results))
            await until(lambda: clients.stats.in_use == 1)
            assert not waiting.done()
            first.set()
            assert [await waiting, *[each async for each in results]] == list(range(9))

    with serve_talk("ours") as url:
        run(play(url))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_tasks_are_read_no_further_than_there_is_work_for(asynchronous):
    async def play(url):
        read = []

        def endless():
            for number in itertools.count():
                read.append(number)
                yield number

        async def awaited():
            for number in endless():
                yield number

        async with talk_pool(url, max_sessions=3) as clients:
            async with contextlib.aclosing(clients.map(say, awaited() if asynchronous else endless())) as results:
                for taken in range(1, 8):
                    await anext(results)
                    await until(lambda: clients.stats.in_use + clients.stats.waiting == 0)
                    assert len(read) <= taken + 3
            assert clients.stats.in_use == 0
            assert len(read) <= 10

    with serve_talk("ours") as url:
        run(play(url))


def test_an_error_of_the_tasks_themselves_is_raised():
    def tasks():
        yield "a"
        raise OSError("the file of tasks is gone")

    async def play(url):
        async with talk_pool(url) as clients:
            with pytest.raises(OSError, match="is gone"):
                async for _ in clients.map(say, tasks(), on_error="return"):
                    pass

    with serve_talk("ours") as url:
        run(play(url))


def test_a_session_lost_by_its_server_is_replaced():
    async def play():
        with serve_talk("ours") as second:
            with serve_talk("ours") as first:
                clients = talk_pool(first, max_sessions=1)
                async with clients.session() as client:
                    await client.reset()
            client._link._lease.base_url = second
            assert [each async for each in clients.map(say, "a")] == ["a"]
            await clients.close()

    run(play())


def test_names_are_what_connect_takes():
    async def play():
        async def rollout(client, task):
            first = (await client.reset(seed=task)).observation["obs"]
            return type(client), first == (await client.reset(seed=task)).observation["obs"]

        async with pool("CartPole-v1", max_sessions=2) as clients:
            assert [each async for each in clients.map(rollout, range(3))] == [(GenericEnvClient, True)] * 3

    run(play())


def test_no_server_is_an_error_of_the_session_alone():
    async def play():
        async with pool("http://127.0.0.1:9", connect_timeout_s=5) as clients:
            with pytest.raises(UnreachableError):
                async with clients.session():
                    pass
            assert clients.stats == PoolStats(in_use=0, idle=0, waiting=0, done=0, failed=0)

    run(play())


@pytest.mark.parametrize(
    ("arguments", "settings", "setting"),
    [
        (["http://a:1"], {"max_sessions": 0}, "max_sessions"),
        (["http://a:1"], {"max_sessions": True}, "max_sessions"),
        (["http://a:1"], {"max_sessions": "8"}, "max_sessions"),
        (["http://a:1"], {"capacity_timeout_s": -1}, "capacity_timeout_s"),
        (["http://a:1"], {"capacity_timeout_s": float("nan")}, "capacity_timeout_s"),
        ([], {}, "servers"),
        ([[]], {}, "servers"),
        (["no such environment"], {}, "name"),
        (["http://a:1"], {"max_session": 3}, "max_session"),
        (["CartPole-v1"], {"connect_timout_s": 3}, "connect_timout_s"),
        (["http://a:1"], {"client": TalkClient, "strange": 3}, "strange"),
        ([["http://a:1", "http://b:1"]], {"provider": EmbeddedProvider("CartPole-v1")}, "provider"),
    ],
)
def test_arguments_that_cannot_be_are_refused(arguments, settings, setting):
    with pytest.raises(SettingsError) as caught:
        pool(*arguments, **settings)
    assert caught.value.setting == setting


def test_another_way_with_errors_is_refused():
    with pytest.raises(SettingsError) as caught:
        pool("http://a:1").map(say, [], on_error="ignore")
    assert caught.value.setting == "on_error"


def test_the_setting_that_was_meant_is_named():
    with pytest.raises(SettingsError, match="did you mean 'max_sessions'"):
        pool("http://a:1", max_session=3)


def test_a_type_error_of_the_clients_own_is_its_own():
    def make(url, size):
        raise TypeError("expected a smaller size")

    with pytest.raises(TypeError, match="a smaller size"):
        pool("http://a:1", client=make, size=3)


@pytest.mark.parametrize("make", ["ours", "stock"])
def test_a_session_used_again_goes_on_in_nobodys_episode(make):
    async def play(url):
        async with talk_pool(url, max_sessions=1) as clients:
            async with clients.session() as first:
                await first.reset()
                await first.step("a")
            async with clients.session() as again:
                assert again is first
                with pytest.raises(SessionStateError) as caught:
                    await again.step("b")
                assert caught.value.expected == "episode"
                await again.reset()
                assert (await again.step("c")).observation == "c"

    with serve_talk(make) as url:
        run(play(url))


def plain(client, task):
    return task


def generator(client, task):
    yield task


@pytest.mark.parametrize("rollout", [generator, 5])
def test_what_can_be_no_rollout_is_refused_before_anything_is_begun(rollout):
    with pytest.raises(TypeError, match="expected a rollout that is awaited"):
        pool("http://a:1").map(rollout, [1])


def test_a_rollout_that_gives_nothing_to_be_awaited_is_refused():
    async def play(url):
        async with talk_pool(url) as clients:
            with pytest.raises(TypeError, match="expected a rollout that is awaited"):
                await anext(clients.map(plain, [1]))
            assert [word async for word in clients.map(lambda *both: say(*both), ["a"])] == ["a"]  # noqa: PLW0108

    with serve_talk("ours") as url:
        run(play(url))
