"""Every file is where a reader looks for it, says what it is for, and has its tests at the mirrored place."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.house.repository import (
    PACKAGES,
    PROGRAMS,
    ROOT,
    TESTS,
    all_python_files,
    files_under,
    package_files,
    parse,
    relative,
)

VAGUE_NAMES = {"utils.py", "util.py", "helpers.py", "helper.py", "common.py", "misc.py"}
MIRRORS = {name: TESTS / name for name in PACKAGES}
MACHINE_PATH = re.compile(r"(?<![\w.~:-])/(?:home|root|tmp|Users)/")  # written so that no folder of a URL fits
DOCUMENTS = ("*.md", "*.toml", "*.cff", "*.txt", "Makefile", ".ci/*", "docs/**/*")


@pytest.mark.parametrize("folder", ["server", "envs", "wrappers"])
def test_the_folder_of_a_package_is_not_itself_a_package(folder: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_says_that_it_is_typed(package: str) -> None:
    assert (PACKAGES[package] / "py.typed").read_text(encoding="utf-8") == ""


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {path.parent for path in (*package_files(), *files_under([TESTS], "*.py"))}
    assert sorted(relative(folder) for folder in folders if not (folder / "__init__.py").exists()) == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [relative(path) for path in all_python_files() if path.name in VAGUE_NAMES] == []


def test_every_module_begins_with_a_docstring() -> None:
    silent = [path for path in all_python_files() if parse(path).body and not ast.get_docstring(parse(path))]
    assert [relative(path) for path in silent] == []


def test_every_module_of_a_package_has_its_tests_at_the_mirrored_place() -> None:
    wanted = {relative(path): mirror_of(path) for path in package_files() if not only_re_exports(path)}
    assert {source: relative(test) for source, test in wanted.items() if not test.exists()} == {}


def test_every_mirrored_test_has_a_source() -> None:
    stems = {test.with_suffix("") for test in map(mirror_of, package_files())}
    tests = files_under(MIRRORS.values(), "test_*.py")
    assert [relative(test) for test in tests if not belongs_to_one_of(test, stems)] == []


def test_a_private_module_and_a_dunder_module_mirror_under_their_plain_names() -> None:
    package, tests = PACKAGES["openenv_gym"], MIRRORS["openenv_gym"]
    assert mirror_of(package / "spaces" / "values.py") == tests / "spaces" / "test_values.py"
    assert mirror_of(package / "__main__.py") == tests / "test_main.py"
    assert mirror_of(package / "providers" / "_ready.py") == tests / "providers" / "test_ready.py"


def test_no_path_of_one_machine_is_written_down() -> None:
    sources = files_under((*PACKAGES.values(), *PROGRAMS))
    documents = (path for pattern in DOCUMENTS for path in ROOT.glob(pattern) if path.is_file())
    texts = {relative(path): path.read_text(encoding="utf-8", errors="replace") for path in (*sources, *documents)}
    assert {name: MACHINE_PATH.findall(text) for name, text in texts.items() if MACHINE_PATH.search(text)} == {}


@pytest.mark.parametrize(
    ("text", "found"), [("see /home/" + "me/x", True), ("https://host/home/", False), ("a /tmp" + "/b", True)]
)
def test_a_path_of_one_machine_is_told_from_a_url(text: str, found: bool) -> None:
    assert bool(MACHINE_PATH.search(text)) is found


def mirror_of(source: Path) -> Path:
    """Where the tests of a module are; ``__init__``, ``__main__`` and ``_name`` lose their underscores."""
    for name, folder in PACKAGES.items():
        if source.is_relative_to(folder):
            place = MIRRORS[name] / source.relative_to(folder)
            return place.with_name(f"test_{place.stem.strip('_')}.py")
    raise AssertionError(f"{source} is in none of {list(PACKAGES)}")


def belongs_to_one_of(test: Path, stems: set[Path]) -> bool:
    """Whether the file tests a module, alone or as one of several: ``test_values.py``, ``test_values_graph.py``."""
    parts = test.stem.split("_")
    return any(test.with_name("_".join(parts[:length])) in stems for length in range(2, len(parts) + 1))


def only_re_exports(path: Path) -> bool:
    """Whether an ``__init__`` defines nothing: docstring, imports, ``__all__``, and names that load late (PEP 562)."""
    return path.name == "__init__.py" and all(passes_on(node) for node in parse(path).body)


def passes_on(node: ast.stmt) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=[]):
            return True
        case ast.FunctionDef(name="__getattr__" | "__dir__"):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name.startswith("_")
    return False
