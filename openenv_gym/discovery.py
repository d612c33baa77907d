"""``connect``: the client of an environment by its name, its address, or its Gymnasium id.

Packages of environments announce their clients as entry points of the group ``openenv_gym.clients``:
``echo = "openenv_gym_envs.echo:EchoEnv"``.
"""

from __future__ import annotations

import difflib
import re
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import gymnasium

from openenv_gym.client import EnvClient
from openenv_gym.errors import SettingsError
from openenv_gym.generic_client import GenericEnvClient
from openenv_gym.providers.embedded import EmbeddedProvider
from openenv_gym.providers.foreign import AnyProvider

__all__ = ["GROUP", "connect"]

GROUP = "openenv_gym.clients"
"""The group of entry points."""

_ADDRESS = re.compile(r"\w+://|[^/:]+:\d+(/|$)|\[")  # with a scheme, a host and its port, or an IPv6 address


def connect(
    name: str, base_url: str | None = None, *, provider: AnyProvider | None = None, **settings: Any
) -> EnvClient[Any, Any, Any]:
    """A client, not yet connected, of what the name means.

    Args:
        name: an environment's name ("echo"): its own client, where there is no address on an embedded server; or a
            server's URL: a ``GenericEnvClient`` there; or a Gymnasium id ("CartPole-v1"): a ``GenericEnvClient`` of an
            embedded server of that environment.
        base_url: the server's address, where the name is not one itself.
        provider: what starts the server instead.
        **settings: further arguments of the client.

    Raises:
        SettingsError: nothing has that name; the message has the names there are.

    Example:
        >>> with connect("echo").sync() as client:                              # doctest: +SKIP
        ...     client.reset()
    """
    if not isinstance(name, str):
        raise SettingsError(f"expected an environment's name, got {name!r}", setting="name")
    if _ADDRESS.match(name):
        if base_url is not None:
            raise SettingsError(f"expected one address, got two: {name!r} and {base_url!r}", setting="base_url")
        return GenericEnvClient(name, provider=provider, **settings)
    announced = _announced()
    if name in announced:
        kind: type[EnvClient[Any, Any, Any]] = announced[name].load()
        return kind(base_url, provider=provider, **settings)
    if not _is_gymnasium_id(name):
        raise _unknown(name, sorted(announced))
    if base_url is None and provider is None:
        provider = EmbeddedProvider(name)
    return GenericEnvClient(base_url, provider=provider, **settings)


def _announced() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _is_gymnasium_id(name: str) -> bool:
    # An id with a module is registered by it, in the server's process: "module:namespace/Name-v0".
    return ":" in name or name in gymnasium.registry


def _unknown(name: str, announced: list[str]) -> SettingsError:
    near = difflib.get_close_matches(name, [*announced, *gymnasium.registry], n=1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    return SettingsError(
        f"expected an environment's name out of {announced}, a Gymnasium id such as 'CartPole-v1', or a server's "
        f"URL; got {name!r}{meant}",
        setting="name",
    )
