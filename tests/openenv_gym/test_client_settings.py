"""OpenEnv's arguments as settings."""

import pytest

from openenv_gym.client_settings import connection_settings
from openenv_gym.errors import SettingsError
from openenv_gym.transports.base import ConnectionSettings


def settings_of(headers=None, settings=None, **arguments):
    return connection_settings(arguments, headers, settings)


def test_openenv_s_arguments_have_their_counterparts():
    made = settings_of(
        connect_timeout_s=1.0,
        message_timeout_s=2.0,
        max_message_size_mb=3.0,
        websocket_ping_interval_s=4.0,
        websocket_ping_timeout_s=5.0,
    )
    assert (made.connect_timeout_s, made.reset_timeout_s, made.step_timeout_s) == (1.0, 2.0, 2.0)
    assert (made.max_message_size_mb, made.keepalive_interval_s, made.keepalive_timeout_s) == (3.0, 4.0, 5.0)


@pytest.mark.parametrize("off", [None, 0, "none", "None", "off"])
def test_pings_can_be_switched_off(off):
    assert not settings_of(websocket_ping_interval_s=off).keepalive_interval_s


def test_arguments_at_their_default_leave_the_settings_as_they_are():
    given = ConnectionSettings(step_timeout_s=7.0, connect_timeout_s=8.0)
    made = settings_of({"X-A": "1"}, given, message_timeout_s=60.0, connect_timeout_s=9.0)
    assert (made.step_timeout_s, made.connect_timeout_s, made.headers) == (7.0, 9.0, {"X-A": "1"})


@pytest.mark.parametrize(("name", "value"), [("message_timeout_s", -1), ("websocket_ping_interval_s", "often")])
def test_a_value_that_cannot_be_is_refused_under_the_name_that_was_used(name, value):
    with pytest.raises(SettingsError, match=f"expected {name} to be") as caught:
        settings_of(**{name: value})
    assert caught.value.setting == name
