"""``openenv/echo-v0``: the echo environment as a ``gymnasium.Env`` of text, and many of them as a ``VectorEnv``.

One text is one call of ``echo_message``, on this project's server and on OpenEnv's own. Not for its other tool, which
``EchoEnv`` calls (``client.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from openenv_gym.env import RemoteEnv
from openenv_gym.errors import SettingsError, ToolCallError, ValueMappingError
from openenv_gym.interface import Interface, SpaceOverrides
from openenv_gym.spaces import UnicodeText, codec_for
from openenv_gym.tools import ToolErrorType
from openenv_gym.vector import RemoteVectorEnv
from openenv_gym_envs.echo.client import greeting_in

__all__ = ["RemoteEcho", "RemoteEchoVector"]

TARGET = "openenv_gym_envs.echo"
TOOL = "echo_message"

_codec = codec_for(UnicodeText())


class RemoteEcho(RemoteEnv):
    """An echo server, stepped as a Gymnasium environment: what is said comes back.

    Actions and observations are texts; the first observation is the greeting. Without ``base_url`` and ``provider``
    it starts a server of its own on this machine.

    Args:
        base_url: the server's address.
        **settings: whatever else ``RemoteEnv`` takes.

    Raises:
        SettingsError: the server is no echo server: at the making, or at the first reset or step that shows it.
        ToolCallError: the call gave no result.

    Example:
        >>> import gymnasium, openenv_gym
        >>> env = gymnasium.make("openenv/echo-v0")
        >>> env.reset(seed=0)[0]
        'Echo environment ready!'
        >>> env.step("Hello, World!")[0]
        'Hello, World!'
        >>> env.close()
    """

    def __init__(self, base_url: str | None = None, **settings: Any) -> None:
        super().__init__(base_url, **_of_echo(settings, base_url))

    def _describe(self, overrides: SpaceOverrides, env_id: str | None, env_kwargs: Mapping[str, Any] | None) -> None:
        super()._describe(overrides, env_id, env_kwargs)
        _require_echo(self._interface, self.base_url)


class RemoteEchoVector(RemoteVectorEnv):
    """Echo environments, stepped together: what is said to each comes back from it.

    Actions and observations are tuples of texts, one an environment. Without an address and ``provider`` it starts a
    server of its own on this machine.

    Args:
        num_envs: how many environments.
        base_url: a server's address or several.
        **settings: whatever else ``RemoteVectorEnv`` takes.

    Raises:
        SettingsError: a server is no echo server: at the making, or at the first reset or step that shows it.
        ToolCallError: a call gave no result; ``env_index`` says whose.

    Example:
        >>> import gymnasium, openenv_gym
        >>> envs = gymnasium.make_vec("openenv/echo-v0", num_envs=2)
        >>> envs.reset(seed=0)[0]
        ('Echo environment ready!', 'Echo environment ready!')
        >>> envs.step(("Hello,", "World!"))[0]
        ('Hello,', 'World!')
        >>> envs.close()
    """

    def __init__(self, num_envs: int = 1, *, base_url: str | Sequence[str] | None = None, **settings: Any) -> None:
        super().__init__(num_envs, base_url=base_url, **_of_echo(settings, base_url))

    def _check(self, interface: Interface, base_url: str) -> None:
        super()._check(interface, base_url)
        _require_echo(interface, base_url)


def _of_echo(settings: Mapping[str, Any], base_url: object) -> dict[str, Any]:
    """The settings, with what an echo environment has besides."""
    ours: dict[str, Any] = {
        "action_space": UnicodeText(),
        "observation_space": UnicodeText(),
        "encode_action": said,
        "decode_observation": heard,
    }
    if base_url is None and all(settings.get(name) is None for name in ("provider", "target", "env_id")):
        ours["target"] = TARGET
    return {**ours, **settings}


def _require_echo(interface: Interface, base_url: str) -> None:
    action = interface.schema.get("action")
    fields = action.get("properties") if isinstance(action, dict) else None
    if not isinstance(fields, dict) or "tool_name" not in fields:
        raise _no_echo(f"{base_url} serves {interface.name!r}, whose actions are no calls of tools")


def said(text: object) -> dict[str, Any]:
    """The action that echoes a text.

    Raises:
        ValueMappingError: it is no text, or one that cannot be sent.
    """
    return {"type": "call_tool", "tool_name": TOOL, "arguments": {"message": _codec.encode(text)}}


def heard(fields: dict[str, Any]) -> str:
    """The text in an observation.

    Raises:
        SettingsError: it is not an echo environment's.
        ToolCallError: the call failed.
    """
    if "tool_name" not in fields:
        greeting = greeting_in(fields)
        if greeting is None:
            raise _no_echo(f"its first observation has no greeting: {str(fields)[:200]}")
        return greeting
    error = fields.get("error")
    if isinstance(error, dict):
        if error.get("error_type") == ToolErrorType.TOOL_NOT_FOUND:
            raise _no_echo(f"it has no tool {TOOL!r}: {error.get('message')}")
        raise ToolCallError(
            f"Tool {TOOL!r} failed: {error.get('message')}",
            code="EXECUTION_ERROR",
            data=error,
            error_type=error.get("error_type"),
            tool_name=TOOL,
        )
    result = fields.get("result")
    text = result.get("data") if isinstance(result, dict) else result
    if not isinstance(text, str):
        raise ValueMappingError(f"expected the text that {TOOL!r} gave, got {str(result)[:200]}", path="$.result")
    return text


def _no_echo(why: str) -> SettingsError:
    return SettingsError(
        f"expected an echo server for openenv/echo-v0: {why}; openenv/remote-v0 takes any OpenEnv server",
        setting="base_url",
    )
