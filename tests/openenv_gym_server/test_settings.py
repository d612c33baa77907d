"""Tests of ``openenv_gym_server.settings``."""

from __future__ import annotations

from typing import Any

import pytest

from openenv_gym.errors import SettingsError
from openenv_gym.types import ServerMode
from openenv_gym_server.settings import ServerSettings, capacity_from_environment, uvicorn_options


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("mode", "training"),
        ("max_concurrent_envs", 0),
        ("seed", -1),
        ("seed", True),
        ("seed", "1"),
        ("shards", ":8001"),
        ("shards", [8001]),
        ("shards", [":0"]),
        ("shards", ["host:8001"]),
        ("max_concurrent_envs", True),
        ("max_concurrent_envs", 1.5),
        ("session_timeout_s", 0),
        ("reset_timeout_s", -1),
        ("step_timeout_s", float("nan")),
        ("close_timeout_s", float("inf")),
        ("shutdown_timeout_s", "1"),
        ("max_message_size_mb", 0),
        ("open_timeout_s", 0),
        ("allowed_env_kwargs", "size"),
        ("remote_names", 5),
    ],
)
def test_a_setting_that_cannot_be_is_named(setting: str, value: Any) -> None:
    with pytest.raises(SettingsError) as caught:
        ServerSettings(**{setting: value})
    assert caught.value.setting == setting
    assert repr(value) in str(caught.value)


def test_the_mode_comes_from_argument_or_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENENV_MODE", raising=False)
    assert ServerSettings().mode == "simulation"
    assert ServerSettings(mode=ServerMode.PRODUCTION).production
    monkeypatch.setenv("OPENENV_MODE", "Production")
    assert ServerSettings().production
    assert not ServerSettings(mode="SIMULATION").production


def test_names_may_come_in_any_collection() -> None:
    assert ServerSettings(allowed_env_kwargs=["a", "b"]).allowed_env_kwargs == {"a", "b"}  # type: ignore[arg-type]
    assert ServerSettings(remote_names="all").remote_names == "all"


def test_uvicorn_gets_limits_that_leave_room_for_an_answer() -> None:
    options = uvicorn_options(ServerSettings(max_message_size_mb=2, shutdown_timeout_s=1.5))
    assert options == {"ws_max_size": 3 * 2**20, "timeout_graceful_shutdown": 1}


def test_a_token_is_in_no_text_of_the_settings() -> None:
    assert "very-secret" not in repr(ServerSettings(token="very-secret"))
    for impossible in ("very secret", "", "é", 5, b"very-secret"):
        with pytest.raises(SettingsError) as caught:
            ServerSettings(token=impossible)  # type: ignore[arg-type]
        assert caught.value.setting == "token"
        assert "very" not in str(caught.value)


def test_a_message_may_be_as_large_as_the_reference_has_it() -> None:
    assert ServerSettings().max_message_bytes == 16 * 2**20


def test_sharing_tracebacks_is_asked_for_by_a_bool() -> None:
    assert ServerSettings(share_tracebacks=True).share_tracebacks is True
    with pytest.raises(SettingsError) as caught:
        ServerSettings(share_tracebacks="yes")  # type: ignore[arg-type]
    assert caught.value.setting == "share_tracebacks"


@pytest.mark.parametrize(
    ("text", "capacity"), [(None, None), ("", None), (" ", None), ("8", 8), (" 3 ", 3), ("unlimited", "unlimited")]
)
def test_the_capacity_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, text: str | None, capacity: int | str | None
) -> None:
    monkeypatch.delenv("MAX_CONCURRENT_ENVS", raising=False)
    if text is not None:
        monkeypatch.setenv("MAX_CONCURRENT_ENVS", text)
    assert capacity_from_environment() == capacity


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", "1e3", "٣", "9" * 5000])
def test_a_capacity_of_the_environment_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("MAX_CONCURRENT_ENVS", text)
    with pytest.raises(SettingsError, match="MAX_CONCURRENT_ENVS") as caught:
        capacity_from_environment()
    assert caught.value.setting == "max_concurrent_envs"
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_environment_variable_sets_no_mode(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("OPENENV_MODE", text)
    assert ServerSettings().mode == "simulation"


def test_the_places_of_the_shards_are_urls_or_ports() -> None:
    shards = [":1", ":65535", "http://a:8000", "https://a/b"]
    assert ServerSettings(shards=shards).shards == tuple(shards)  # type: ignore[arg-type]
