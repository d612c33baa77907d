"""The command line ``openenv-gym``: one file a command, put together here."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import openenv_gym
from openenv_gym.cli.inspect import inspect
from openenv_gym.cli.mcp import mcp
from openenv_gym.cli.serve import serve
from openenv_gym.errors import OpenEnvGymError

__all__ = ["app", "main"]

app = typer.Typer(
    name="openenv-gym",
    help="OpenEnv servers as Gymnasium environments, and Gymnasium environments as OpenEnv services.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
app.command()(serve)
app.command()(inspect)
app.command()(mcp)


def _version(value: bool) -> None:
    if value:
        typer.echo(openenv_gym.__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of every command."""


def main() -> None:
    """Run the command line; an error of this project's is one line on standard error and exit status 1."""
    try:
        app()
    except OpenEnvGymError as error:
        typer.echo(f"openenv-gym: {error}", err=True)
        sys.exit(1)
