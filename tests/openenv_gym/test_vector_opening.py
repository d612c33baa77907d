"""Which sessions are opened where; all of them, or none."""

import contextlib
import itertools
import socket
import time

import gymnasium
import numpy as np
import pytest
from fastapi import FastAPI
from gymnasium.vector import AutoresetMode
from openenv.core.env_server import create_fastapi_app

from openenv_gym import messages
from openenv_gym.errors import (
    CapacityError,
    EnvironmentFactoryError,
    SettingsError,
    SpaceMappingError,
    UnreachableError,
)
from openenv_gym.interface import SpaceOverrides
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.vector import RemoteVectorEnv
from openenv_gym.vector_opening import Server, VectorPlan, blocks_of, find_servers, open_sessions
from openenv_gym.vector_sessions import VectorSession
from openenv_gym.vector_singles import SingleSession
from openenv_gym.waiting import close_all
from openenv_gym_server import ServerSettings, create_gym_app
from tests.interop.flavours import numeric_case, our_kit, stock_kit
from tests.openenv_gym.sleepy import Sleepy, release
from tests.openenv_gym.talking import serve_talk
from tests.serving import serve, serve_all
from tests.sockets import until


def server_of(url, **settings):
    return Server(url, ConnectionSettings(**settings))


def plan_of(num_envs, envs_per_session=None, overrides=None, **settings):
    return VectorPlan(
        num_envs=num_envs,
        envs_per_session=envs_per_session,
        autoreset_mode=AutoresetMode.NEXT_STEP,
        open_settings=messages.OpenSettings(autoreset_mode="NextStep", **settings),
        overrides=overrides or SpaceOverrides(),
        binary=True,
    )


@contextlib.contextmanager
def opened(urls, plan):
    sessions, interface = open_sessions([server_of(url) for url in urls], plan, lambda face, server: None)
    try:
        yield sessions, interface
    finally:
        close_all([session.shell for session in sessions], 5.0)


@pytest.fixture(scope="module")
def cartpoles():
    settings = ServerSettings(max_concurrent_envs=8)
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(serve(create_gym_app("CartPole-v1", settings=settings))) for _ in range(2)]


@pytest.fixture(scope="module")
def stock():
    with serve_talk("stock", capacity=4) as url:
        yield url


def can_open(url, num_envs):
    """Whether there is room, once the server has noticed who has left."""

    def opens():
        try:
            RemoteVectorEnv(num_envs, base_url=url).close()
        except CapacityError:
            return False
        return True

    until(opens)
    return True


@contextlib.contextmanager
def publishing(document, status=200):
    app = FastAPI()

    @app.get("/metadata")
    def metadata():
        from fastapi.responses import JSONResponse

        return JSONResponse(document, status)

    with serve(app) as url:
        yield url


@pytest.mark.parametrize(
    ("servers", "num_envs", "sizes"), [(1, 5, [5]), (2, 5, [3, 2]), (3, 8, [3, 3, 2]), (4, 2, [1, 1])]
)
def test_blocks_are_contiguous_and_of_one_size_almost(servers, num_envs, sizes):
    blocks = blocks_of([server_of(f"http://host:{port + 1}") for port in range(servers)], num_envs)
    assert [block.count for block in blocks] == sizes
    assert [block.first for block in blocks] == [0, *itertools.accumulate(sizes[:-1])]


def test_a_server_of_ours_has_one_session(cartpoles):
    with opened(cartpoles[:1], plan_of(3)) as (sessions, _):
        assert [(type(session), session.first, session.count) for session in sessions] == [(VectorSession, 0, 3)]


def test_sessions_are_no_larger_than_they_may_be(cartpoles):
    with opened(cartpoles, plan_of(7, envs_per_session=3)) as (sessions, _):
        assert [(session.first, session.count) for session in sessions] == [(0, 3), (3, 1), (4, 3)]
        assert [session.shell.base_url for session in sessions] == [cartpoles[0]] * 2 + [cartpoles[1]]


def test_a_server_of_another_make_has_one_session_an_environment(stock):
    with opened([stock], plan_of(3)) as (sessions, _):
        assert [(type(session), session.first) for session in sessions] == [(SingleSession, i) for i in range(3)]


