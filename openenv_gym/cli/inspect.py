"""``openenv-gym inspect``: what a running server offers, as a table or as JSON. Not for changing anything there."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from openenv_gym.errors import OpenEnvGymError, SettingsError, UnreachableError
from openenv_gym.interface import Interface, SpaceOverrides, fetch_documents
from openenv_gym.json_text import JSON
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.http import fetch_json

__all__ = ["describe", "in_words_of_the_command", "inspect", "settings_of"]


def inspect(
    url: Annotated[str, typer.Argument(help="The server's address, e.g. http://host:8000.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
    header: Annotated[list[str] | None, typer.Option(help="NAME=VALUE sent with every request.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for an answer.")] = 10.0,
) -> None:
    """Show a server's Spaces, schema, capacity and modes."""
    settings = settings_of(timeout, header)
    try:
        description = describe(url, settings)
    except UnreachableError as error:
        raise in_words_of_the_command(error) from error
    if as_json:
        typer.echo(json.dumps(description, indent=2, ensure_ascii=False))
    else:
        _print_table(description)


def settings_of(timeout: float, headers: list[str] | None) -> ConnectionSettings:
    """How to reach a server, by the options of a command.

    Raises:
        SettingsError: one of them cannot be.
    """
    return ConnectionSettings(connect_timeout_s=timeout, headers=dict(_header(entry) for entry in headers or ()))


def in_words_of_the_command(error: UnreachableError) -> UnreachableError:
    """The error with the option in place of the setting, where it is headers that are wanted."""
    if error.status not in {401, 403, 404}:
        return error
    advice = 'the setting headers is the option --header here: --header "Authorization=Bearer <token>"'
    return UnreachableError(f"{error}; {advice}", url=error.url, status=error.status, body=error.body)


def describe(url: str, settings: ConnectionSettings) -> dict[str, Any]:
    """What the server says of itself, with the Spaces its schema stands for.

    Raises:
        UnreachableError: no OpenEnv server answered there.
    """
    schema, metadata = fetch_documents(url, settings)
    paths = _optional(url, "/openapi.json", settings).get("paths")
    readiness = _optional(url, "/ready", settings)
    return {
        "url": url,
        "name": metadata.get("name"),
        "version": metadata.get("version"),
        "description": metadata.get("description"),
        "mode": "simulation" if isinstance(paths, dict) and "/reset" in paths else "production",
        "capacity": readiness.get("capacity"),
        "status": readiness.get("status"),
        "gymnasium": metadata.get("gymnasium"),
        "spaces": _spaces(schema, metadata),
        "schema": schema,
    }


def _optional(url: str, path: str, settings: ConnectionSettings) -> dict[str, JSON]:
    """A document that not every server has; a server that is not ready says so with a status, and is no error here."""
    try:
        document = fetch_json(url, path, settings)
    except UnreachableError as error:
        if error.status is None:
            raise
        return {}
    return document if isinstance(document, dict) else {}


def _spaces(schema: dict[str, JSON], metadata: dict[str, JSON]) -> dict[str, str]:
    """The Spaces as text, or why there are none."""
    try:
        interface = Interface(schema, metadata, SpaceOverrides())
    except OpenEnvGymError as error:
        return {"error": str(error)}
    return {"action": str(interface.action_space), "observation": str(interface.observation_space)}


def _print_table(description: dict[str, Any]) -> None:
    # Here and not at the top: only the table needs rich.
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(title=str(description["url"]), show_header=False, title_justify="left")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _rows(description):
        table.add_row(name, Text(value))
    Console().print(table)


def _rows(description: dict[str, Any]) -> list[tuple[str, str]]:
    capacity = description["capacity"]
    rows = [
        ("environment", f"{description['name']} {description['version'] or ''}".strip()),
        ("description", str(description["description"] or "")),
        ("mode", description["mode"]),
        ("status", str(description["status"] or "not published")),
        (
            "capacity",
            f"{capacity.get('active_sessions')} of {capacity.get('max_sessions') or 'unlimited'} sessions in use"
            if isinstance(capacity, dict)
            else "not published",
        ),
    ]
    rows += [(f"{name} space", text) for name, text in description["spaces"].items()]
    rows += [(name, str(value)) for name, value in (description["gymnasium"] or {}).items() if value is not None]
    for part in ("action", "observation", "state"):
        fields = (description["schema"].get(part) or {}).get("properties") or {}
        rows.append((f"{part} fields", ", ".join(fields) or "none"))
    return rows


def _header(entry: str) -> tuple[str, str]:
    name, equals, value = entry.partition("=")
    if not equals:
        raise SettingsError("expected --header NAME=VALUE", setting="headers")
    return name, value
