"""Stepping some environments while others are at it, over one session or many, on servers of either make."""

from __future__ import annotations

import contextlib
import time

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError

from openenv_gym.errors import (
    EnvironmentExecutionError,
    InvalidActionError,
    RequestTimeoutError,
    SessionLostError,
    SessionStateError,
    ValueMappingError,
)
from openenv_gym.vector import RemoteVectorEnv
from openenv_gym_server import ServerSettings, create_gym_app
from tests.openenv_gym.talking import WAIT_S, gate, gates, serve_talk
from tests.serving import serve

NUM_ENVS = 4


@pytest.fixture(scope="module")
def servers():
    with serve_talk("ours") as ours, serve_talk("stock") as stock:
        yield {"ours": [ours], "stock": [stock], "mixed": [ours, stock]}


@pytest.fixture(params=["ours", "stock", "mixed", "ours first come", "two first come"])
def envs(servers, request):
    make, _, first_come = request.param.partition(" ")
    settings = {"vectorization": "threads"} if first_come else {"envs_per_session": 1}
    if make == "two":
        make, settings = "ours", {"vectorization": "threads", "envs_per_session": 2}
    envs = RemoteVectorEnv(NUM_ENVS, base_url=servers[make], **settings)
    envs.reset()
    yield envs
    envs.close()


@contextlib.contextmanager
def cartpoles(num_envs=NUM_ENVS, **settings):
    with serve(create_gym_app("CartPole-v1", settings=ServerSettings(max_concurrent_envs=num_envs))) as url:
        envs = RemoteVectorEnv(num_envs, base_url=url, **settings)
        try:
            yield envs
        finally:
            envs.close()


def test_all_requests_are_on_their_way_before_an_answer(envs):
    with contextlib.ExitStack() as stack:
        names = [f"all {index}".replace(" ", "-") for index in range(NUM_ENVS)]
        arrivals = [stack.enter_context(gate(name)) for name in names]
        envs.step_async(tuple(f"wait {name}" for name in names))
        assert all(arrival.wait(WAIT_S) for arrival in arrivals)
        for name in names:
            gates[name].set()
        assert envs.step_wait()[0] == tuple(f"wait {name}" for name in names)


def test_a_straggler_holds_nobody_else(envs):
    with gate("straggler"):
        envs.send(("wait straggler", "a", "b", "c"), [2, 0, 1, 3])
        observations, rewards, terminations, truncations, _, env_ids = envs.recv(min_envs=3)
        assert sorted(zip(env_ids.tolist(), observations, strict=True)) == [(0, "a"), (1, "b"), (3, "c")]
        assert env_ids.dtype == np.int64
        assert rewards.tolist() == [0.5] * 3
        assert (terminations | truncations).tolist() == [False] * 3
        envs.send(("d", "e"), [3, 0])
        assert sorted(envs.recv(min_envs=2)[5].tolist()) == [0, 3]
        gates["straggler"].set()
        assert envs.recv()[5].tolist() == [2]


def test_what_is_waited_for_is_no_more_than_what_is_on_its_way(envs):
    envs.send(("a", "b"), [0, 3])
    assert sorted(envs.recv(min_envs=NUM_ENVS)[5].tolist()) == [0, 3]


def test_a_wait_that_runs_out_loses_nothing(envs):
    with gate("patience"):
        envs.send(("wait patience", "a"), [0, 1])
        with pytest.raises(RequestTimeoutError, match="nothing is lost"):
            envs.recv(min_envs=2, timeout=0.05)
        gates["patience"].set()
        observations, *_, env_ids = envs.recv(min_envs=2)
        assert dict(zip(env_ids.tolist(), observations, strict=True)) == {0: "wait patience", 1: "a"}


def test_infos_are_in_the_order_of_the_rows(servers):
    envs = RemoteVectorEnv(3, base_url=servers["mixed"], envs_per_session=1, max_episode_steps=1)
    envs.reset()
    envs.send(("a", "b", "c"), [0, 1, 2])
    assert envs.recv(min_envs=3)[3].tolist() == [True] * 3
    # The next episode begins, and its reset tells something.
    envs.send(("", ""), [2, 1])
    _, _, _, _, infos, env_ids = envs.recv(min_envs=2)
    assert len(env_ids) == 2
    assert infos["hint"].tolist() == ["speak"] * 2
    assert infos["_hint"].tolist() == [True] * 2
    envs.close()


