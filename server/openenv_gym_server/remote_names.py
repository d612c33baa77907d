"""Names of an environment's methods and attributes: which of them a client may use.

Not for using them (``remote_target.py``, ``players.py``).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from openenv_gym.errors import InvalidActionError
from openenv_gym_server.errors import fault, invalid_message
from openenv_gym_server.settings import Names

__all__ = ["UNREACHABLE", "check_name", "check_settable", "missing_attribute", "suggestion"]

UNREACHABLE = frozenset({
    # What a session has messages for, and counts by.
    "reset", "step", "close", "reset_async", "step_async", "close_async", "reset_wait", "step_wait",
    # What reaches any other name, past the check of names.
    "get_wrapper_attr", "set_wrapper_attr", "has_wrapper_attr", "get_attr", "set_attr", "env_method",
    # What is another object with names of its own, or whose mere reading changes the environment.
    "unwrapped", "env", "envs", "legacy_env", "remote_target", "codec", "np_random",
    # What the server takes away from the environment to tell the client.
    "take_notes",
    # What runs any code, or leads past the tools and their names.
    "execute_code", "get_callables", "tool", "tool_caller", "mcp_server", "mcp_client", "mcp_session", "after_tool",
    # What the author lets a call and code use.
    "CODE_LIMITS", "MAX_RESULT_MB",
})  # fmt: skip
"""Names that no client may call or read, whatever the operator allows."""


def check_name(name: str, allowed: Names) -> None:
    """Hold the name of a method or an attribute to what a client may reach.

    Raises:
        InvalidActionError: it is never reachable, or the operator does not allow it.
    """
    if name.startswith("_") or "." in name or name in UNREACHABLE:
        message = (
            f"{name[:100]!r} is never reachable: names with a leading underscore or a dot are not, nor those that "
            "steer the session or reach past the environment's own face"
        )
    elif allowed != "all" and name not in allowed:
        message = (
            f"the server's setting remote_names does not have {name[:100]!r}{suggestion(name, allowed, allowed)}; its "
            f"operator can add it (--allow-remote {name[:100]})"
        )
    else:
        return
    raise invalid_message(fault("not_allowed", ["data", "name"], message, name))


FIXED = frozenset({"action_space", "observation_space", "metadata", "render_mode", "spec", "transform", "rubric"})
"""Names that may be read and not set: what a session has told its client of its environment, and code."""


def check_settable(name: str, allowed: Names) -> None:
    """Hold the name of an attribute that is to be set to what a client may set.

    Raises:
        InvalidActionError: it is never reachable or never set, or the operator does not allow it.
    """
    check_name(name, allowed)
    if name in FIXED:
        message = f"{name!r} can be read and not set: the session has told its client of it"
        raise invalid_message(fault("not_allowed", ["data", "name"], message, name))


def missing_attribute(owner: str, name: str, names: Iterable[str], allowed: Names) -> InvalidActionError:
    """A refusal of a name that nothing has."""
    message = f"{owner} has no attribute {name[:100]!r}{suggestion(name, names, allowed)}"
    return invalid_message(fault("missing_attribute", ["data", "name"], message, name))


def suggestion(name: str, names: Iterable[str], allowed: Names) -> str:
    """The nearest of the names that a client may use, as the end of a message."""
    usable = [each for each in names if not each.startswith("_") and each not in UNREACHABLE]
    near = difflib.get_close_matches(name[:100], [each for each in usable if allowed == "all" or each in allowed])
    return f"; did you mean {' or '.join(near)}?" if near else ""
