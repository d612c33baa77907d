"""Tests of ``openenv_gym.lazy``."""

from __future__ import annotations

import sys
import types

import pytest

from openenv_gym.lazy import lazy_names


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("a_package_of_lazy_names")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    module.__getattr__, module.__dir__ = lazy_names(module.__name__, {"Fraction": "fractions"})  # type: ignore[method-assign]
    return module


def test_a_name_is_loaded_once_and_then_the_packages_own(package: types.ModuleType) -> None:
    assert "Fraction" not in vars(package)
    loaded = package.Fraction
    assert loaded(1, 2) == 0.5
    assert vars(package)["Fraction"] is loaded


def test_the_names_are_listed_before_they_are_loaded(package: types.ModuleType) -> None:
    assert "Fraction" in dir(package)
    assert "Fraction" not in vars(package)


def test_another_name_is_an_attribute_error_that_names_the_package(package: types.ModuleType) -> None:
    with pytest.raises(AttributeError, match="'a_package_of_lazy_names' has no attribute 'Nothing'"):
        _ = package.Nothing
