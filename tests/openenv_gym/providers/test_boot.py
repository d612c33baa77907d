"""How a server process begins: its program and the import path that it takes over."""

import json
import os
import subprocess
import sys

import pytest

from openenv_gym.errors import ProviderError
from openenv_gym.providers._boot import boot_command, import_path, loaded, loading


def test_the_import_path_means_the_same_directories_elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", "/a"])
    assert import_path() == [os.path.realpath(tmp_path), "/a"]


def test_a_child_imports_by_its_parents_path_and_hands_the_configuration_on(tmp_path):
    (tmp_path / "told.py").write_text("def main(config):\n    print(config['word'])\n")
    config = {"sys_path": [str(tmp_path), *sys.path], "module": "told", "word": "hello"}
    done = subprocess.run(boot_command(), input=json.dumps(config), capture_output=True, text=True, timeout=30)
    assert done.stdout == "hello\n"


def test_a_target_that_starts_a_server_of_itself_while_it_is_loaded_is_refused(monkeypatch):
    child = loading("train:Foo-v0")
    monkeypatch.setattr(os, "environ", child)
    assert loading("CartPole-v1") != child
    with pytest.raises(ProviderError, match="__main__"):
        loading("train:Foo-v0")
    loaded()
    assert loading("train:Foo-v0")