def test_no_environment_starves():
    with cartpoles(8, envs_per_session=1) as envs:
        envs.reset(seed=0)
        envs.send(np.zeros(8, np.int64), range(8))
        answers = np.zeros(8, np.int64)
        for _ in range(300):
            env_ids = envs.recv(min_envs=2)[5]
            answers[env_ids] += 1
            envs.send(np.zeros(len(env_ids), np.int64), env_ids)
        assert answers.min() > 0.5 * answers.mean()


def test_one_session_takes_its_requests_in_turn():
    with cartpoles() as envs:
        envs.reset(seed=0)
        envs.send([0, 1], [1, 3])
        envs.send([1], [0])
        envs.send([0], [2])
        rows: dict = {}
        while len(rows) < NUM_ENVS:
            observations, *_, env_ids = envs.recv()
            rows |= dict(zip(env_ids.tolist(), observations, strict=True))
        together = envs.reset(seed=0) and envs.step([1, 0, 0, 1])[0]
        np.testing.assert_array_equal(np.stack([rows[env_id] for env_id in range(NUM_ENVS)]), together)


@pytest.mark.parametrize(
    "settings",
    [
        {"envs_per_session": 2},
        {"vectorization": "threads"},
        {"vectorization": "threads", "envs_per_session": 2},
        {"vectorization": "threads", "binary": False},
        {"vectorization": "threads", "autoreset_mode": "SameStep", "max_episode_steps": 4},
    ],
    ids=str,
)
def test_partitions_of_any_kind_give_what_steps_give(settings):
    random = np.random.default_rng(0)
    with cartpoles(5, **settings) as envs:
        for seed in range(3):
            actions = random.integers(0, 2, (6, 5))
            envs.reset(seed=seed)
            wanted = [envs.step(row) for row in actions]
            envs.reset(seed=seed)
            for row, expected in zip(actions, wanted, strict=True):
                order = random.permutation(5)
                for part in np.split(order, sorted(random.choice(np.arange(1, 5), 2, replace=False))):
                    envs.send(row[part], part)
                got, left = np.zeros_like(expected[0]), 5
                while left:
                    observations, rewards, *_, env_ids = envs.recv(min_envs=int(random.integers(1, 6)))
                    got[env_ids] = observations
                    np.testing.assert_array_equal(rewards, expected[1][env_ids])
                    left -= len(env_ids)
                np.testing.assert_array_equal(got, expected[0])


def test_an_environment_takes_one_action_at_a_time(envs):
    envs.send(("a",), [1])
    with pytest.raises(AlreadyPendingCallError) as caught:
        envs.send(("b", "c"), [0, 1])
    assert caught.value.name == "send"
    assert envs.recv()[0] == ("a",)


def test_nothing_else_may_be_called_in_between(envs):
    envs.send(("a",), [1])
    for call in (envs.reset, lambda: envs.step(("a",) * NUM_ENVS), envs.render, lambda: envs.get_attr("x")):
        with pytest.raises(AlreadyPendingCallError) as caught:
            call()
        assert caught.value.name == "send"
    envs.recv()
    envs.step_async(("a",) * NUM_ENVS)
    for call in (envs.recv, lambda: envs.send(("a",), [1])):
        with pytest.raises(AlreadyPendingCallError):
            call()
    envs.step_wait()


def test_there_must_be_something_to_receive(envs):
    with pytest.raises(NoAsyncCallError) as caught:
        envs.recv()
    assert caught.value.name == "recv"


def test_what_cannot_be_sent_is_refused_and_nothing_moves(envs):
    for actions, env_ids, error in (
        (("a",), [NUM_ENVS], ValueError),
        (("a", "b"), [1, 1], ValueError),
        ((), [], ValueError),
        (("a",), [0.5], TypeError),
        (("a",), [0, 1], ValueMappingError),
        ((5,), [0], ValueMappingError),
    ):
        with pytest.raises(error):
            envs.send(actions, env_ids)
    with pytest.raises(ValueError, match="min_envs"):
        envs.recv(min_envs=0)
    envs.send(("fine",), [0])
    assert envs.recv()[0] == ("fine",)


