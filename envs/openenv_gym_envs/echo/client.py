"""``EchoEnv``: the echo environment's client, for this project's server and for OpenEnv's own."""

from __future__ import annotations

from typing import Any, ClassVar

from openenv_gym.mcp_client import MCPToolClient
from openenv_gym.types import Observation

__all__ = ["EchoEnv", "Greeting", "greeting_in"]


class Greeting(Observation):
    """The observation of reset, and of the older action of a bare message.

    Example:
        >>> Greeting(echoed_message="Echo environment ready!").message_length
        23
    """

    echoed_message: str
    message_length: int = -1

    def model_post_init(self, context: Any) -> None:
        """Count where the server has not."""
        del context
        if self.message_length < 0:
            self.message_length = len(self.echoed_message)


class EchoEnv(MCPToolClient):
    """Talks to an echo environment.

    The observation of ``reset`` has the greeting as ``echoed_message``; that of a call has what the tool gave as
    ``result``. Without an address it starts a server of its own on this machine. The arguments are ``EnvClient``'s.

    Example:
        >>> from openenv_gym.tools import CallToolAction
        >>> with EchoEnv().sync() as client:    # doctest: +SKIP
        ...     client.reset().observation.echoed_message
        ...     said = CallToolAction(tool_name="echo_message", arguments={"message": "Hello, World!"})
        ...     client.step(said).observation.result
        'Echo environment ready!'
        'Hello, World!'
    """

    target: ClassVar[str | None] = "openenv_gym_envs.echo"

    def _parse_observation(self, fields: dict[str, Any]) -> Observation:
        greeting = greeting_in(fields)
        if greeting is None:
            return super()._parse_observation(fields)
        known = {name: fields[name] for name in ("metadata", "reward", "done", "message_length") if name in fields}
        return Greeting(echoed_message=greeting, **known)


def greeting_in(fields: dict[str, Any]) -> str | None:
    """What an echo environment says of itself at reset; None in any other observation.

    Args:
        fields: the observation's fields; OpenEnv's own environment says it in ``metadata``.
    """
    if "tool_name" in fields or "tools" in fields:
        return None
    metadata = fields.get("metadata")
    said = fields.get("echoed_message", metadata.get("message") if isinstance(metadata, dict) else None)
    return said if isinstance(said, str) else None
