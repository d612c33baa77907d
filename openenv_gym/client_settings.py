"""The arguments of OpenEnv's client as this project's settings: read and checked. Not for its mode (``modes.py``)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from openenv_gym.errors import SettingsError
from openenv_gym.transports.base import ConnectionSettings

__all__ = ["connection_settings"]

_DEFAULTS: dict[str, object] = {
    "connect_timeout_s": 10.0,
    "message_timeout_s": 60.0,
    "max_message_size_mb": 100.0,
    "websocket_ping_interval_s": 20.0,
    "websocket_ping_timeout_s": 20.0,
}
_FIELDS = {
    "connect_timeout_s": ("connect_timeout_s",),
    "message_timeout_s": ("reset_timeout_s", "step_timeout_s"),
    "max_message_size_mb": ("max_message_size_mb",),
    "websocket_ping_interval_s": ("keepalive_interval_s",),
    "websocket_ping_timeout_s": ("keepalive_timeout_s",),
}
_OFF = ("none", "null", "off", "")


def connection_settings(
    arguments: Mapping[str, object], headers: Mapping[str, str] | None, settings: ConnectionSettings | None
) -> ConnectionSettings:
    """The settings that OpenEnv's arguments mean, those that are not at their default over ``settings``.

    Args:
        arguments: what the caller gave, by OpenEnv's names; times in seconds. Where no limit is allowed, None, 0 and
            "none" all mean it.
        headers: go on top of those of the settings.
        settings: what is not said by the arguments.

    Raises:
        SettingsError: a value that cannot be.
    """
    if settings is not None and not isinstance(settings, ConnectionSettings):
        raise SettingsError(
            f"expected settings to be ConnectionSettings, got {type(settings).__name__}", setting="settings"
        )
    changes: dict[str, Any] = {}
    for name, value in arguments.items():
        if value == _DEFAULTS[name]:
            continue
        given = None if isinstance(value, str) and value.lower() in _OFF else value
        changes |= dict.fromkeys(_FIELDS[name], given)
    try:
        changed = dataclasses.replace(settings or ConnectionSettings(), **changes)
    except SettingsError as error:
        raise _of_the_argument(error, arguments) from error
    return changed if headers is None else changed.with_headers(headers)


def _of_the_argument(error: SettingsError, arguments: Mapping[str, object]) -> SettingsError:
    """The error under the name that the caller used."""
    name = next((name for name in arguments if error.setting in _FIELDS[name]), error.setting)
    return SettingsError(str(error).replace(str(error.setting), str(name)), setting=name)
