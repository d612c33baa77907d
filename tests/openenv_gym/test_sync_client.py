"""``SyncEnvClient``: the same client without ``await``."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading

import pytest

from openenv_gym.errors import (
    EnvironmentExecutionError,
    ModeError,
    OpenEnvGymWarning,
    RequestTimeoutError,
    SessionLostError,
    SessionStateError,
    UnreachableError,
)
from openenv_gym.loopless import loopless
from openenv_gym.sync_client import SyncEnvClient
from openenv_gym.types import StepResult
from tests.openenv_gym.talking import WAIT_S, TalkClient, gate, gates, serve_talk


@pytest.fixture
def client(talk):
    with TalkClient(talk).sync() as client:
        yield client


def loop_threads():
    return [thread for thread in threading.enumerate() if thread.name == "openenv-gym-loop"]


@contextlib.contextmanager
def signalled(arrived, number):
    """The process gets a signal as soon as the server is at work on a call."""

    def kill():
        assert arrived.wait(WAIT_S)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=kill)
    thread.start()
    yield
    thread.join()


def test_an_episode_is_played_without_an_event_loop(client):
    assert client.reset(seed=3) == StepResult("ready {'seed': 3}", None, False, {"hint": "speak"})
    assert client.step("ö 🙂").observation == "ö 🙂"
    assert client.state()["step_count"] == 1
    assert loop_threads() == []


def test_it_is_one_object_with_its_client(talk):
    client = TalkClient(talk)
    sync = client.sync()
    assert client.sync() is sync
    assert sync.async_client is client
    assert SyncEnvClient(client).async_client is client
    assert (sync.base_url, sync.mode) == (talk, "simulation")
    assert sync.connect() is sync
    sync.close()


def test_calls_return_values_in_a_running_event_loop(client):
    async def cell():
        client.reset()
        return client.step("in a cell").observation

    assert asyncio.run(cell()) == "in a cell"


def test_both_faces_share_one_session(client):
    client.reset()
    client.step("sync")

    async def play():
        assert (await client.async_client.step("async")).observation == "async"

    asyncio.run(play())
    assert client.state()["step_count"] == 2


def test_a_call_beside_a_task_of_the_same_thread_is_refused_instead_of_waiting_for_ever(talk):
    client = TalkClient(talk)

    async def play():
        await client.reset()
        with gate("same") as arrived:
            step = asyncio.create_task(client.step("wait same"))
            await asyncio.to_thread(arrived.wait, WAIT_S)
            with pytest.raises(SessionStateError) as caught:
                client.sync().state()
            assert caught.value.expected == "no call under way"
            gates["same"].set()
            assert (await step).observation == "wait same"
        await client.close()

    asyncio.run(play())


def test_errors_are_those_of_the_client(client):
    client.reset()
    with pytest.raises(EnvironmentExecutionError, match="it cannot count"):
        client.step("raise")
    with pytest.warns(OpenEnvGymWarning, match="speed") as caught:
        client.step("x", speed=1)
    assert caught[0].filename == __file__
    with pytest.raises(ModeError):
        TalkClient("http://127.0.0.1:1", mode="production").sync().reset()
    with pytest.raises(UnreachableError), TalkClient("http://127.0.0.1:1").sync():
        pass


def test_after_a_timeout_every_call_raises_until_a_reset(talk):
    with TalkClient(talk, message_timeout_s=0.3).sync() as client, gate("sync timeout"):
        client.reset()
        with pytest.raises(RequestTimeoutError):
            client.step("wait sync timeout")
        for call in (lambda: client.step("x"), client.state):
            with pytest.raises(SessionLostError):
                call()
        client.reset()
        assert client.step("on").observation == "on"


def test_an_interrupted_call_loses_the_session_and_the_next_reset_opens_another(client):
    client.reset()
    with gate("interrupt") as arrived:
        with signalled(arrived, signal.SIGINT), pytest.raises(KeyboardInterrupt):
            client.step("wait interrupt")
        with pytest.raises(SessionLostError):
            client.step("x")
    client.reset()
    assert client.step("on").observation == "on"


def test_a_call_out_of_a_signal_handler_ends_the_one_it_interrupted(client):
    seen = []

    def handler(*_):
        with pytest.raises(SessionLostError):
            client.state()
        seen.append(client.reset().observation)

    old = signal.signal(signal.SIGUSR1, handler)
    try:
        client.reset()
        with gate("handler") as arrived, signalled(arrived, signal.SIGUSR1), pytest.raises(SessionLostError):
            client.step("wait handler")
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert len(seen) == 1
    client.reset()
    assert client.step("on").observation == "on"


def test_threads_are_served_one_after_another(client):
    client.reset()
    wrong = []

    def play(name):
        for index in range(50):
            word = f"{name} {index}"
            if client.step(word).observation != word:
                wrong.append(word)

    threads = [threading.Thread(target=play, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert wrong == []
    assert client.state()["step_count"] == 200


def test_closing_ends_a_call_of_another_thread(talk):
    client = TalkClient(talk).sync()
    client.reset()
    raised = []

    def step():
        try:
            client.step("wait thread")
        except SessionLostError as error:
            raised.append(error)

    with gate("thread") as arrived:
        thread = threading.Thread(target=step)
        thread.start()
        assert arrived.wait(WAIT_S)
        client.close()
        thread.join(WAIT_S)
    assert len(raised) == 1
    with pytest.raises(SessionStateError):
        client.step("x")
    client.close()


def test_new_sessions_end_with_the_first(client):
    client.reset()
    child = client.new_session()
    assert isinstance(child, SyncEnvClient)
    child.reset()
    child.step("x")
    assert client.state()["step_count"] == 0
    client.close()
    with pytest.raises(SessionStateError):
        child.step("x")


def test_a_failing_child_does_not_keep_the_others_open(client):
    first, second = client.new_session(), client.new_session()

    def fail():
        raise ArithmeticError

    first.async_client.close = fail
    client.close()
    with pytest.raises(SessionStateError) as caught:
        second.step("x")
    assert caught.value.state == "closed"
    del first.async_client.close
    first.close()


class Playing(TalkClient):
    label = "mine"

    async def play(self, *words):
        """Several steps, with a pause of the loop's."""
        await self.reset()
        results = []
        for word in words:
            await asyncio.sleep(0)
            results.append((await self.step(word)).observation)
        return results

    @loopless
    async def shout(self, word):
        return (await self.step(word.upper())).observation


