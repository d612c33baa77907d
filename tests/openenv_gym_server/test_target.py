"""What can be served by name."""

import sys
import types

import pytest
from fastapi import FastAPI

from openenv_gym.errors import SettingsError
from openenv_gym_server import ServerSettings
from openenv_gym_server.target import load_app


@pytest.fixture
def module(monkeypatch):
    """An importable module of the test's own, empty."""
    made = types.ModuleType("a_module_of_the_test")
    made.__spec__ = types.SimpleNamespace(name=made.__name__, loader=None)
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


@pytest.mark.filterwarnings("ignore:.*latest versioned environment:UserWarning")
@pytest.mark.parametrize("target", ["CartPole-v1", "CartPole", "gymnasium:CartPole-v1", "openenv_gym_envs.echo"])
def test_ids_and_packages_are_told_apart(target):
    assert isinstance(load_app(target), FastAPI)


def test_an_attribute_may_be_an_app_or_make_one(module):
    app = FastAPI()
    seen = []
    module.app = app
    module.make = lambda settings: seen.append(settings) or app
    settings = ServerSettings(max_concurrent_envs=3)
    assert load_app(f"{module.__name__}:app", settings) is app
    assert load_app(f"{module.__name__}:make", settings) is app
    assert seen == [settings]


def test_a_package_with_an_app_alone_is_served(module):
    module.app = FastAPI()
    assert load_app(module.__name__) is module.app


@pytest.mark.parametrize("attribute", ["missing", "number", "make"])
def test_an_attribute_that_is_no_app_is_refused(module, attribute):
    module.number = 3
    module.make = lambda settings: 3
    with pytest.raises(SettingsError) as caught:
        load_app(f"{module.__name__}:{attribute}")
    assert caught.value.setting == "target"


@pytest.mark.parametrize("target", ["no_such_package_anywhere", "no.such.package", "..", ""])
def test_a_name_of_nothing_is_refused(target):
    with pytest.raises(SettingsError) as caught:
        load_app(target)
    assert caught.value.setting == "target"


def test_an_unknown_id_is_refused_with_a_suggestion():
    with pytest.raises(SettingsError, match="CartPole"):
        load_app("CartPoole-v1")


def test_an_id_that_only_its_package_registers_is_refused_with_the_way_to_name_it():
    with pytest.raises(SettingsError, match='"package:nowhere/Maze-v0"'):
        load_app("nowhere/Maze-v0")


def test_keyword_arguments_are_for_gymnasium_ids():
    with pytest.raises(SettingsError) as caught:
        load_app("openenv_gym_envs.echo", env_kwargs={"a": 1})
    assert caught.value.setting == "env_kwargs"
