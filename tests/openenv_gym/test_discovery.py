"""``connect`` by name, address or Gymnasium id."""

from importlib.metadata import EntryPoint

import pytest

import openenv_gym
from openenv_gym import discovery
from openenv_gym.errors import SettingsError
from openenv_gym.generic_client import GenericEnvClient
from openenv_gym.providers.embedded import EmbeddedProvider
from tests.openenv_gym.talking import TalkClient


class EmbeddedClient(TalkClient):
    target = "openenv_gym_envs.echo"


@pytest.fixture
def announced(monkeypatch):
    entries = [EntryPoint("talk", f"{__name__}:EmbeddedClient", discovery.GROUP)]
    monkeypatch.setattr(discovery, "entry_points", lambda group: entries if group == discovery.GROUP else [])


def test_a_name_gives_the_client_that_was_announced(announced, talk):
    client = openenv_gym.connect("talk", talk, message_timeout_s=5.0)
    assert type(client) is EmbeddedClient
    assert (client.base_url, client._settings.step_timeout_s) == (talk, 5.0)
    with client.sync() as sync:
        assert sync.reset().observation.startswith("ready")


def test_a_name_alone_means_an_embedded_server_of_the_clients_target(announced):
    client = openenv_gym.connect("talk")
    assert client._given["provider"].target == "openenv_gym_envs.echo"
    assert client.base_url is None


def test_a_url_is_played_generically(talk):
    with openenv_gym.connect(talk).sync() as client:
        assert client.reset().observation["text"].startswith("ready")


@pytest.mark.parametrize("address", ["host:8000", "https://host/prefix", "[::1]:8000", "127.0.0.1:80/prefix"])
def test_an_address_may_have_any_form_that_a_client_takes(address):
    assert openenv_gym.connect(address).base_url == address


def test_a_gymnasium_id_is_served_here():
    client = openenv_gym.connect("CartPole-v1")
    assert type(client) is GenericEnvClient
    with client.sync() as sync:
        assert sync.base_url.startswith("http://127.0.0.1:")
        assert len(sync.reset(seed=1).observation["obs"]) == 4
        assert sync.step({"action": 1}).reward == 1.0
        with sync.new_session() as other:
            other.reset()
    assert sync.base_url is None


def test_an_address_or_a_provider_goes_before_the_embedded_server():
    assert openenv_gym.connect("CartPole-v1", "http://host").base_url == "http://host"
    provider = EmbeddedProvider("Acrobot-v1")
    assert openenv_gym.connect("CartPole-v1", provider=provider)._given["provider"] is provider
    assert openenv_gym.connect("module:Name-v0")._given["provider"].target == "module:Name-v0"


@pytest.mark.parametrize("name", ["tlak", "CartPole-v9000", "", 3])
def test_an_unknown_name_is_refused_with_the_known_ones(announced, name):
    with pytest.raises(SettingsError) as caught:
        openenv_gym.connect(name)
    assert caught.value.setting == "name"
    if name == "tlak":
        assert "did you mean 'talk'?" in str(caught.value)
    assert isinstance(name, int) or "['talk']" in str(caught.value)


def test_two_addresses_are_one_too_many():
    with pytest.raises(SettingsError) as caught:
        openenv_gym.connect("http://one", "http://two")
    assert caught.value.setting == "base_url"
