"""Each environment's ``openenv.yaml`` names an application that exists."""

import importlib
from pathlib import Path

import pytest
import yaml
from fastapi import FastAPI

import openenv_gym_envs

ROOT = Path(openenv_gym_envs.__file__).parent
NAMES = sorted(path.parent.name for path in ROOT.glob("*/openenv.yaml"))


def test_every_environment_has_a_manifest():
    assert sorted(path.parent.name for path in ROOT.glob("*/app.py")) == NAMES
    assert {"echo", "gym"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_manifest_has_openenvs_fields_and_its_app_can_be_imported(name):
    manifest = yaml.safe_load((ROOT / name / "openenv.yaml").read_text(encoding="utf-8"))
    assert manifest["spec_version"] == 1
    assert manifest["name"] == name
    assert (manifest["type"], manifest["runtime"], manifest["port"]) == ("space", "fastapi", 8000)
    module, _, attribute = manifest["app"].partition(":")
    assert isinstance(getattr(importlib.import_module(module), attribute), FastAPI)
