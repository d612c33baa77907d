"""What a provider is: a description of a server that can be started, and of how to stop it again.

A provider gives a ``base_url`` and takes it away. Copying or pickling one copies its configuration and never a
running thing, so an ``EnvSpec`` may hold it. Not for connecting: that is the client's.
"""

from __future__ import annotations

import abc
import copy
import types
from collections.abc import Callable, Mapping
from typing import Self

__all__ = ["Lease", "Provider"]


class Provider(abc.ABC):
    """Starts one server, and stops it.

    Subclasses keep what is running out of ``configuration()``; copies and pickles hold the configuration alone.

    Example:
        >>> from openenv_gym.providers.process import ProcessProvider
        >>> with ProcessProvider("CartPole-v1") as provider:
        ...     base_url = provider.start()
        ...     provider.wait_for_ready(base_url, timeout_s=30)
    """

    @abc.abstractmethod
    def configuration(self) -> dict[str, object]:
        """The keyword arguments that make an equal provider."""

    @property
    def headers(self) -> Mapping[str, str]:
        """What a client has to send along with every request to what was started."""
        return {}

    @abc.abstractmethod
    def start(self) -> str:
        """Start the server and return its ``base_url``.

        Raises:
            ProviderError: it could not be started; whatever was begun is undone.
        """

    @abc.abstractmethod
    def stop(self) -> None:
        """Stop the server. May be called again."""

    @abc.abstractmethod
    def wait_for_ready(self, base_url: str, timeout_s: float = 30.0) -> None:
        """Return when the server answers.

        Args:
            base_url: what ``start`` returned.
            timeout_s: seconds to wait at most.

        Raises:
            ProviderError: it ended, or did not answer in time.
        """

    def close(self) -> None:
        """Stop the server and let go of everything. May be called again."""
        self.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., Provider], tuple[type[Provider], dict[str, object]]]:
        return _rebuild, (type(self), self.configuration())


def _rebuild(kind: type[Provider], configuration: dict[str, object]) -> Provider:
    return kind(**configuration)


class Lease:
    """An address somebody may use until they release it.

    Args:
        base_url: the address.
        headers: what to send along with every request.
        release: what to do when it is given back; called once.
        renew: makes sure that a server is there, and gives its address and headers; None where that is not in our
            hands.
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str] | None = None,
        *,
        release: Callable[[], None] | None = None,
        renew: Callable[[], tuple[str, Mapping[str, str]]] | None = None,
    ) -> None:
        self.base_url = base_url
        self.headers: Mapping[str, str] = headers or {}
        self._release = release
        self._renew = renew

    @property
    def embedded(self) -> bool:
        """Whether the server is an embedded one, so that what it serves is known."""
        return self._renew is not None

    def renew(self) -> str:
        """The address for a new connection; an embedded server that died is started again."""
        if self._renew is not None:
            self.base_url, self.headers = self._renew()
        return self.base_url

    @classmethod
    def of_provider(cls, provider: Provider) -> Lease:
        """Start a copy of the provider; releasing the lease stops it.

        Raises:
            ProviderError: it could not be started, or did not become ready.
        """
        running = copy.copy(provider)
        try:
            base_url = running.start()
            running.wait_for_ready(base_url)
        except BaseException:
            running.close()
            raise
        return cls(base_url, running.headers, release=running.close)

    def release(self) -> None:
        """Give the address back. May be called again: that does nothing, or tries anew what has failed."""
        release, self._release = self._release, None
        try:
            if release is not None:
                release()
        except Exception:
            self._release = release
            raise
