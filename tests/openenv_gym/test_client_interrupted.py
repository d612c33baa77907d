"""What becomes of an ``EnvClient`` whose calls are cancelled, time out, or are cut off, and of those beside it."""

import asyncio
import contextlib
import gc
import threading

import pytest

from openenv_gym.errors import (
    RequestTimeoutError,
    SessionLostError,
    SessionStateError,
)
from openenv_gym_server import create_app
from tests.openenv_gym.talking import WAIT_S, Heard, OurTalk, Say, TalkClient, gate, gates
from tests.openenv_gym.transports.conftest import wait_until
from tests.serving import serve


async def arrive(arrived):
    await asyncio.to_thread(arrived.wait, WAIT_S)


def test_a_cancelled_call_loses_the_session_and_no_late_answer_is_taken(talk):
    async def play():
        async with TalkClient(talk) as client:
            await client.reset()
            with gate("late") as arrived:
                step = asyncio.create_task(client.step("wait late"))
                await arrive(arrived)
                step.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await step
                gates["late"].set()
                for call in (client.step("next"), client.state()):
                    with pytest.raises(SessionLostError):
                        await call
            assert (await client.reset()).observation.startswith("ready")
            assert (await client.step("next")).observation == "next"

    asyncio.run(play())


def test_a_wait_for_around_a_call_ends_when_it_is_to(talk):
    async def play():
        async with TalkClient(talk) as client:
            await client.reset()
            with gate("slow") as arrived, pytest.raises(TimeoutError):
                await asyncio.wait_for(client.step("wait slow"), 0.2)
            assert arrived.is_set()
            with pytest.raises(SessionLostError):
                await client.step("x")

    asyncio.run(play())


def test_after_a_timeout_every_call_raises_until_a_reset(talk):
    async def play():
        async with TalkClient(talk, message_timeout_s=0.3) as client:
            await client.reset()
            with gate("timeout"):
                with pytest.raises(RequestTimeoutError) as caught:
                    await client.step("wait timeout")
                assert caught.value.timeout_s == 0.3
                for call in (client.step("x"), client.state(), client.step("x")):
                    with pytest.raises(SessionLostError):
                        await call
            await client.reset()
            assert (await client.step("on")).observation == "on"

    asyncio.run(play())


def test_a_call_can_be_cancelled_at_every_point_of_its_way(talk):
    """The task is cancelled after 0, 1, 2 … turns of the loop, until it is too late."""

    async def play():
        async with TalkClient(talk) as client:
            await client.reset()
            for turns in range(60):
                step = asyncio.create_task(client.step(f"turn {turns}"))
                for _ in range(turns):
                    await asyncio.sleep(0)
                step.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    assert (await step).observation == f"turn {turns}"
                try:
                    assert (await client.step("next")).observation == "next"
                except SessionLostError:
                    await client.reset()
                    assert (await client.step("after")).observation == "after"

    asyncio.run(play())


def test_connecting_can_be_cancelled_at_every_point_and_leaves_nothing_behind():
    async def play(url):
        for turns in range(40):
            client = TalkClient(url)
            opening = asyncio.create_task(client.connect())
            for _ in range(turns * 3):
                await asyncio.sleep(0)
            opening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await opening
            await client.close()

    with served_and_counted() as (url, count):
        asyncio.run(play(url))
        wait_until(lambda: count() == 0)
        wait_until(lambda: not [thread for thread in threading.enumerate() if thread.name == "openenv-gym-work"])


@contextlib.contextmanager
def served_and_counted():
    app = create_app(OurTalk, Say, Heard, max_concurrent_envs=64)
    open_sockets = [0]

    async def counting(scope, receive, send):
        if scope["type"] != "websocket":
            await app(scope, receive, send)
            return
        open_sockets[0] += 1
        try:
            await app(scope, receive, send)
        finally:
            open_sockets[0] -= 1

    with serve(counting) as url:
        yield url, lambda: open_sockets[0]


@pytest.mark.parametrize("where", ["body", "call"])
def test_a_cancelled_async_with_closes_its_socket(where):
    async def play(url):
        entered = asyncio.Event()

        async def use():
            async with TalkClient(url) as client:
                await client.reset()
                entered.set()
                if where == "call":
                    await client.step("wait with")
                await asyncio.Event().wait()

        task = asyncio.create_task(use())
        await entered.wait()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with gate("with"), served_and_counted() as (url, count):
        asyncio.run(play(url))
        gates["with"].set()
        wait_until(lambda: count() == 0)


