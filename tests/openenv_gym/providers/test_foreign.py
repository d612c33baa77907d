"""Providers of every make as leases, and clients that start and stop them."""

import os
import subprocess
import sys

import pytest

import openenv_gym
from openenv_gym import providers
from openenv_gym.errors import ProviderError, SettingsError, UnreachableError
from openenv_gym.providers import foreign
from openenv_gym.providers.embedded import EmbeddedProvider
from openenv_gym.providers.foreign import lease_of, stopping
from tests.openenv_gym.talking import TalkClient


class Container:
    def __init__(self, url="http://host", fail=None):
        self.url, self.fail, self.calls = url, fail, []

    def start_container(self):
        self.calls.append("start")
        return self.url

    def wait_for_ready(self, base_url):
        self.calls.append(f"ready {base_url}")
        if self.fail == "ready":
            raise ArithmeticError("never ready")

    def stop_container(self):
        self.calls.append("stop")
        if self.fail == "stop":
            raise ArithmeticError("does not stop")


class Runtime:
    def __init__(self, url="http://host"):
        self.url, self.calls = url, []

    def start(self):
        self.calls.append("start")
        return self.url

    def wait_for_ready(self):
        self.calls.append("ready")

    def stop(self):
        self.calls.append("stop")


def test_containers_and_run_times_are_started_waited_for_and_stopped_once():
    for provider, ready in ((Container(), "ready http://host"), (Runtime(), "ready")):
        lease = lease_of(provider, None)
        assert lease.base_url == "http://host"
        lease.release()
        lease.release()
        assert provider.calls == ["start", ready, "stop"]


def test_one_that_runs_already_is_only_stopped():
    provider = Runtime()
    lease = lease_of(provider, "http://given")
    assert lease.base_url == "http://given"
    lease.release()
    assert provider.calls == ["stop"]


def test_a_start_that_fails_is_undone():
    provider = Container(fail="ready")
    with pytest.raises(ArithmeticError, match="never ready"):
        lease_of(provider, None)
    assert provider.calls[-1] == "stop"
    provider.url = None
    with pytest.raises(ProviderError, match="None"):
        lease_of(Runtime(None), None)


def test_a_stop_that_fails_is_tried_again():
    provider = Container(fail="stop")
    lease = lease_of(provider, None)
    with pytest.raises(ArithmeticError):
        lease.release()
    provider.fail = None
    lease.release()
    lease.release()
    assert provider.calls.count("stop") == 2


def test_a_provider_that_needs_arguments_is_refused_with_their_names():
    class Needy(Container):
        def start_container(self, image, port, *, name, **rest):
            raise AssertionError

    with pytest.raises(SettingsError, match=r"image, port, name") as caught:
        lease_of(Needy(), None)
    assert caught.value.setting == "provider"


def test_a_method_without_a_signature_is_called_as_it_is(monkeypatch):
    class Maker(Container):
        def start_container(self):
            return {}

    def refuse(_):
        raise ValueError("no signature")

    monkeypatch.setattr(foreign.inspect, "signature", refuse)
    with pytest.raises(ProviderError, match="address"):
        lease_of(Maker(), None)


@pytest.mark.parametrize("thing", [object(), "docker", Container.start_container])
def test_what_is_no_provider_is_refused(thing):
    with pytest.raises(SettingsError) as caught:
        stopping(thing)
    assert caught.value.setting == "provider"


def test_ours_are_started_as_copies():
    provider = EmbeddedProvider("openenv_gym_envs.echo")
    lease = lease_of(provider, None)
    assert provider.headers == {}
    assert (lease.embedded, lease.renew()) == (True, lease.base_url)
    assert lease.headers["Authorization"]
    lease.release()
    process = openenv_gym.ProcessProvider("openenv_gym_envs.echo")
    lease = lease_of(process, None)
    assert process.ended() == "it was not started"
    lease.release()


def test_a_running_one_of_ours_gives_its_headers():
    class Private(openenv_gym.Provider):
        headers = {"Authorization": "Bearer x"}

        def configuration(self):
            return {}

        def start(self):
            raise AssertionError

        def stop(self):
            """Nothing runs."""

        def wait_for_ready(self, base_url, timeout_s=30.0):
            raise AssertionError

    lease = lease_of(Private(), "http://given")
    assert lease.headers == {"Authorization": "Bearer x"}
    lease.release()


def test_a_forked_child_stops_nothing(monkeypatch):
    provider = Runtime()
    lease = lease_of(provider, None)
    own = os.getpid()
    monkeypatch.setattr(foreign.os, "getpid", lambda: own + 1)
    lease.release()
    assert provider.calls[-1] == "ready"
    monkeypatch.undo()
    lease.release()
    assert provider.calls[-1] == "stop"


def test_what_nobody_stopped_is_stopped_at_the_interpreter_s_exit():
    script = """
from openenv_gym.providers.foreign import lease_of
class Runtime:
    def start(self): return "http://host"
    def wait_for_ready(self): pass
    def stop(self): print("stopped", flush=True)
class Broken(Runtime):
    def stop(self): raise ArithmeticError
leases = [lease_of(Broken(), None), lease_of(Runtime(), None)]
"""
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (finished.stdout, finished.stderr) == ("stopped\n", "")


def test_this_version_brings_no_provider_of_containers_or_projects():
    for default in (providers.default_container_provider, lambda: providers.default_runtime_provider("path", port=1)):
        with pytest.raises(SettingsError) as caught:
            default()
        assert caught.value.setting == "provider"


def test_a_client_starts_its_provider_and_stops_it(talk):
    provider = Container(talk)
    client = TalkClient(provider=provider)
    assert (client.base_url, provider.calls) == (None, [])
    with client.sync() as sync:
        assert sync.base_url == talk
        sync.reset()
        child = sync.new_session()
        child.reset()
        child.close()
        sync.disconnect()
        sync.reset()
        assert provider.calls.count("start") == 1
    assert provider.calls == ["start", f"ready {talk}", "stop"]
    with client.sync() as sync:
        sync.reset()
    assert provider.calls.count("stop") == 2


def test_a_client_whose_first_connection_fails_stops_its_provider():
    for provider in (Container("http://127.0.0.1:1"), Container("http://127.0.0.1:1", fail="stop")):
        client = TalkClient(provider=provider).sync()
        with pytest.raises(UnreachableError):
            client.connect()
        assert provider.calls[-1] == "stop"
        provider.fail = None
        client.close()


def test_a_client_of_a_given_address_stops_its_provider_too(talk):
    provider = Container(talk)
    with TalkClient(talk, provider=provider).sync() as client:
        client.reset()
    assert provider.calls == ["stop"]


def test_a_new_session_starts_the_provider_and_leaves_it_to_its_parent(talk):
    provider = Runtime(talk)
    client = TalkClient(provider=provider).sync()
    child = client.new_session()
    child.reset()
    child.close()
    assert provider.calls == ["start", "ready"]
    client.close()
    assert provider.calls[-1] == "stop"


def test_a_running_provider_is_stopped_by_the_close_of_a_client_that_never_connected():
    provider = Container()
    client = TalkClient("http://127.0.0.1:1", provider=provider).sync()
    client.close()
    client.close()
    assert provider.calls == ["stop"]
