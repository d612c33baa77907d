"""The models that the bases of an environment's class name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pytest

from openenv_gym.tools import CallToolAction, CallToolObservation
from openenv_gym.types import Action, Observation, State
from openenv_gym_server import Environment, MCPEnvironment
from openenv_gym_server.declared_models import declared_models

ActT = TypeVar("ActT")
T = TypeVar("T")


class Say(Action):
    message: str


@dataclass
class Heard:
    text: str


class Score(State):
    points: int = 0


class Plain(Environment[Say, Heard, Score]):
    pass


class Child(Plain):
    pass


class Half(Environment[ActT, Heard, Any], Generic[ActT]):
    pass


class Whole(Half[Say]):
    pass


class Mixed(dict[str, int], Environment[Say, Heard, State]):
    pass


class Quoted(Environment["Say", "Later", "Score"]):
    pass


class Later(Observation):
    pass


class Tools(MCPEnvironment):
    pass


@pytest.mark.parametrize(
    ("kind", "models"),
    [
        (Plain, (Say, Heard, Score)),
        (Child, (Say, Heard, Score)),
        (Whole, (Say, Heard, State)),
        (Mixed, (Say, Heard, State)),
        (Quoted, (Say, Later, Score)),
        (Tools, (CallToolAction, CallToolObservation, State)),
    ],
)
def test_models_are_read_through_all_bases(kind: type[Any], models: tuple[type[Any], ...]) -> None:
    assert declared_models(kind) == models


class Bare(Environment):  # type: ignore[type-arg]
    pass


class Open(Half[T]):
    pass


class Dicts(Environment[dict[str, int], Heard, State]):
    pass


class Unknown(Environment[Say, "Nowhere", State]):  # type: ignore[name-defined]
    pass


@pytest.mark.parametrize("kind", [Environment, Bare, Half, Open, Dicts, Unknown])
def test_what_is_left_open_gives_none(kind: type[Any]) -> None:
    assert declared_models(kind) is None