def test_a_close_that_is_cancelled_has_closed_the_socket():
    async def play(url, count):
        for turns in range(1, 12):
            client = TalkClient(url)
            await client.reset()
            closing = asyncio.create_task(client.close())
            for _ in range(turns):
                await asyncio.sleep(0)
            closing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await closing
            await asyncio.to_thread(wait_until, lambda: count() == 0)
            with pytest.raises(SessionStateError):
                await client.step("x")
            await client.close()

    with served_and_counted() as (url, count):
        asyncio.run(play(url, count))


def test_tasks_are_served_one_after_another_and_each_gets_its_own_answer(talk):
    async def play():
        async with TalkClient(talk) as client:
            await client.reset()
            words = [f"word {index}" for index in range(50)]
            results = await asyncio.gather(*(client.step(word) for word in words))
            assert [result.observation for result in results] == words

    asyncio.run(play())


def test_a_waiting_call_that_is_cancelled_disturbs_nobody(talk):
    async def play():
        async with TalkClient(talk) as client:
            await client.reset()
            with gate("queue") as arrived:
                first = asyncio.create_task(client.step("wait queue"))
                await arrive(arrived)
                second, third = asyncio.create_task(client.step("second")), asyncio.create_task(client.step("third"))
                await asyncio.sleep(0)
                second.cancel()
                gates["queue"].set()
                assert (await first).observation == "wait queue"
                assert (await third).observation == "third"
                with pytest.raises(asyncio.CancelledError):
                    await second

    asyncio.run(play())


def test_calls_of_several_loops_and_threads_are_served_one_after_another(talk):
    client = TalkClient(talk)
    asyncio.run(client.reset())
    failures = []

    async def steps(name):
        for index in range(20):
            word = f"{name} {index}"
            assert (await client.step(word)).observation == word

    def run(name):
        try:
            if name.startswith("sync"):
                for index in range(20):
                    word = f"{name} {index}"
                    assert client.sync().step(word).observation == word
            else:
                asyncio.run(steps(name))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(name,)) for name in ("async 1", "async 2", "sync 1", "sync 2")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert failures == []
    assert client.sync().state()["step_count"] == 80
    client.sync().close()


def test_closing_ends_a_call_that_another_task_awaits(talk):
    async def play():
        client = TalkClient(talk)
        await client.reset()
        with gate("close") as arrived:
            step = asyncio.create_task(client.step("wait close"))
            await arrive(arrived)
            await client.close()
            with pytest.raises(SessionLostError):
                await step
        with pytest.raises(SessionStateError):
            await client.step("x")

    asyncio.run(play())


def test_closing_ends_a_reset_that_another_task_awaits_and_opens_nothing_anew():
    class Slow(OurTalk):
        def reset(self, seed=None):
            return Heard(text=self.answer("wait reset"))

    async def play(url):
        client = TalkClient(url)
        with gate("reset") as arrived:
            reset = asyncio.create_task(client.reset())
            await arrive(arrived)
            await client.close()
            with pytest.raises(SessionLostError):
                await reset
        assert client._link._shell is None

    with serve(create_app(Slow, Say, Heard)) as url:
        asyncio.run(play(url))


def test_closing_while_another_task_connects_leaves_no_session(talk):
    async def play():
        client = TalkClient(talk)
        opening = asyncio.create_task(client.connect())
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(SessionStateError) as caught:
            await opening
        assert caught.value.state == "closed"
        assert client._link._shell is None

    asyncio.run(play())


def test_a_task_whose_loop_was_closed_in_the_middle_of_a_call_holds_nobody_up(talk):
    client = TalkClient(talk)
    with gate("loop") as arrived:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(client.reset())
        step = loop.create_task(client.step("wait loop"))
        loop.run_until_complete(arrive(arrived))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
        with pytest.raises(SessionLostError):
            client.sync().step("x")
        assert client.sync().reset().observation.startswith("ready")
        client.sync().close()
        step._log_destroy_pending = False
        del step
        gc.collect()
