"""Tests of ``openenv_gym_server.protocols``."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

import pytest
from openenv.core.env_server import interfaces as reference

from openenv_gym_server import protocols
from openenv_gym_server.protocols import Message, TaskProvider
from tests.openenv_gym_server.routes.test_tasks import AsyncTasks, Nothing, Tasks


def test_an_environment_with_the_methods_provides_tasks() -> None:
    assert isinstance(Tasks(), TaskProvider)
    assert isinstance(AsyncTasks(), TaskProvider)
    assert not isinstance(Nothing(), TaskProvider)


@pytest.mark.parametrize("name", ["TaskProvider", "ModelTokenizer"])
def test_the_methods_are_those_of_the_reference(name: str) -> None:
    mine, theirs = signatures(getattr(protocols, name)), signatures(getattr(reference, name))
    assert mine == theirs


def test_a_message_has_the_fields_of_the_reference() -> None:
    assert get_type_hints(Message) == get_type_hints(reference.Message)


def signatures(kind: Any) -> dict[str, list[tuple[str, Any, Any]]]:
    methods = {name: inspect.signature(value) for name, value in vars(kind).items() if inspect.isfunction(value)}
    return {
        name: [(one.name, one.kind, one.default) for one in signature.parameters.values()]
        for name, signature in methods.items()
        if not name.startswith("_")
    }