def test_servers_of_both_makes_may_be_mixed(stock):
    with serve_talk("ours") as ours, opened([stock, ours], plan_of(4)) as (sessions, _):
        assert [(type(session), session.first) for session in sessions] == [
            (SingleSession, 0),
            (SingleSession, 1),
            (VectorSession, 2),
        ]


@pytest.mark.parametrize("envs_per_session", [None, 1])
def test_a_server_of_ours_that_has_too_little_room_is_left_as_it_was(cartpoles, envs_per_session):
    with pytest.raises(CapacityError, match="max_concurrent_envs") as caught:
        RemoteVectorEnv(9, base_url=cartpoles[0], envs_per_session=envs_per_session)
    assert caught.value.max_sessions == 8
    assert "room for 9 environments" in caught.value.message
    assert "limit is 8" in caught.value.message
    assert can_open(cartpoles[0], 8)


def test_a_stock_server_that_has_too_little_room_is_left_as_it_was(stock):
    with pytest.raises(CapacityError, match=r"room for 6 environments.*limit is 4.*max_concurrent_envs") as caught:
        RemoteVectorEnv(6, base_url=stock)
    assert caught.value.max_sessions == 4
    assert can_open(stock, 4)


def test_where_one_server_is_full_the_others_are_left_too(cartpoles, stock):
    with serve_talk("ours") as ours:
        with pytest.raises(CapacityError):
            RemoteVectorEnv(12, base_url=[ours, stock])
        assert can_open(ours, 16)
        assert can_open(stock, 4)


def test_a_factory_that_fails_is_told_and_nothing_is_left():
    made = itertools.count()

    class Failing(gymnasium.Env):
        observation_space = action_space = gymnasium.spaces.Discrete(2)

        def __init__(self):
            if next(made) == 2:  # the server has made one already, to see whether it can
                raise ArithmeticError("no such thing")

    app = create_gym_app(Failing, settings=ServerSettings(max_concurrent_envs=4))
    with serve(app) as url:
        with pytest.raises(EnvironmentFactoryError, match="no such thing"):
            RemoteVectorEnv(4, base_url=url)
        assert can_open(url, 4)


def test_a_stock_factory_that_fails_is_told():
    case = numeric_case(stock_kit())
    made = itertools.count()

    def sometimes():
        if next(made) == 1:  # the first is for /metadata
            raise ArithmeticError("no such thing")
        return case.environment()

    with (
        serve(create_fastapi_app(sometimes, case.action, case.observation, max_concurrent_envs=1)) as url,
        pytest.raises(EnvironmentFactoryError, match="sometimes") as caught,
    ):
        RemoteVectorEnv(1, base_url=url)
    assert caught.value.factory_name == "sometimes"


def test_a_server_that_is_not_there_is_told(cartpoles):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(UnreachableError):
        RemoteVectorEnv(4, base_url=[cartpoles[0], f"http://127.0.0.1:{port}"])
    assert can_open(cartpoles[0], 8)


def test_servers_must_serve_the_same_environment(cartpoles):
    with serve(create_gym_app("MountainCar-v0")) as other:
        with pytest.raises(SpaceMappingError, match="expected every server to have the action_space"):
            RemoteVectorEnv(2, base_url=[cartpoles[0], other])
        with pytest.raises(SettingsError, match="MountainCar") as caught:
            RemoteVectorEnv(2, base_url=[cartpoles[0], other], env_id="CartPole-v1")
        assert caught.value.setting == "env_id"


def test_every_session_must_be_of_the_same_environment():
    spaces = itertools.count(2)

    class Growing(gymnasium.Env):
        observation_space = gymnasium.spaces.Discrete(2)

        def __init__(self):
            self.action_space = gymnasium.spaces.Discrete(next(spaces))

    app = create_gym_app(Growing, settings=ServerSettings(max_concurrent_envs=2))
    with serve(app) as url, pytest.raises(SpaceMappingError, match="in every session"):
        RemoteVectorEnv(2, base_url=url, envs_per_session=1)


