"""``openenv-gym mcp``: a Model Context Protocol server on standard streams in front of a server far away.

For programs on a desktop that start the servers of their tools themselves. Nothing but messages of the protocol is
written to standard output. Not for serving an environment (``serve.py``), whose ``/mcp`` clients reach by HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any

import typer

from openenv_gym.cli.inspect import in_words_of_the_command, settings_of
from openenv_gym.errors import SettingsError, UnreachableError
from openenv_gym.modes import read_mode
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.http import fetch_json

__all__ = ["mcp"]


def mcp(
    url: Annotated[str, typer.Argument(help="The server's address, e.g. http://host:8000.")],
    mode: Annotated[
        str,
        typer.Option(
            envvar="OPENENV_CLIENT_MODE",
            help="production: tools at /mcp; simulation: tools by steps, with rewards in the structured results.",
        ),
    ] = "production",
    header: Annotated[list[str] | None, typer.Option(help="NAME=VALUE sent with every request.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for a connection.")] = 10.0,
) -> None:
    """Give a remote environment's tools to an MCP client, over standard input and output."""
    production = read_mode(mode) == "production"
    try:
        # Only this command needs the extra.
        from openenv_gym.remote_tools import open_remote_tools  # noqa: PLC0415
        from openenv_gym.tool_server import tool_server  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "mcp":
            raise
        raise SettingsError(
            "openenv-gym mcp needs the official SDK: pip install openenv-gym[mcp]", setting="mcp"
        ) from error
    if url.rstrip("/").endswith("/mcp"):
        raise SettingsError(f"expected the server's own address, got {url}: leave out /mcp", setting="url")
    settings = settings_of(timeout, header)
    name = _name_of(url, settings)
    asyncio.run(_serve(functools.partial(tool_server, name), open_remote_tools(url, settings, production=production)))


def _name_of(url: str, settings: ConnectionSettings) -> str:
    """The environment's own name, which is also the proof that there is a server.

    Raises:
        UnreachableError: there is none.
    """
    try:
        metadata = fetch_json(url, "/metadata", settings)
    except UnreachableError as error:
        raise in_words_of_the_command(error) from error
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else "openenv"


async def _serve(server_of: Callable[..., Any], opening: AbstractAsyncContextManager[Any]) -> None:
    """Serve until the input ends, or a signal comes; the remote session is closed either way."""
    loop, signals = asyncio.get_running_loop(), asyncio.Queue[int]()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # on Windows
            loop.add_signal_handler(number, signals.put_nowait, int(number))
    async with opening as tools:
        serving = asyncio.create_task(_converse(server_of(lambda: contextlib.nullcontext(tools))))
        told = asyncio.create_task(signals.get())
        await asyncio.wait([serving, told], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            told.cancel()
            serving.result()
            return
    # Nothing ends the thread that waits for the next line, and Python would wait for it.
    os._exit(128 + told.result())


async def _converse(server: Any) -> None:
    from openenv_gym.cli.standard_streams import standard_streams  # noqa: PLC0415

    async with standard_streams(sys.stdin.buffer, sys.stdout.buffer) as (received, sent):
        await server.run(received, sent, server.create_initialization_options())