class Politely(TalkClient):
    async def step(self, action, **kwargs):
        await asyncio.sleep(0)
        result = await super().step(f"{action}, please", **kwargs)
        assert threading.current_thread().name == "openenv-gym-loop"
        return result


def test_coroutines_of_a_subclass_run_with_the_same_session(talk):
    with Playing(talk).sync() as client:
        assert client.play("a", "b") == ["a", "b"]
        assert client.play.__doc__ == Playing.play.__doc__
        assert client.step("c").observation == "c"
        assert client.state()["step_count"] == 3
        assert client.label == "mine"
        assert len(loop_threads()) == 1
    assert loop_threads() == []


def test_a_coroutine_that_needs_no_loop_gets_none(talk):
    with Playing(talk).sync() as client:
        client.reset()
        assert client.shout("quiet") == "QUIET"
        assert loop_threads() == []


def test_an_overridden_method_is_the_one_that_is_called(talk):
    with Politely(talk).sync() as client:
        client.reset()
        assert client.step("come").observation == "come, please"

        async def cell():
            return client.step("again").observation

        assert asyncio.run(cell()) == "again, please"
    assert loop_threads() == []


def test_a_coroutine_of_a_subclass_is_cancelled_by_an_interrupt(talk):
    with Politely(talk).sync() as client, gate("polite, please") as arrived:
        client.reset()
        with signalled(arrived, signal.SIGINT), pytest.raises(KeyboardInterrupt):
            client.step("wait polite")
        with pytest.raises(SessionLostError):
            client.step("x")
        client.reset()


def test_what_neither_has_is_an_attribute_error(talk):
    client = TalkClient(talk).sync()
    with pytest.raises(AttributeError, match="no_such_thing"):
        client.no_such_thing  # noqa: B018
    with pytest.raises(AttributeError):
        object.__new__(SyncEnvClient).anything  # noqa: B018


@pytest.mark.parametrize("override", [False, True])
def test_the_interpreter_exits_at_once_where_nobody_has_closed(talk, override):
    script = f"""
import asyncio
from openenv_gym import GenericEnvClient
class Own(GenericEnvClient):
    async def step(self, action, **kwargs):
        await asyncio.sleep(0)
        return await super().step(action, **kwargs)
client = {"Own" if override else "GenericEnvClient"}({talk!r}).sync()
client.reset()
print(client.step({{"message": "last words"}}).observation["text"])
"""
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30)
    assert (finished.stdout, finished.stderr, finished.returncode) == ("last words\n", "", 0)


def test_a_forked_child_has_no_session_and_opens_its_own(talk):
    if not hasattr(os, "fork"):
        return
    with Playing(talk).sync() as client:
        client.play("a")
        child = os.fork()
        if child == 0:
            code = 1
            with contextlib.suppress(BaseException):
                try:
                    client.step("x")
                except SessionLostError:
                    client.reset()
                    code = 0 if client.step("mine").observation == "mine" and client.play("b") == ["b"] else 2
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert client.step("still mine").observation == "still mine"


def test_a_server_that_comes_back_is_found_by_reset():
    with serve_talk("stock") as url:
        client = TalkClient(url).sync()
        client.reset()
    with pytest.raises(SessionLostError):
        client.step("x")
    with pytest.raises(UnreachableError):
        client.reset()
    with pytest.raises(SessionLostError):
        client.step("x")
    client.close()
