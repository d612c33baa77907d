"""What the documents and docstrings say about the tree is so."""

from __future__ import annotations

import doctest
import importlib
import re
import tomllib
from pathlib import Path

import pytest

from openenv_gym import __version__
from tests.house.repository import PACKAGES, ROOT, module_name, package_files, relative
from tests.trainers import TRAINERS

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAMED_FILE = re.compile(r"`((?:openenv_gym|server|envs|wrappers|tests|docs|examples|benchmarks)/[\w./-]*)`")
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")
SNIPPETS = [
    pytest.param(snippet, id=f"{path.name}-{number}")
    for path in (ROOT / "docs").rglob("*.md")
    for number, snippet in enumerate(
        re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    )
]
PROMISE = re.compile(r"print\(.*\)  # (.*)$", flags=re.MULTILINE)
MODULES_WITH_EXAMPLES = [module_name(path) for path in package_files() if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_every_file_that_a_document_names_exists(document: Path) -> None:
    names = NAMED_FILE.findall(document.read_text(encoding="utf-8"))
    assert [name for name in names if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_every_link_inside_the_tree_leads_somewhere(document: Path) -> None:
    links = LINK.findall(document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_every_snippet_in_the_documents_prints_what_its_comments_promise(
    snippet: str, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(snippet, "snippet", "exec"), {})
    assert capsys.readouterr().out.splitlines() == PROMISE.findall(snippet)


@pytest.mark.parametrize("module", [each for each in MODULES_WITH_EXAMPLES if TRAINERS or each != "openenv_gym.sb3"])
def test_every_example_in_a_docstring_runs_as_shown(module: str) -> None:
    loaded = importlib.import_module(module)
    outcome = doctest.testmod(loaded, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert outcome.failed == 0, "doctest's report is in the captured output"


def test_the_version_is_the_same_wherever_it_is_written() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [project["version"], *citation] == [__version__, __version__]


def test_the_document_of_the_architecture_shows_every_package() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert [name for name in PACKAGES if f"`{name}`" not in text] == []
