"""The one source of an address."""

import pytest

from openenv_gym.errors import SettingsError
from openenv_gym.providers.embedded import EmbeddedProvider
from openenv_gym.providers.leasing import lease_server

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
