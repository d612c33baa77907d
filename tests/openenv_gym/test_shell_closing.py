"""Leaving one session of many, and closing many together."""

import contextlib
import gc
import os
import signal
import time
import warnings
import weakref

import pytest

from openenv_gym import messages
from openenv_gym.errors import CapacityError, SessionLostError
from openenv_gym.providers.process import ProcessProvider
from openenv_gym.session import SessionState
from openenv_gym.shell import Shell
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.vector import RemoteVectorEnv
from openenv_gym.waiting import close_all
from openenv_gym_server import ServerSettings, create_gym_app
from tests.openenv_gym.talking import gate, serve_talk
from tests.serving import serve
from tests.sockets import until


@pytest.fixture
def talk():
    with serve_talk("ours", capacity=2) as url:
        yield url


@contextlib.contextmanager
def shells(url, count=2, **settings):
    found = [Shell(url, ConnectionSettings(**settings), messages.OpenSettings()) for _ in range(count)]
    for shell in found:
        shell.open()
    yield found
    for shell in found:
        shell.close()


@contextlib.contextmanager
def stopped_server(num_envs, **settings):
    """An environment whose server's process stands still."""
    provider = ProcessProvider("CartPole-v1")
    with provider:
        url = provider.start()
        provider.wait_for_ready(url)
        envs = RemoteVectorEnv(num_envs, base_url=url, close_timeout_s=0.5, **settings)
        envs.reset(seed=0)
        pid = provider._process.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            yield envs
        finally:
            os.kill(pid, signal.SIGCONT)
            envs.close()


def test_a_session_that_was_left_says_why(talk):
    with shells(talk, 1) as (shell,):
        shell.drop("it was left")
        assert not shell.alive
        with pytest.raises(SessionLostError, match="it was left") as caught:
            shell.request(messages.Reset, 5.0)
        assert caught.value.reason == "it was left"


def test_places_are_free_when_the_close_returns(talk):
    for _ in range(3):
        with shells(talk) as both:
            close_all(both, 5.0)
            assert [shell.session.state for shell in both] == [SessionState.CLOSED] * 2


def test_a_close_may_be_repeated_and_comes_after_any_end(talk):
    with shells(talk) as both:
        both[0].drop("it was left")
        close_all(both, 5.0)
        close_all(both, 5.0)


def test_a_session_that_is_at_it_is_left_at_once(talk):
    with shells(talk) as both, gate("shell"):
        both[0].request(messages.Reset, 5.0)
        both[0].begin(messages.Step, data={"message": "wait shell"})
        begun = time.monotonic()
        close_all(both, 5.0)
        assert time.monotonic() - begun < 2


def test_a_shell_that_never_opened_is_closed_too(talk):
    shell = Shell(talk, ConnectionSettings(), messages.OpenSettings())
    close_all([shell], 1.0)
    assert not shell.alive


@pytest.mark.parametrize("settings", [{}, {"envs_per_session": 1}])
def test_a_server_that_stands_still_is_not_waited_for_longer_than_allowed(settings):
    with stopped_server(6, **settings) as envs:
        begun = time.monotonic()
        envs.close()
        assert time.monotonic() - begun < 2


@pytest.mark.parametrize("settings", [{}, {"envs_per_session": 1}])
def test_requests_to_a_server_that_stands_still_are_left(settings):
    with stopped_server(4, **settings) as envs:
        envs.step_async([0, 0, 0, 0])
        begun = time.monotonic()
        envs.close()
        assert time.monotonic() - begun < 2


def test_a_close_may_leave_without_a_word(talk):
    envs = RemoteVectorEnv(2, base_url=talk)
    envs.close(terminate=True)

    def opens():
        with contextlib.suppress(CapacityError):
            RemoteVectorEnv(2, base_url=talk).close(timeout=5.0)
            return True
        return False

    until(opens)


def test_an_environment_that_is_collected_leaves_no_session():
    with serve(create_gym_app("CartPole-v1", settings=ServerSettings(max_concurrent_envs=2))) as url:
        envs = RemoteVectorEnv(2, base_url=url, envs_per_session=1)
        envs.reset()
        gone = weakref.ref(envs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # of Python, which closes the sockets
            del envs
            gc.collect()
        assert gone() is None

        def opens():
            with contextlib.suppress(CapacityError):
                RemoteVectorEnv(2, base_url=url).close()
                return True
            return False

        until(opens)
