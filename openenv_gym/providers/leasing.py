"""Where an environment's server is: the one source of an address that the arguments name.

Not for starting servers (``process.py``) nor for talking to them (``transports/``).
"""

from __future__ import annotations

from openenv_gym.errors import SettingsError
from openenv_gym.providers.base import Lease, Provider

__all__ = ["lease_server", "target_of"]


def target_of(target: str | None, env_id: str | None) -> str | None:
    """What an embedded server serves, where it is one; an environment's id is a target.

    Raises:
        SettingsError: both are given, or the id is none.

    Example:
        >>> target_of(None, "CartPole-v1")
        'CartPole-v1'
    """
    if env_id is not None and not isinstance(env_id, str):
        raise SettingsError(
            f"expected env_id to be a string such as 'CartPole-v1', got {env_id!r}; a class or a function is "
            "served with openenv_gym_server.create_gym_app and reached by its base_url",
            setting="env_id",
        )
    if target is not None and env_id is not None:
        raise SettingsError(f"expected target or env_id, got both: {target!r} and {env_id!r}", setting="env_id")
    return target or env_id


def lease_server(
    base_url: str | None, provider: Provider | None, target: str | None, mode: str = "simulation"
) -> Lease:
    """The address of the server that is meant, until the lease is released.

    Args:
        base_url: a server that runs already.
        provider: a description of a server to start; it is copied.
        target: what an embedded server serves, where neither is given.
        mode: the embedded server's; any other has its own.

    Raises:
        SettingsError: none is named, or two.
        ProviderError: the server could not be started.

    Example:
        >>> lease_server("http://127.0.0.1:8000", None, None).base_url
        'http://127.0.0.1:8000'
    """
    if base_url is not None and provider is not None:
        raise SettingsError("expected base_url or provider, got both: leave one out", setting="provider")
    if base_url is not None:
        return Lease(base_url)
    if provider is not None:
        return Lease.of_provider(provider)
    if target is not None:
        # Here and not at the top: an environment with an address starts no process.
        from openenv_gym.providers.process import lease_embedded  # noqa: PLC0415

        return lease_embedded(target, mode)
    raise SettingsError(
        'expected a server: give base_url="http://host:8000", or a provider, or env_id="CartPole-v1" to serve that '
        "environment on this machine",
        setting="base_url",
    )
