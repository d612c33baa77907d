"""What a server's error frame says to the caller: which request it refused, where the faults are, what to do.

Not for what a failure means to the session (``session.py``, which alone uses this). No I/O here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from openenv_gym import messages
from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError

__all__ = ["execution_error", "name_environments", "name_of", "refusal", "tag_of", "with_advice"]

Kind: TypeAlias = "type[messages.Message]"

_REFUSED = {
    messages.Open: "the opening of the session",
    messages.Reset: "the reset",
    messages.Step: "the action",
    messages.Call: "the call",
    messages.GetAttr: "the reading of the attribute",
    messages.SetAttr: "the setting of the attribute",
    messages.VectorReset: "the reset",
    messages.VectorStep: "the actions",
}
"""What a server refuses where it refuses a message, as its sender thinks of it; others by their names."""


def tag_of(kind: type[messages.Message | messages.PackedReply]) -> str:
    """The ``type`` that a message has on the wire; a binary frame has none."""
    return str(kind.__struct_config__.tag or "binary")


def name_of(kind: Kind) -> str:
    """What a caller knows a request by: the method that makes it."""
    return tag_of(kind).removeprefix("x-").removeprefix("vector_")


def execution_error(
    request: Kind, text: str, facts: Mapping[str, Any], env_index: int | None
) -> EnvironmentExecutionError:
    """The environment's failure, with its type and its traceback as far as the server tells them."""
    data = facts["data"]
    kind, traceback = data.get("exception_type"), data.get("traceback")
    what = f"{kind}: {text}" if isinstance(kind, str) else text
    which = "the environment" if env_index is None else f"environment {env_index}"
    error = EnvironmentExecutionError(f"{which} failed in {name_of(request)}: {what}", env_index=env_index, **facts)
    if isinstance(traceback, str):
        error.add_note(f"In the server's process:\n{traceback}")
    return error


def with_advice(text: str) -> str:
    """A full server's text, with what to do about it where the server has not said that itself."""
    if "max_concurrent_envs" in text:
        return text
    return f"{text.rstrip('. ')}; raise the server's max_concurrent_envs, or close other sessions"


def refusal(kind: Kind, text: str, errors: list[dict[str, Any]], facts: Mapping[str, Any]) -> InvalidActionError:
    """The error of a request that the server refused.

    Args:
        kind: the request's type.
        text: the server's message.
        errors: each fault as the server lists it.
        facts: ``code`` and ``data`` of the error frame.
    """
    return InvalidActionError(_explain(kind, text, errors), errors=errors, **facts)


def name_environments(error: InvalidActionError, env_ids: Sequence[int]) -> InvalidActionError:
    """The refusal of several actions, of which each is named by its environment.

    Args:
        error: as ``refusal`` gives it.
        env_ids: whose each action was.
    """

    def named(found: re.Match[str]) -> str:
        place = int(found[1])
        return f"environment {env_ids[place]}" if place < len(env_ids) else found[0]

    error.args = (_ACTION.sub(named, error.message),)
    return error


_ACTION = re.compile(r"(?<=: |; )action (\d+)(?=[:,])")
_MAX_TOLD = 10
"""Faults that are told one by one; ``errors`` has all of them."""


def _explain(kind: Kind, text: str, errors: list[dict[str, Any]]) -> str:
    """Why the server refused a request: each fault with its path, once, and what else the server said."""
    faults = [_told(error) for error in errors[:_MAX_TOLD]]
    if len(errors) > _MAX_TOLD:
        faults.append(f"and {len(errors) - _MAX_TOLD} more")
    said = "; ".join(faults)
    # "Invalid message" is a mere heading; behind it stands the first fault, if anything.
    if not errors or (not text.startswith("Invalid message") and all(str(e.get("msg")) in text for e in errors)):
        said = text
    elif not text.startswith("Invalid message"):
        said = f"{text}: {said}"
    return f"the server refused {_REFUSED.get(kind, name_of(kind))}: {said}"


def _told(error: Mapping[str, Any]) -> str:
    """One fault: where, what, and what came there."""
    loc = error.get("loc")
    message = str(error.get("msg", "invalid"))
    # A fault of the type is one of the whole message, of which the caller has not written the type.
    place = ".".join(map(str, loc)) if isinstance(loc, list) and loc != ["type"] else ""
    if isinstance(loc, list) and loc[:2] == ["data", "actions"] and loc[2:]:
        # One of several: which, and then where in it, unless the message says that itself.
        inner = "" if " at $" in message else "".join(f", {part}" for part in loc[3:])
        place = f"action {loc[2]}{inner}"
    # Where something is missing, the input is all the rest; and some say themselves what they got.
    said_already = error.get("type") == "missing" or "got " in message or repr(error.get("input")) in message
    if "input" in error and not said_already:
        message += f" (got {msgspec.json.encode(error['input'])[:200].decode('utf-8', 'replace')})"
    return f"{place}: {message}" if place else message
