"""The one source of an address."""

import pytest

from openenv_gym.errors import SettingsError
from openenv_gym.providers.embedded import EmbeddedProvider
from openenv_gym.providers.leasing import lease_server, target_of

URL = "http://127.0.0.1:8000"


def test_an_address_is_taken_as_it_is():
    lease = lease_server(URL, None, "CartPole-v1")
    assert (lease.base_url, lease.renew(), lease.embedded) == (URL, URL, False)
    lease.release()


def test_a_provider_is_started_for_the_lease():
    lease = lease_server(None, EmbeddedProvider("openenv_gym_envs.echo"), None)
    assert lease.base_url.startswith("http://127.0.0.1:")
    lease.release()


def test_a_target_is_served_here():
    lease = lease_server(None, None, "openenv_gym_envs.echo")
    assert lease.embedded
    lease.release()


@pytest.mark.parametrize(
    ("base_url", "provider", "setting"), [(URL, EmbeddedProvider("x"), "provider"), (None, None, "base_url")]
)
def test_none_or_two_are_refused(base_url, provider, setting):
    with pytest.raises(SettingsError) as caught:
        lease_server(base_url, provider, None)
    assert caught.value.setting == setting


def test_an_environments_id_is_a_target():
    assert [target_of("module:app", None), target_of(None, "CartPole-v1"), target_of(None, None)] == [
        "module:app",
        "CartPole-v1",
        None,
    ]


@pytest.mark.parametrize(("target", "env_id"), [("module:app", "CartPole-v1"), (None, dict)])
def test_two_targets_or_none_that_is_one_are_refused(target, env_id):
    with pytest.raises(SettingsError) as caught:
        target_of(target, env_id)
    assert caught.value.setting == "env_id"
