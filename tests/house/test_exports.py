"""What the packages export is written down, can be imported, and changes only on purpose."""

from __future__ import annotations

import difflib
import importlib
import subprocess
import sys

import pytest

from tests.house.public_api import SNAPSHOT, render
from tests.house.repository import PACKAGES, declared_names, module_name, package_files, parse
from tests.trainers import NEEDED, TRAINERS

MODULES = {module_name(path): path for path in package_files()}
PACKAGE_MODULES = [name for name, path in MODULES.items() if path.name == "__init__.py"]
DECLARING_MODULES = [name for name, path in MODULES.items() if declared_names(parse(path)) is not None]


@pytest.mark.parametrize("package", PACKAGE_MODULES)
def test_a_package_declares_its_names_unless_it_is_a_docstring_alone(package: str) -> None:
    tree = parse(MODULES[package])
    inner = package not in PACKAGES
    assert declared_names(tree) is not None or (inner and len(tree.body) == 1)


def test_the_trainers_are_there_where_the_extra_asks_for_them() -> None:
    assert TRAINERS or not NEEDED


@pytest.mark.parametrize("module", [name for name in DECLARING_MODULES if TRAINERS or name != "openenv_gym.sb3"])
def test_every_declared_name_exists_and_is_declared_once(module: str) -> None:
    loaded = importlib.import_module(module)
    assert [name for name in loaded.__all__ if not hasattr(loaded, name)] == []
    assert sorted(loaded.__all__) == sorted(set(loaded.__all__))


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_lists_every_declared_name(package: str) -> None:
    module = importlib.import_module(package)
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_name_is_an_attribute_error_that_names_both(package: str) -> None:
    module = importlib.import_module(package)
    with pytest.raises(AttributeError, match=rf"{package}.*no_such_name"):
        module.no_such_name  # noqa: B018


@pytest.mark.parametrize("package", PACKAGES)
def test_each_name_loads_first_in_a_fresh_interpreter(package: str) -> None:
    script = f"import {package} as package\nfor name in package.__all__:\n    getattr(package, name)\n"
    command = [sys.executable, "-W", "error", "-c", script]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")


def test_the_public_api_is_the_stored_one() -> None:
    stored, current = SNAPSHOT.read_text(encoding="utf-8").splitlines(), render().splitlines()
    changes = "\n".join(difflib.unified_diff(stored, current, "stored", "current", lineterm="", n=0))
    assert changes == "", "the public API changed; if it is meant: python -m tests.house.public_api --write"


def test_the_rendered_api_shows_signatures_and_hides_private_names() -> None:
    text = render()
    assert "openenv_gym.errors\n" in text
    assert "        def __init__(self, message: str='', **attributes: Any) -> None\n" in text
    assert "_excerpt" not in text
