"""The command line as a whole: help, version, errors."""

import sys

import pytest
from typer.testing import CliRunner

import openenv_gym
from openenv_gym import cli

runner = CliRunner()


def test_without_arguments_it_explains_itself():
    result = runner.invoke(cli.app, [])
    assert {"serve", "inspect"} <= set(result.output.split())


def test_the_version_is_the_packages():
    assert runner.invoke(cli.app, ["--version"]).output.strip() == openenv_gym.__version__


def test_an_error_is_one_line_and_status_1(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["openenv-gym", "serve", "NoSuchThing-v7"])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 1
    assert capsys.readouterr().err.startswith("openenv-gym: ")
