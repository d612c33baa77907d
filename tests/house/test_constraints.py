"""The pinned set is complete, and says nothing about where a package comes from."""

from __future__ import annotations

import re
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.house.repository import ROOT

PIN = re.compile(r'^[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+(?:; python_version (?:<|>=) "3\.\d+")?$')


def test_every_line_pins_one_release_by_name_alone() -> None:
    assert [line for line in pins() if not PIN.match(line)] == []


def test_every_requirement_of_the_project_is_pinned_within_its_range() -> None:
    pinned = {canonicalize_name(pin.name): pin for pin in map(Requirement, pins())}
    missing = [str(wanted) for wanted in requirements() if canonicalize_name(wanted.name) not in pinned]
    assert missing == []
    outside = [str(wanted) for wanted in requirements() if not allows(wanted, pinned[canonicalize_name(wanted.name)])]
    assert outside == []


def pins() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def requirements() -> list[Requirement]:
    """What the project and its extras ask for, itself and what another system alone needs left out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for group in project["optional-dependencies"].values() for line in group]
    wanted = map(Requirement, (*project["dependencies"], *extras))
    return [each for each in wanted if each.name != project["name"] and (each.marker is None or each.marker.evaluate())]


def allows(wanted: Requirement, pin: Requirement) -> bool:
    (release,) = pin.specifier
    return wanted.specifier.contains(release.version, prereleases=True)
