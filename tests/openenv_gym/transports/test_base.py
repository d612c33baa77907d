"""Settings, addresses, and what never shows."""

from __future__ import annotations

import pickle

import pytest

from openenv_gym.errors import SettingsError
from openenv_gym.transports.base import ConnectionSettings, http_url, redacted, websocket_url


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("http://host:8000", "ws://host:8000/ws"),
        ("https://host", "wss://host/ws"),
        ("ws://host/", "ws://host/ws"),
        ("wss://host", "wss://host/ws"),
        ("host", "ws://host/ws"),
        ("localhost:8000", "ws://localhost:8000/ws"),
        ("https://host/a/prefix/", "wss://host/a/prefix/ws"),
        ("http://[::1]:8000", "ws://[::1]:8000/ws"),
        ("[::1]:8000", "ws://[::1]:8000/ws"),
        ("http://user:word@host", "ws://user:word@host/ws"),
    ],
)
def test_a_base_url_becomes_a_websocket_address(base_url: str, expected: str) -> None:
    assert websocket_url(base_url) == expected


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("ws://host:8000", "http://host:8000/schema"),
        ("wss://host/prefix", "https://host/prefix/schema"),
        ("https://host", "https://host/schema"),
        ("host:8000", "http://host:8000/schema"),
    ],
)
def test_a_base_url_becomes_an_http_address(base_url: str, expected: str) -> None:
    assert http_url(base_url, "schema") == expected


@pytest.mark.parametrize(
    "base_url",
    [
        "",
        "  ",
        "ftp://host",
        "http://",
        "http://host:port",
        "http://host:0",
        "http://host:99999",
        "http://a host",
        "::1",
        "http://[::1",
        "http://host#fragment",
        None,
    ],
)
def test_what_is_no_address_of_a_server_is_refused(base_url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        websocket_url(base_url)
    assert caught.value.setting == "base_url"


def test_a_query_is_refused_without_showing_it() -> None:
    with pytest.raises(SettingsError) as caught:
        http_url("http://host?token=secret", "/health")
    assert "secret" not in str(caught.value)


def test_a_token_in_place_of_a_user_is_refused_without_showing_it() -> None:
    with pytest.raises(SettingsError, match="headers") as caught:
        websocket_url("https://secret@host")
    assert "secret" not in str(caught.value)


def test_header_values_and_proxy_credentials_never_show() -> None:
    settings = ConnectionSettings(headers={"Authorization": "Bearer secret"}, proxy="http://me:secret@proxy:3128")
    assert "secret" not in repr(settings)
    assert "Authorization" in repr(settings)
    assert "proxy:3128" in repr(settings)


def test_settings_survive_pickling_and_can_be_hashed() -> None:
    settings = ConnectionSettings(headers={"X-Key": "value"}, step_timeout_s=None)
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert hash(settings) == hash(ConnectionSettings(headers={"X-Key": "value"}, step_timeout_s=None))


def test_later_changes_of_the_given_headers_change_nothing() -> None:
    headers = {"X-Key": "value"}
    settings = ConnectionSettings(headers=headers)
    headers["X-Key"] = "other"
    assert settings.headers == {"X-Key": "value"}


def test_settings_come_from_a_mapping() -> None:
    assert ConnectionSettings.from_mapping({"step_timeout_s": 0, "verify": False}).verify is False


def test_an_unknown_setting_is_named_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match=r"connect_timeout_s.*'timeout'") as caught:
        ConnectionSettings.from_mapping({"timeout": 1})
    assert caught.value.setting == "timeout"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("connect_timeout_s", 0),
        ("connect_timeout_s", None),
        ("connect_timeout_s", "10"),
        ("close_timeout_s", -1),
        ("reset_timeout_s", -1),
        ("step_timeout_s", float("nan")),
        ("step_timeout_s", True),
        ("max_message_size_mb", 0),
        ("max_message_size_mb", float("inf")),
        ("ca_file", 1),
        ("client_key", "key.pem"),
        ("verify", "yes"),
        ("proxy", False),
        ("headers", ["X-Key"]),
        ("headers", {"bad name": "value"}),
        ("headers", {"X-Key": 1}),
        ("headers", {"Upgrade": "websocket"}),
        ("headers", {"Sec-WebSocket-Key": "x"}),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(SettingsError) as caught:
        ConnectionSettings.from_mapping({name: value})
    assert caught.value.setting == name


@pytest.mark.parametrize("value", ["secret\n", "sec\rret", "secrét"])
def test_a_bad_header_value_is_refused_without_showing_it(value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        ConnectionSettings(headers={"Authorization": value})
    assert value.strip() not in str(caught.value)
    assert "Authorization" in str(caught.value)


def test_the_limit_is_in_mebibytes() -> None:
    assert ConnectionSettings(max_message_size_mb=0.5).max_message_bytes == 512 * 1024


@pytest.mark.parametrize(("reset", "step", "expected"), [(60.0, 90.0, 90.0), (None, 60.0, None), (60.0, 0, None)])
def test_a_send_may_last_as_long_as_the_longest_request(
    reset: float | None, step: float | None, expected: float | None
) -> None:
    assert ConnectionSettings(reset_timeout_s=reset, step_timeout_s=step).send_timeout_s == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://me:secret@host/a?b=secret#secret", "https://…@host/a"),
        ("http://host/a", "http://host/a"),
        ("http://[::1", "…"),
    ],
)
def test_a_redacted_url_has_no_secrets(url: str, expected: str) -> None:
    assert redacted(url) == expected