@pytest.mark.parametrize("settings", [{"env_kwargs": {"a": 1}}, {"vectorization": "sync"}])
def test_what_only_our_servers_can_do_is_not_asked_of_others(stock, settings):
    with pytest.raises(SettingsError) as caught:
        RemoteVectorEnv(2, base_url=stock, **settings)
    assert caught.value.setting == min(settings)


def test_a_stock_server_renders_nothing(stock):
    with pytest.raises(SettingsError) as caught:
        RemoteVectorEnv(2, base_url=stock, render_mode="rgb_array")
    assert caught.value.setting == "render_mode"


def test_binary_frames_are_for_the_servers_own_spaces(cartpoles):
    wide = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float64)
    envs = RemoteVectorEnv(2, base_url=cartpoles[0], observation_space=wide)
    assert envs.reset(seed=0)[0].dtype == np.float64
    envs.close()
    unflat = RemoteVectorEnv(2, base_url=cartpoles[0], flatten=False)
    assert unflat.reset(seed=0)[0]["obs"].shape == (2, 4)
    assert unflat.step({"action": [0, 1]})[1].tolist() == [1.0, 1.0]
    unflat.close()


def test_shards_are_found_where_they_are_published():
    for document in ({"gymnasium": {"shards": [":7001", ":7002"]}}, {"shards": [":7001", ":7002"], "gymnasium": {}}):
        with publishing(document) as url:
            found = find_servers([server_of(url, headers={"Authorization": "Bearer secret"})])
            assert [server.base_url for server in found] == ["http://127.0.0.1:7001/", "http://127.0.0.1:7002/"]
            assert all(server.settings.headers for server in found)


def test_a_shard_on_another_host_gets_no_secret():
    with publishing({"shards": ["http://elsewhere:7001", "http://127.0.0.1:7002"]}) as url:
        elsewhere, here = find_servers([server_of(url, headers={"Authorization": "Bearer secret"})])
        assert elsewhere.settings.headers == {}
        assert here.settings.headers == {"Authorization": "Bearer secret"}


@pytest.mark.parametrize("document", [{}, [], {"shards": []}, {"shards": [1]}, {"gymnasium": 5}, {"shards": ":80"}])
def test_a_server_that_publishes_none_is_its_only_shard(document):
    with publishing(document) as url:
        assert [server.base_url for server in find_servers([server_of(url)])] == [url]


def test_a_server_without_metadata_is_its_only_shard():
    with publishing({}, status=404) as url:
        assert [server.base_url for server in find_servers([server_of(url)])] == [url]


def test_shards_that_two_servers_name_are_one():
    with publishing({"shards": [":7001", ":7002"]}) as one, publishing({"shards": [":7002", ":7001"]}) as other:
        assert len(find_servers([server_of(one), server_of(other), server_of(one)])) == 2


def test_the_ports_of_shards_replace_the_servers_own_behind_its_prefix_and_credentials():
    from openenv_gym.vector_opening import _shard

    server = server_of("https://user:word@host/prefix")
    assert _shard(server, ":9").base_url == "https://user:word@host:9/prefix/"
    assert _shard(server_of("http://[::1]:8000"), ":9").base_url == "http://[::1]:9/"


def test_environments_of_openenv_in_one_session_are_those_of_many():
    case = numeric_case(our_kit())
    with serve(case.app(4)) as url, opened([url], plan_of(2)) as (sessions, _):
        assert [type(session) for session in sessions] == [VectorSession]
        assert sessions[0].shell.opened.binary is False


def test_a_failure_does_not_wait_for_the_slowest_server():
    class SlowToMake(Sleepy):
        def __init__(self, render_mode=None, start=0):
            super().__init__(render_mode, start)
            assert not start or release.wait(20)

    settings = ServerSettings(max_concurrent_envs=1, allowed_env_kwargs=frozenset({"start"}))
    with serve_all([create_gym_app(kind, settings=settings) for kind in (Sleepy, SlowToMake)]) as urls:
        begun = time.monotonic()
        with pytest.raises(CapacityError):
            RemoteVectorEnv(3, base_url=urls, envs_per_session=2, env_kwargs={"start": 1})
        assert time.monotonic() - begun < 10
        release.set()
    release.clear()
