"""The tree drawn in the docstring of ``openenv_gym.errors`` is the tree of the classes."""

from __future__ import annotations

import re
from typing import NamedTuple

from openenv_gym import errors
from openenv_gym.errors import OpenEnvGymError

BRANCH = re.compile(r"^(?P<indent>[ │]*)[├└]── (?P<name>\w+)(?: \((?P<builtin>\w+)\))?(?P<rest>.*)$")
INDENT = 4


class Drawn(NamedTuple):
    """One line of the drawing."""

    parent: str
    builtin: str | None
    attributes: frozenset[str]


def test_the_drawing_shows_every_class_below_its_parent() -> None:
    parents = {kind.__name__: kind.__bases__[0].__name__ for kind in classes()}
    assert {name: drawn.parent for name, drawn in drawing().items()} == parents


def test_the_drawing_names_the_builtin_that_each_class_adds() -> None:
    added = {kind.__name__: next((base.__name__ for base in kind.__bases__[1:]), None) for kind in classes()}
    assert {name: drawn.builtin for name, drawn in drawing().items()} == added


def test_the_drawing_names_the_attributes_that_each_class_adds() -> None:
    added = {kind.__name__: frozenset(kind.attributes) - set(parent_of(kind).attributes) for kind in classes()}
    assert {name: drawn.attributes for name, drawn in drawing().items()} == added


def test_every_class_of_the_tree_is_exported() -> None:
    names = {"OpenEnvGymError", *(kind.__name__ for kind in classes())}
    assert names <= set(errors.__all__)


def drawing() -> dict[str, Drawn]:
    """The drawn classes by name, the root left out."""
    ancestors: list[str] = ["OpenEnvGymError"]
    found: dict[str, Drawn] = {}
    for line in (errors.__doc__ or "").splitlines():
        branch = BRANCH.match(line.removeprefix("    "))
        if branch is None:
            continue
        depth = len(branch["indent"]) // INDENT
        ancestors[depth + 1 :] = [branch["name"]]
        found[branch["name"]] = Drawn(
            parent=ancestors[depth],
            builtin=branch["builtin"],
            attributes=frozenset(re.findall(r"(?<= )\.(\w+)", branch["rest"])),
        )
    return found


def classes() -> list[type[OpenEnvGymError]]:
    """Every class of the tree but its root."""
    return classes_below(OpenEnvGymError)


def classes_below(kind: type[OpenEnvGymError]) -> list[type[OpenEnvGymError]]:
    """Every subclass that the module itself defines; what others derive is theirs."""
    own = [child for child in kind.__subclasses__() if child.__module__ == errors.__name__]
    return [*own, *(grandchild for child in own for grandchild in classes_below(child))]


def parent_of(kind: type[OpenEnvGymError]) -> type[OpenEnvGymError]:
    parent = kind.__bases__[0]
    assert issubclass(parent, OpenEnvGymError)
    return parent
