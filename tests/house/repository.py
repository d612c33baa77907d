"""What the house tests know about the tree: where the packages are, which files belong to them, how to read one.

Not a test, and nothing of the product is imported here: files are read, never run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PACKAGES = {
    "openenv_gym": ROOT / "openenv_gym",
    "openenv_gym_server": ROOT / "server" / "openenv_gym_server",
    "openenv_gym_envs": ROOT / "envs" / "openenv_gym_envs",
    "openenv_gym_wrappers": ROOT / "wrappers" / "openenv_gym_wrappers",
}
"""The folder of each import package."""

TESTS = ROOT / "tests"
PROGRAMS = (ROOT / "benchmarks", ROOT / "examples")
"""Folders of code that is run from a checkout and not installed."""


def files_under(folders: Iterable[Path], pattern: str = "*") -> Iterator[Path]:
    """Every file below the folders whose name fits the pattern, caches left out, in a stable order."""
    for folder in folders:
        for path in sorted(folder.rglob(pattern)):
            if path.is_file() and not {"__pycache__", "results"}.intersection(path.parts):
                yield path


def package_files() -> list[Path]:
    """Every module of the four packages."""
    return list(files_under(PACKAGES.values(), "*.py"))


def all_python_files() -> list[Path]:
    """Every module of the packages, the programs and the tests."""
    return list(files_under((*PACKAGES.values(), *PROGRAMS, TESTS), "*.py"))


def relative(path: Path) -> str:
    """The path as a person names it, from the root, with forward slashes."""
    return path.relative_to(ROOT).as_posix()


def module_name(path: Path) -> str:
    """The dotted name under which a file of a package or a program is imported."""
    for name, folder in PACKAGES.items():
        if path.is_relative_to(folder):
            parts = [name, *path.relative_to(folder).with_suffix("").parts]
            break
    else:
        parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(part for part in parts if part != "__init__")


@cache
def parse(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def declared_names(tree: ast.Module) -> list[str] | None:
    """The names in the module's ``__all__``, or None where it declares none."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return [str(name) for name in ast.literal_eval(value)]
            case ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value):
                return [str(name) for name in ast.literal_eval(value)]
    return None