def test_episodes_must_have_begun(servers):
    envs = RemoteVectorEnv(2, base_url=servers["stock"])
    with pytest.raises(SessionStateError) as caught:
        envs.send(("a",), [0])
    assert caught.value.state == "open"
    envs.close()


def test_a_failure_ends_all_and_reset_begins_anew(envs):
    with gate("failing"):
        envs.send(("wait failing", "raise"), [0, 2])
        with pytest.raises(EnvironmentExecutionError, match="it cannot count") as caught:
            envs.recv(min_envs=2)
        assert caught.value.env_index == 2
        with pytest.raises(NoAsyncCallError):
            envs.recv()
        with pytest.raises(SessionLostError):
            envs.step(("a",) * NUM_ENVS)
        gates["failing"].set()
    envs.reset()
    assert envs.step(tuple("abcd"))[0] == tuple("abcd")


def test_an_answer_that_is_late_ends_all(servers):
    envs = RemoteVectorEnv(2, base_url=servers["mixed"], envs_per_session=1, step_timeout_s=0.2)
    envs.reset()
    with gate("late"):
        envs.send(("wait late", "a"), [0, 1])
        with pytest.raises(RequestTimeoutError):
            envs.recv(min_envs=2)
        with pytest.raises(SessionLostError):
            envs.step(("a", "b"))
    envs.reset()
    envs.close()


@pytest.mark.parametrize("settings", [{"envs_per_session": 1}, {"vectorization": "threads"}])
def test_closing_with_requests_on_their_way_waits_for_nothing(servers, settings):
    envs = RemoteVectorEnv(2, base_url=servers["ours" if "vectorization" in settings else "mixed"], **settings)
    envs.reset()
    with gate("never"):
        envs.send(("wait never", "wait never"), [0, 1])
        begun = time.monotonic()
        envs.close()
        assert time.monotonic() - begun < 2


def test_closing_does_not_wait_for_steps_that_no_answer_is_awaited_of(servers):
    envs = RemoteVectorEnv(2, base_url=servers["ours"], vectorization="threads")
    envs.reset()
    with gate("never"):
        envs.send(("quick", "wait never"), [0, 1])
        assert envs.recv(min_envs=1)[5].tolist() == [0]
        begun = time.monotonic()
        envs.close()
        assert time.monotonic() - begun < 2


def test_a_session_that_steps_all_at_once_takes_all_or_none():
    with cartpoles(vectorization="vector_entry_point") as envs:
        envs.reset(seed=0)
        with pytest.raises(ValueError, match="envs_per_session=1"):
            envs.send([0, 1], [0, 2])
        envs.send([0, 1, 1, 0], [3, 2, 1, 0])
        observations, *_, env_ids = envs.recv()
        assert env_ids.tolist() == [0, 1, 2, 3]
        together = envs.reset(seed=0) and envs.step([0, 1, 1, 0])[0]
        np.testing.assert_array_equal(observations, together)


def test_an_action_that_is_refused_by_one_of_many_ends_all(servers):
    with cartpoles(envs_per_session=2, binary=False) as envs:
        envs.reset(seed=0)
        with pytest.raises(InvalidActionError):
            envs.step([0, 1, 0, 7])
        with pytest.raises(SessionLostError):
            envs.step([0, 1, 0, 1])


def test_an_action_that_is_refused_by_the_only_session_moves_nothing():
    with cartpoles() as envs:
        envs.reset(seed=0)
        with pytest.raises(InvalidActionError) as caught:
            envs.step([0, 1, 0, 7])
        assert caught.value.errors[0]["loc"][:3] == ["data", "actions", 3]
        after = envs.step([0, 1, 0, 1])[0]
        envs.reset(seed=0)
        np.testing.assert_array_equal(envs.step([0, 1, 0, 1])[0], after)
