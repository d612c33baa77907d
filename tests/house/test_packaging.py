"""The built distribution holds what it should and nothing else, and works where nothing of the checkout is near."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.house.repository import PACKAGES, ROOT, files_under

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]

DATA_FILES = {
    "openenv_gym/py.typed",
    "openenv_gym_server/py.typed",
    "openenv_gym_envs/py.typed",
    "openenv_gym_envs/blackjack/openenv.yaml",
    "openenv_gym_envs/echo/openenv.yaml",
    "openenv_gym_envs/gym/openenv.yaml",
    "openenv_gym_wrappers/py.typed",
}
"""Every file of the wheel that is not a module: hatchling leaves git-ignored files out without a word."""

SDIST_ROOT = {
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "PKG-INFO",
    "README.md",
    "SECURITY.md",
    "benchmarks",
    "constraints.txt",
    "docs",
    "envs",
    "examples",
    "openenv_gym",
    "pyproject.toml",
    "server",
    "tests",
    "wrappers",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT))
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` folder of a fresh environment that holds the wheel and its dependencies alone."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(str(python), "-m", "pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt"), str(wheel))
    return python.parent


def test_the_wheel_holds_every_module_of_the_packages(wheel: Path) -> None:
    expected = {
        f"{name}/{path.relative_to(folder).as_posix()}"
        for name, folder in PACKAGES.items()
        for path in files_under([folder], "*.py")
    }
    assert {name for name in content(wheel) if name.endswith(".py")} == expected


def test_the_wheel_holds_the_listed_data_files_and_no_other(wheel: Path) -> None:
    assert {name for name in content(wheel) if not name.endswith(".py") and ".dist-info/" not in name} == DATA_FILES


def test_the_wheel_holds_the_licence_and_the_command(wheel: Path) -> None:
    names = {name.split(".dist-info/")[1] for name in content(wheel) if ".dist-info/" in name}
    assert {"licenses/LICENSE", "entry_points.txt", "METADATA"} <= names


def test_the_source_distribution_holds_the_project_and_no_traces_of_work(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = [Path(name).relative_to(Path(name).parts[0]) for name in archive.getnames()]
    assert {name.parts[0] for name in names if name.parts} - {".gitignore"} == SDIST_ROOT
    assert [str(name) for name in names if name.suffix == ".pyc" or "__pycache__" in name.parts] == []


def test_the_installed_packages_import_and_know_their_types(installed: Path) -> None:
    checks = ["import importlib.resources as resources"]
    for name in PACKAGES:
        checks.append(f"import {name}; assert 'site-packages' in {name}.__file__")
        checks.append(f"assert resources.files('{name}').joinpath('py.typed').is_file()")
    run(str(installed / "python"), "-W", "error", "-c", "\n".join(checks))


def test_no_plain_name_lands_beside_the_packages(installed: Path) -> None:
    script = "import importlib.util as u; print([n for n in ('server', 'envs', 'wrappers', 'tests') if u.find_spec(n)])"
    assert run(str(installed / "python"), "-I", "-c", script).strip() == "[]"


def test_the_installed_command_explains_itself(installed: Path) -> None:
    text = run(str(installed / "openenv-gym"), "--help")
    assert "serve" in text
    assert "inspect" in text


def test_the_installed_dependencies_agree(installed: Path) -> None:
    assert "No broken requirements found" in run(str(installed / "python"), "-m", "pip", "check")


def test_an_installed_environment_is_made_and_stepped(installed: Path) -> None:
    script = (
        "import gymnasium as gym, openenv_gym\n"
        "env = gym.make('openenv/echo-v0')\n"
        "env.reset(seed=0)\n"
        "print(env.step('Hello, World!')[0])\n"
        "env.close()\n"
    )
    assert run(str(installed / "python"), "-c", script).strip() == "Hello, World!"


def content(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def run(*command: str) -> str:
    """What the command printed; it runs away from the checkout, so that only installed files can be found."""
    ours = {"PYTHONPATH", "COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START"}
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    place = Path(command[0]).parent
    finished = subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, timeout=500, check=False
    )
    assert finished.returncode == 0, f"{' '.join(command)}\n{finished.stdout}\n{finished.stderr}"
    return finished.stdout
