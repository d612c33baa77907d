"""A crowd of vector environments on one real server, many made and closed, and interrupts amid their calls."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium
import httpx
import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError
from gymnasium.vector import AutoresetMode

from openenv_gym.errors import OpenEnvGymError
from openenv_gym_server import ServerSettings, create_gym_app
from tests.load.test_disconnects import open_sockets, session_threads
from tests.openenv_gym.interrupting import apart
from tests.openenv_gym.transports.conftest import interrupted_at
from tests.serving import serve
from tests.sockets import until

WAIT_S = 60.0
CLIENTS = 100
ENVS = 8
STEPS = 10
CYCLES = 120
STRIDE = 53  # bytecodes from one interrupt to the next
MODES = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)
PER_SESSION = (None, 3, None, 8)


@pytest.fixture
def url() -> Iterator[str]:
    app = create_gym_app("CartPole-v1", settings=ServerSettings(max_concurrent_envs=CLIENTS * ENVS + 8))
    with serve(app) as url:
        yield url
        until(lambda: places_taken(url) == 0)


def places_taken(url: str) -> int:
    return int(httpx.get(f"{url}/ready", timeout=WAIT_S).json()["capacity"]["active_sessions"])


def remote(url: str, count: int = ENVS, **keywords: Any) -> Any:
    limits = {"step_timeout_s": WAIT_S, "reset_timeout_s": WAIT_S, "connect_timeout_s": WAIT_S}
    return gymnasium.make_vec("openenv/gym-v0", num_envs=count, base_url=url, **limits, **keywords)


def local(count: int = ENVS, mode: AutoresetMode = AutoresetMode.NEXT_STEP) -> Any:
    return gymnasium.make_vec("CartPole-v1", count, "sync", vector_kwargs={"autoreset_mode": mode})


def assert_same(found: Any, expected: Any) -> None:
    for one, other in zip(found[:4], expected[:4], strict=True):
        np.testing.assert_array_equal(one, other)


def sent_and_received(envs: Any, actions: np.ndarray) -> list[np.ndarray]:
    """A step by ``send`` and ``recv``, in the order of the environments."""
    envs.send(actions, np.arange(len(actions)))
    parts: list[Any] = []
    while sum(len(part[5]) for part in parts) < len(actions):
        parts.append(envs.recv(1))
    order = np.argsort(np.concatenate([part[5] for part in parts]))
    return [np.concatenate([part[place] for part in parts])[order] for place in range(4)]


def play(url: str, number: int, everyone: threading.Barrier) -> None:
    """One of the crowd: some leave in the middle of a step."""
    mode = MODES[number % 2]
    envs = remote(url, envs_per_session=PER_SESSION[number % 4], binary=number % 3 > 0, autoreset_mode=mode)
    with contextlib.closing(envs), contextlib.closing(local(mode=mode)) as expected:
        everyone.wait(WAIT_S)
        np.testing.assert_array_equal(envs.reset(seed=number)[0], expected.reset(seed=number)[0])
        generator = np.random.default_rng(number)
        for step in range(STEPS):
            actions = generator.integers(0, 2, ENVS)
            take = sent_and_received if number % 5 == step % 5 else lambda envs, actions: envs.step(actions)
            assert_same(take(envs, actions), expected.step(actions))
        if number % 4 == 0:
            envs.step_async(generator.integers(0, 2, ENVS))


def test_a_hundred_vector_clients_at_once_play_as_they_would_locally_and_leave_every_place_free(url: str) -> None:
    everyone = threading.Barrier(CLIENTS + 1)
    with contextlib.closing(remote(url, 3)) as bystander, contextlib.closing(local(3)) as expected:
        np.testing.assert_array_equal(bystander.reset(seed=1)[0], expected.reset(seed=1)[0])
        with ThreadPoolExecutor(CLIENTS) as pool:
            crowd = [pool.submit(play, url, number, everyone) for number in range(CLIENTS)]
            everyone.wait(WAIT_S)
            assert places_taken(url) == CLIENTS * ENVS + 3
            while not all(one.done() for one in crowd):
                actions = np.random.default_rng(0).integers(0, 2, 3)
                assert_same(bystander.step(actions), expected.step(actions))
            for one in crowd:
                one.result()
        until(lambda: places_taken(url) == 3)


def test_many_vectors_made_and_closed_leave_no_socket_thread_or_place_behind(url: str) -> None:
    def make_and_close(number: int) -> None:
        envs = remote(url, 4, envs_per_session=PER_SESSION[number % 4])
        if number % 2:
            envs.reset(seed=number)
            envs.send(np.zeros(4, np.int64), np.arange(4))
        envs.close(**({"terminate": True} if number % 5 == 0 else {}))

    make_and_close(1)
    until(lambda: places_taken(url) == 0)
    sockets, threads, all_threads = open_sockets(), len(session_threads()), threading.active_count()
    for number in range(CYCLES):
        make_and_close(number)
    until(lambda: places_taken(url) == 0)
    until(lambda: len(session_threads()) <= threads)
    until(lambda: threading.active_count() <= all_threads)
    until(lambda: open_sockets() <= sockets)


ACTIONS = np.array([0, 1, 0, 1])
CALLS: dict[str, Callable[[Any], object]] = {
    "step": lambda envs: envs.step(ACTIONS),
    "reset": lambda envs: envs.reset(seed=9),
    "send": lambda envs: envs.send(ACTIONS, np.arange(4)),
    "send and recv": lambda envs: sent_and_received(envs, ACTIONS),
}


@pytest.mark.parametrize("envs_per_session", [None, 2])
@pytest.mark.parametrize("call", CALLS)
def test_after_an_interrupt_at_any_point_a_reset_begins_anew(url: str, call: str, envs_per_session: int | None) -> None:
    # In a thread of its own, as the interrupts of ``SyncEnvClient`` are.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(interrupt_everywhere, url, CALLS[call], envs_per_session).result()


@apart
def interrupt_everywhere(url: str, call: Callable[[Any], object], envs_per_session: int | None) -> None:
    with (
        contextlib.closing(local(4)) as expected,
        contextlib.closing(remote(url, 4, envs_per_session=envs_per_session)) as envs,
    ):
        first, second = expected.reset(seed=5)[0], expected.step(ACTIONS)
        point, through = 1, False
        while not through:
            np.testing.assert_array_equal(begin_anew(envs), first)
            try:
                with interrupted_at(point, within="openenv_gym/"):
                    call(envs)
                    through = True
            except KeyboardInterrupt:
                point += STRIDE
            np.testing.assert_array_equal(begin_anew(envs), first)
            assert_same(envs.step(ACTIONS), second)
        assert point > 150


def begin_anew(envs: Any) -> np.ndarray:
    """The first observations of a reset; what is still on its way is taken before, as its error tells to."""
    try:
        return envs.reset(seed=5)[0]
    except AlreadyPendingCallError as error:
        if error.name != "send":
            raise
        with contextlib.suppress(OpenEnvGymError):
            envs.recv(4, timeout=WAIT_S)
        return envs.reset(seed=5)[0]
