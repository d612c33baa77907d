"""Tests of ``openenv_gym_server.remote_target``."""

from __future__ import annotations

from typing import Any

import pytest

from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError
from openenv_gym_server.remote_target import RemoteTarget


class Room:
    doors = 2

    def look(self, direction: str, *, loud: bool = False) -> str:
        return f"{direction}{'!' if loud else ''}"

    @property
    def hidden(self) -> int:
        raise FileNotFoundError("no map")


class Wrapped:
    def __init__(self) -> None:
        self.remote_target = Room()


def target_of(env: Any) -> RemoteTarget:
    return RemoteTarget(env, lambda value: value)


@pytest.mark.parametrize("kind", [Room, Wrapped])
def test_methods_and_attributes_are_those_of_what_is_acted_on(kind: Any) -> None:
    env = kind()
    remote = target_of(env)
    assert remote.call("look", ["north"], {"loud": True}, "all") == "north!"
    remote.set_attribute("doors", 3, "all")
    assert remote.attribute("doors", {"doors"}) == 3
    assert getattr(env, "remote_target", env).doors == 3


def test_what_a_method_gives_is_settled() -> None:
    assert RemoteTarget(Room(), lambda value: [value]).call("look", ["up"], {}, "all") == ["up"]


@pytest.mark.parametrize("name", ["windows", "_doors", "step"])
def test_what_is_not_there_or_not_allowed_is_refused(name: str) -> None:
    with pytest.raises(InvalidActionError):
        target_of(Room()).attribute(name, "all")


def test_an_attribute_is_not_called() -> None:
    with pytest.raises(InvalidActionError, match="x-get_attr"):
        target_of(Room()).call("doors", [], {}, "all")


def test_what_reading_raises_is_the_environments_error() -> None:
    with pytest.raises(EnvironmentExecutionError, match="no map"):
        target_of(Room()).attribute("hidden", "all")
