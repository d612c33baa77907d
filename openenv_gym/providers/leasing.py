"""Where an environment's server is: the one source of an address that the arguments name.

Not for starting servers (``process.py``) nor for talking to them (``transports/``).
"""

from __future__ import annotations

from openenv_gym.errors import SettingsError
from openenv_gym.providers.base import Lease, Provider

__all__ = ["lease_server"]


def lease_server(base_url: str | None, provider: Provider | None, target: str | None) -> Lease:
    """The address of the server that is meant, until the lease is released.

    Args:
        base_url: a server that runs already.
        provider: a description of a server to start; it is copied.
        target: what an embedded server serves, where neither is given.

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

        return lease_embedded(target)
    raise SettingsError(
        'expected a server: give base_url="http://host:8000", or a provider, or env_id="CartPole-v1" to serve that '
        "environment on this machine",
        setting="base_url",
    )
