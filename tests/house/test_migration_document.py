"""The table of ``docs/migration.md`` names every public name of the stock package, and places that exist."""

from __future__ import annotations

import importlib
import re
import warnings

import pytest

from tests.house.repository import ROOT

TEXT = (ROOT / "docs" / "migration.md").read_text(encoding="utf-8")
PACKAGES = [
    "openenv",
    "openenv.core",
    "openenv.core.rubrics",
    "openenv.core.evals",
    "openenv.core.tools",
    "openenv.core.containers.runtime",
    "openenv.core.harness",
]
ROW = re.compile(r"^\| `(\w+)` \| (`[\w.]+`|—) \|(.*)\|$", flags=re.MULTILINE)


def tables(package: str) -> list[tuple[str, str, str]]:
    """Name, place and note of each row under a heading ``| `package` | here | |``, all its tables together."""
    parts = re.split(r"^(?=\| `[\w.]+` \| here \|)", TEXT, flags=re.MULTILINE)
    return [row for part in parts if part.startswith(f"| `{package}` |") for row in ROW.findall(part)]


@pytest.fixture(scope="module")
def stock():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {package: importlib.import_module(package) for package in PACKAGES}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_one_row(stock, package: str) -> None:
    assert sorted(name for name, _, _ in tables(package)) == sorted(stock[package].__all__)


@pytest.mark.parametrize(("name", "place"), [row[:2] for row in ROW.findall(TEXT) if row[1] != "—"])
def test_every_place_exists(name: str, place: str) -> None:
    module, _, attribute = place.strip("`").rpartition(".")
    try:
        importlib.import_module(f"{module}.{attribute}".lstrip("."))
    except ModuleNotFoundError:
        assert hasattr(importlib.import_module(module), attribute), name


def test_a_name_without_a_counterpart_has_a_reason() -> None:
    assert [name for name, place, note in ROW.findall(TEXT) if place == "—" and not note.strip()] == []
