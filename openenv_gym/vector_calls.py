"""Everything that is asked of all environments besides resets and steps: methods, attributes, renderings.

Not for single environments (``env.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from openenv_gym import messages
from openenv_gym.exact import exact_call
from openenv_gym.info import decode_exact, encode_exact
from openenv_gym.vector_rollout import EnvSession, Rollout

__all__ = ["call_each", "get_each", "render_each", "set_each"]


def call_each(rollout: Rollout, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a method returns in each environment."""
    return _of_each(rollout, messages.Call, data=exact_call(name, args, kwargs))


def get_each(rollout: Rollout, name: str) -> tuple[Any, ...]:
    """An attribute of each environment."""
    return _of_each(rollout, messages.GetAttr, data=messages.AttributeSettings(name=name))


def render_each(rollout: Rollout) -> tuple[Any, ...]:
    """The rendering of each environment."""
    return _of_each(rollout, messages.Render)


def set_each(rollout: Rollout, name: str, values: Sequence[Any]) -> None:
    """Set an attribute, to one value an environment.

    Raises:
        ValueError: there are more or fewer values.
    """
    count = sum(session.count for session in rollout.sessions)
    if len(values) != count:
        raise ValueError(f"expected one value for each of the {count} environments, got {len(values)}")
    encoded = [encode_exact(value) for value in values]

    def ask(session: EnvSession) -> None:
        own = encoded[session.first : session.first + session.count]
        session.shell.begin(messages.SetAttr, data=messages.AssignmentSettings(name=name, values=own))

    rollout.ask_each(ask, rollout.step_timeout_s)


def _of_each(rollout: Rollout, kind: type[messages.Message], **fields: Any) -> tuple[Any, ...]:
    found: list[Any] = []
    for reply in rollout.ask_each(lambda session: session.shell.begin(kind, **fields), rollout.step_timeout_s):
        assert isinstance(reply, messages.CallReply | messages.GetAttrReply | messages.RenderReply)
        values = decode_exact(reply.data.value)
        assert isinstance(values, tuple | list)
        found += values
    return tuple(found)
