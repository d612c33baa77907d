"""Clients of servers that are started for them."""

import asyncio
import threading

import pytest

from openenv_gym import providers
from openenv_gym.errors import SessionStateError, SettingsError, UnreachableError
from openenv_gym.sync_client import SyncEnvClient
from tests.openenv_gym.talking import WAIT_S, TalkClient
from tests.openenv_gym.transports.conftest import wait_until


class Container:
    """A provider by OpenEnv's method names, of a server that runs already."""

    def __init__(self, url, *, fail=None):
        self.url, self.fail, self.calls = url, fail, []

    def start_container(self, image, **keywords):
        self.calls.append(("start", image, keywords))
        self._maybe("start")
        return self.url

    def wait_for_ready(self, base_url):
        assert base_url == self.url
        self.calls.append("ready")
        self._maybe("ready")

    def stop_container(self):
        self.calls.append("stop")
        self._maybe("stop")

    def _maybe(self, place):
        if self.fail == place:
            raise ArithmeticError(place)


class Runtime:
    def __init__(self, url):
        self.url, self.calls = url, []

    def start(self, **keywords):
        self.calls.append(("start", keywords))
        return self.url

    def wait_for_ready(self):
        self.calls.append("ready")

    def stop(self):
        self.calls.append("stop")


def test_awaiting_starts_the_container_and_closing_stops_it(talk):
    container = Container(talk)

    async def play():
        launch = TalkClient.from_docker_image("talk:latest", container, port=8000)
        assert container.calls == []
        client = await launch
        assert type(client) is TalkClient
        assert (await client.reset()).observation.startswith("ready")
        await client.close()
        await client.close()

    asyncio.run(play())
    assert container.calls == [("start", "talk:latest", {"port": 8000}), "ready", "stop"]


def test_sync_gives_a_connected_client(talk):
    container = Container(talk)
    with TalkClient.from_docker_image("talk:latest", container).sync() as client:
        assert isinstance(client, SyncEnvClient)
        client.reset()
    assert container.calls[-1] == "stop"


def test_a_launch_is_a_coroutine(talk):
    container = Container(talk)
    client = asyncio.run(TalkClient.from_docker_image("talk", container))
    assert client.sync().reset().observation.startswith("ready")
    client.sync().close()

    async def as_task():
        client = await asyncio.create_task(TalkClient.from_docker_image("talk", container))
        await client.close()

    asyncio.run(as_task())


def test_a_launch_is_for_one_use(talk):
    launch = TalkClient.from_docker_image("talk", Container(talk))
    launch.sync().close()
    with pytest.raises(SessionStateError) as caught:
        launch.sync()
    assert caught.value.state == "used"

    async def again():
        await launch

    with pytest.raises(SessionStateError):
        asyncio.run(again())


def test_an_unused_launch_starts_nothing(talk):
    container = Container(talk)
    launch = TalkClient.from_docker_image("talk", container)
    launch.close()
    del launch
    assert container.calls == []


def test_a_launch_can_be_thrown_into(talk):
    container = Container(talk)
    launch = TalkClient.from_docker_image("talk", container)
    with pytest.raises(KeyboardInterrupt):
        launch.throw(KeyboardInterrupt())
    launch.close()
    assert container.calls == []


@pytest.mark.parametrize("place", ["start", "ready"])
def test_a_container_that_does_not_start_is_stopped(talk, place):
    container = Container(talk, fail=place)
    with pytest.raises(ArithmeticError, match=place):
        TalkClient.from_docker_image("talk", container).sync()
    assert container.calls[-1] == "stop"


def test_a_container_whose_server_cannot_be_reached_is_stopped():
    for fail in (None, "stop"):
        container = Container("http://127.0.0.1:1", fail=fail)
        with pytest.raises(UnreachableError):
            TalkClient.from_docker_image("talk", container).sync()
        assert "stop" in container.calls


def test_a_stop_that_fails_comes_out_and_is_tried_again(talk):
    container = Container(talk, fail="stop")
    client = TalkClient.from_docker_image("talk", container).sync()
    with pytest.raises(ArithmeticError, match="stop"):
        client.close()
    container.fail = None
    client.close()
    client.close()
    assert container.calls.count("stop") == 2


def test_a_launch_that_is_cancelled_stops_what_it_started(talk):
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Container):
        def wait_for_ready(self, base_url):
            begun.set()
            assert go_on.wait(WAIT_S)

    container = Slow(talk)

    async def leave():
        task = asyncio.create_task(TalkClient.from_docker_image("talk", container))
        await asyncio.to_thread(begun.wait, WAIT_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    go_on.set()
    wait_until(lambda: "stop" in container.calls)


def test_without_a_provider_the_default_is_asked_for(monkeypatch, talk):
    for launch in (TalkClient.from_docker_image("talk"), TalkClient.from_env("me/talk")):
        with pytest.raises(SettingsError) as caught:
            launch.sync()
        assert caught.value.setting == "provider"
    container = Container(talk)
    monkeypatch.setattr(providers, "default_container_provider", lambda: container)
    TalkClient.from_docker_image("talk").sync().close()
    assert container.calls[0] == ("start", "talk", {})


def test_a_space_s_image_is_named_as_its_registry_names_it(talk):
    container = Container(talk)
    TalkClient.from_env("Me/Talk_Env.v2", provider=container, tag="dev", env_vars={"A": "1"}).sync().close()
    assert container.calls[0] == ("start", "registry.hf.space/me-talk-env-v2:dev", {"env_vars": {"A": "1"}})


def test_a_space_is_run_as_a_project(monkeypatch, talk):
    runtime, asked = Runtime(talk), []
    TalkClient.from_env("me/talk", use_docker=False, provider=runtime, port=1, workers=2).sync().close()
    assert runtime.calls == [("start", {"port": 1, "workers": 2}), "ready", "stop"]
    monkeypatch.setattr(
        providers, "default_runtime_provider", lambda path, **keywords: asked.append((path, keywords)) or runtime
    )
    TalkClient.from_env("me/talk", use_docker=False, reload=True).sync().close()
    TalkClient.from_env("me/talk", use_docker=False, project_path="here").sync().close()
    assert asked == [("git+https://huggingface.co/spaces/me/talk", {"reload": True}), ("here", {})]


@pytest.mark.parametrize("repo_id", ["talk", "a/b/c", "/talk", "me/"])
def test_a_name_that_is_no_space_s_is_refused(repo_id):
    with pytest.raises(SettingsError) as caught:
        TalkClient.from_env(repo_id)
    assert caught.value.setting == "repo_id"


def test_keywords_that_nobody_takes_are_refused(talk):
    with pytest.raises(SettingsError) as caught:
        TalkClient.from_env("me/talk", use_docker=False, provider=Runtime(talk), reload=True)
    assert caught.value.setting == "reload"
