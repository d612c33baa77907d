"""The error tree: what each class is, carries, and survives."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest

from openenv_gym import errors
from openenv_gym.errors import OpenEnvGymError

CLASSES = [kind for kind in map(vars(errors).get, errors.__all__) if kind and not issubclass(kind, Warning)]
BUILTINS = {
    "SpaceMappingError": ValueError,
    "ValueMappingError": ValueError,
    "SettingsError": ValueError,
    "ModeError": RuntimeError,
    "MissingExtraError": ImportError,
    "ProviderError": RuntimeError,
    "UnreachableError": ConnectionError,
    "ProtocolError": ConnectionError,
    "MessageTooLargeError": ValueError,
    "RequestTimeoutError": TimeoutError,
    "SessionLostError": ConnectionError,
    "SessionStateError": RuntimeError,
    "ServerError": RuntimeError,
    "InvalidActionError": ValueError,
    "EnvironmentExecutionError": RuntimeError,
    "CapacityError": ConnectionError,
    "EnvironmentFactoryError": RuntimeError,
}

every_class = pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)


def test_every_error_of_the_module_is_exported_and_in_the_tree() -> None:
    defined = {
        name for name, value in vars(errors).items() if inspect.isclass(value) and value.__module__ == errors.__name__
    }
    assert defined == set(errors.__all__)
    assert errors.__doc__ is not None
    assert all(kind.__name__ in errors.__doc__ for kind in CLASSES)


def test_the_warning_is_a_user_warning_outside_the_tree() -> None:
    assert issubclass(errors.OpenEnvGymWarning, UserWarning)
    assert not issubclass(errors.OpenEnvGymWarning, OpenEnvGymError)


@every_class
def test_an_error_can_be_caught_by_the_builtin(kind: type[OpenEnvGymError]) -> None:
    assert issubclass(kind, OpenEnvGymError)
    assert issubclass(kind, BUILTINS.get(kind.__name__, Exception))


@every_class
def test_an_error_can_be_made_of_its_text_alone(kind: type[OpenEnvGymError]) -> None:
    error = kind("the text")
    assert str(error) == error.message == "the text"
    assert all(getattr(error, name) is None for name in kind.attributes)
    assert kind().message == ""


@every_class
@pytest.mark.parametrize("back", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
def test_an_error_survives_pickling_and_copying(kind: type[OpenEnvGymError], back: Any) -> None:
    facts = {name: f"its {name}" for name in kind.attributes}
    error = back(kind("the text", **facts))
    assert type(error) is kind
    assert error.message == "the text"
    assert {name: getattr(error, name) for name in kind.attributes} == facts


@every_class
def test_an_attribute_the_class_does_not_know_is_a_type_error(kind: type[OpenEnvGymError]) -> None:
    with pytest.raises(TypeError, match="nonsense"):
        kind("the text", nonsense=1)


def test_an_error_without_arguments_has_an_empty_message() -> None:
    error = OpenEnvGymError("x")
    error.args = ()
    assert error.message == ""
