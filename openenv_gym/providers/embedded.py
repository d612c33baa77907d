"""The embedded server as a provider: one process of this machine for all who ask for the same target."""

from __future__ import annotations

import os
from collections.abc import Mapping

from openenv_gym.providers.base import Lease, Provider

__all__ = ["EmbeddedProvider"]


class EmbeddedProvider(Provider):
    """A share in the embedded server of a target; it ends with its last user.

    Args:
        target: what it serves, as ``openenv-gym serve`` takes it.

    Example:
        >>> with EmbeddedProvider("CartPole-v1") as provider:
        ...     provider.start().startswith("http://127.0.0.1:")
        True
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self._lease: Lease | None = None
        self._owner = 0

    def configuration(self) -> dict[str, object]:
        """The keyword arguments that make an equal provider."""
        return {"target": self.target}

    @property
    def headers(self) -> Mapping[str, str]:
        """What a client has to send along."""
        return {} if self._lease is None else self._lease.headers

    def start(self) -> str:
        """Take a share in the server, started if need be; again: in a new one where the old has died.

        Raises:
            ProviderError: it could not be started.
        """
        if self._lease is None or self._owner != os.getpid():
            # A forked child's share is its parent's: it takes one of its own, which ends with its own users.
            # Imported here and not at the top: who only describes a server starts no process.
            from openenv_gym.providers.process import lease_embedded  # noqa: PLC0415

            self._lease = lease_embedded(self.target)
            self._owner = os.getpid()
        return self._lease.renew()

    def stop(self) -> None:
        """Give the share back. May be called again."""
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.release()

    def wait_for_ready(self, base_url: str, timeout_s: float = 30.0) -> None:
        """Nothing: it listens when ``start`` returns, and a client's first request waits for its environment."""
