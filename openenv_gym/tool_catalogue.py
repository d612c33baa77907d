"""The tools of an environment as a list that is the same in both modes, and how a Gymnasium face asks for it.

Not for the Spaces of their calls (``tool_spaces.py``, ``openenv_gym_wrappers``), nor for clients without Spaces
(``mcp_client.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openenv_gym import messages
from openenv_gym.errors import ProtocolError, ServerError, SettingsError
from openenv_gym.json_text import JSON, JSONObject, shown
from openenv_gym.session import SessionState

if TYPE_CHECKING:
    from openenv_gym.shell import Shell

__all__ = ["listed", "read_tools"]


def listed(shell: Shell) -> list[dict[str, Any]]:
    """The tools of a simulation session's environment, asked for by a step that is no step of the episode.

    OpenEnv lists tools after a reset alone: where no episode has begun, one is begun for it, and a reset is needed
    again before the first step.

    Raises:
        SettingsError: the environment has no tools.
        SessionLostError, RequestTimeoutError: as ``Shell.request``.
    """
    unbegun = shell.session.state is SessionState.OPEN
    if unbegun:
        shell.request(messages.Reset, shell.settings.reset_timeout_s, data={})
    try:
        reply = shell.request(messages.Step, shell.settings.step_timeout_s, data={"type": "list_tools"})
    except ServerError as error:
        raise _no_tools(shell.base_url, str(error)) from error
    finally:
        if unbegun:
            shell.forget_episode()
    assert isinstance(reply, messages.ObservationReply)
    tools = reply.data.observation.get("tools")
    if not isinstance(tools, list):
        raise _no_tools(shell.base_url, f"it took the list_tools action for another: {str(reply.data)[:200]}")
    return read_tools(tools, shell.base_url)


def _no_tools(base_url: str, why: str) -> SettingsError:
    return SettingsError(f"expected {base_url} to serve an environment with tools: {why}", setting="mode")


def read_tools(tools: JSON | list[JSONObject], base_url: str) -> list[dict[str, Any]]:
    """Each tool as ``{"name", "description", "input_schema"}``, whatever the peer calls these fields.

    Args:
        tools: the list as it was on the wire; OpenEnv says ``input_schema`` in a step's answer and ``inputSchema`` in
            that of ``tools/list``.
        base_url: whose they are, for the error.

    Raises:
        ProtocolError: it is no list of tools.

    Example:
        >>> read_tools([{"name": "look", "inputSchema": {"type": "object"}}], "http://host")
        [{'name': 'look', 'description': '', 'input_schema': {'type': 'object'}}]
    """
    return [_read(tool, base_url) for tool in (tools if isinstance(tools, list) else [tools])]


def _is_shallow(value: JSON) -> bool:
    """Whether a value can be copied and shown like any other: deep ones exhaust Python's stack."""
    level: list[JSON] = [value]
    for _ in range(_MAX_LEVELS):
        below: list[JSON] = []
        for item in level:
            below += item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        if not below:
            return True
        level = below
    return False


_MAX_LEVELS = 192
"""Levels of JSON that a tool's input schema may have; each level of a schema has up to three."""


def _read(tool: JSON, base_url: str) -> dict[str, Any]:
    name = tool.get("name") if isinstance(tool, dict) else None
    schema = tool.get("input_schema", tool.get("inputSchema")) if isinstance(tool, dict) else None
    if not isinstance(name, str) or not isinstance(schema, dict | None):
        raise ProtocolError(
            f"expected {base_url} to list tools with a name and an input schema, got {shown(tool)}",
            received=shown(tool),
        )
    if not _is_shallow(schema):
        raise ProtocolError(
            f"expected {base_url} to list tools whose input schemas nest at most {_MAX_LEVELS} deep, that of {name!r} "
            "does not; ask its author",
            received=name[:200],
        )
    assert isinstance(tool, dict)
    return {"name": name, "description": str(tool.get("description") or ""), "input_schema": schema or {}}
