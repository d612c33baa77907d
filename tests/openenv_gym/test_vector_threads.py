"""Calls of several threads on one vector environment: one at a time, and who is refused costs nobody the episode."""

import contextlib
import itertools
import threading

import pytest
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError

from openenv_gym import vector, vector_pending
from openenv_gym.errors import OpenEnvGymError
from openenv_gym.vector import RemoteVectorEnv
from tests.openenv_gym.interrupting import interrupted
from tests.openenv_gym.talking import gate, gates, serve_talk

WAIT_S = 20.0


@pytest.fixture(params=["ours", "stock"])
def envs(request):
    with serve_talk(request.param) as url:
        made = RemoteVectorEnv(2, base_url=url)
        made.reset()
        yield made
        made.close()


def test_a_call_beside_another_threads_is_refused_and_costs_it_nothing(envs):
    answers = []
    with gate("threads") as arrived:
        stepping = threading.Thread(target=lambda: answers.append(envs.step(("wait threads", "a"))))
        stepping.start()
        assert arrived.wait(WAIT_S)
        for call in (lambda: envs.step(("b", "b")), envs.reset, lambda: envs.send(("c",), [0]), envs.step_wait):
            with pytest.raises(AlreadyPendingCallError, match="another thread"):
                call()
        gates["threads"].set()
        stepping.join(WAIT_S)
    assert answers[0][0] == ("wait threads", "a")
    assert envs.step(("d", "e"))[0] == ("d", "e")


def test_a_reset_works_after_halves_of_a_step_that_were_interrupted_anywhere(envs):
    for nth in itertools.count(1):
        came = interrupted(
            lambda: (envs.step_async(("a", "b")), envs.step_wait()), nth, vector.__file__, {vector_pending.__file__}
        )
        with contextlib.suppress(OpenEnvGymError, NoAsyncCallError):
            envs.step_wait()
        envs.reset()
        assert envs.step(("d", "e"))[0] == ("d", "e")
        if not came:
            break
    assert nth > 10
