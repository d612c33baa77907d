"""Providers of every make, ours and OpenEnv's, as leases: started for one client, and stopped once.

OpenEnv knows two kinds, told apart by their methods: containers (``start_container``, ``stop_container``) and run-times
(``start``, ``stop``). Not for what a provider does (``base.py`` and the modules beside it).

Source of the methods' names and arguments: ``openenv`` 0.10.0.
"""

from __future__ import annotations

import atexit
import contextlib
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from openenv_gym.errors import ProviderError, SettingsError
from openenv_gym.providers.base import Lease, Provider
from openenv_gym.providers.embedded import EmbeddedProvider

__all__ = [
    "AnyProvider",
    "ContainerProvider",
    "RuntimeProvider",
    "default_container_provider",
    "default_runtime_provider",
    "lease_of",
    "started_container",
    "started_runtime",
    "stopping",
]


class ContainerProvider(Protocol):
    """What starts containers, by OpenEnv's method names."""

    def start_container(self, image: str, /, **keywords: Any) -> str:
        """Start a container of the image and return its ``base_url``."""
        ...

    def stop_container(self) -> None:
        """Stop and remove it."""
        ...

    def wait_for_ready(self, base_url: str, /) -> None:
        """Return when it answers."""
        ...


class RuntimeProvider(Protocol):
    """What starts processes, by OpenEnv's method names."""

    def start(self, **keywords: Any) -> str:
        """Start the server and return its ``base_url``."""
        ...

    def stop(self) -> None:
        """Stop it."""
        ...

    def wait_for_ready(self) -> None:
        """Return when it answers."""
        ...


AnyProvider: TypeAlias = Provider | ContainerProvider | RuntimeProvider


def default_container_provider() -> ContainerProvider:
    """What starts the containers of ``from_docker_image`` and ``from_env`` where the caller names no provider.

    Raises:
        SettingsError: always, in this version.
    """
    raise SettingsError(
        "expected a provider that starts containers, got none, and this version brings none of its own: give "
        "provider=…, or start the container yourself and give its base_url",
        setting="provider",
    )


def default_runtime_provider(project_path: str, **keywords: Any) -> RuntimeProvider:
    """What runs the projects of ``from_env(use_docker=False)`` where the caller names no provider.

    Raises:
        SettingsError: always, in this version.
    """
    raise SettingsError(
        f"expected a provider that runs {project_path} {sorted(keywords) if keywords else ''}".rstrip()
        + ", got none, and this version brings none of its own: give provider=…, or start it yourself and give its "
        "base_url",
        setting="provider",
    )


def lease_of(provider: AnyProvider, base_url: str | None) -> Lease:
    """Start the provider, or take over one that runs at ``base_url`` already; releasing the lease stops it.

    A provider of ours is started as a copy, for it is a description. Of any other, the very object is.

    Raises:
        SettingsError: it is no provider, or cannot start without arguments.
        ProviderError: a provider of ours could not start; of others their own errors. Whatever was begun is undone.
    """
    stop = stopping(provider)
    if base_url is not None:
        return _Kept(base_url, stop, provider.headers if isinstance(provider, Provider) else None)
    if isinstance(provider, EmbeddedProvider):
        own = EmbeddedProvider(provider.target)
        address = own.start()
        return Lease(address, own.headers, release=own.stop, renew=lambda: (own.start(), own.headers))
    if isinstance(provider, Provider):
        return Lease.of_provider(provider)
    try:
        return _Kept(_start(provider), stop)
    except BaseException:
        # The first failure says what is wrong; a second one, of stopping what never ran, would hide it.
        with contextlib.suppress(Exception):
            stop()
        raise


def stopping(provider: object) -> Callable[[], None]:
    """The method that stops it.

    Raises:
        SettingsError: it has none.
    """
    for begin, end in (("start_container", "stop_container"), ("start", "stop")):
        method = getattr(provider, end, None)
        if hasattr(provider, begin) and callable(method):
            stop: Callable[[], None] = method
            return stop
    raise SettingsError(
        "expected a provider, that is an object with start_container() and stop_container(), or with start() and "
        f"stop(), got {type(provider).__name__}",
        setting="provider",
    )


def started_container(container: ContainerProvider, *image: str, **keywords: Any) -> str:
    """The address of a container that was started and is ready."""
    base_url = container.start_container(*image, **keywords)
    container.wait_for_ready(base_url)
    return base_url


def started_runtime(runtime: RuntimeProvider, **keywords: Any) -> str:
    """The address of a process that was started and is ready."""
    base_url = runtime.start(**keywords)
    runtime.wait_for_ready()
    return base_url


def _start(provider: Any) -> str:
    if not hasattr(provider, "start_container"):
        return started_runtime(provider)
    needed = _required_arguments(provider.start_container)
    if needed:
        raise SettingsError(
            f"expected a provider that starts by itself, but {type(provider).__name__}.start_container() needs "
            f"{', '.join(needed)}: start it yourself and give its base_url, or use from_docker_image(image, provider)",
            setting="provider",
        )
    return started_container(provider)


def _required_arguments(function: Callable[..., object]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [item.name for item in parameters if item.default is inspect.Parameter.empty and item.kind not in optional]


class _Kept(Lease):
    """The lease of a foreign provider: stopped once, tried again after a failure, and at the interpreter's exit."""

    def __init__(self, base_url: str, stop: Callable[[], None], headers: Mapping[str, str] | None = None) -> None:
        if not isinstance(base_url, str):
            raise ProviderError(f"expected the provider to start a server and return its address, got {base_url!r}")
        super().__init__(base_url, headers)
        self._stop = stop
        self._owner = os.getpid()
        _running.add(self)

    def release(self) -> None:
        """Stop the provider. Again: nothing, unless stopping it has failed."""
        # A forked child holds a copy of the object, not the right to end its parent's server.
        if self in _running and self._owner == os.getpid():
            self._stop()
            _running.discard(self)


_running: set[_Kept] = set()
"""Leases that nobody has released; a provider left running would outlive the interpreter."""


@atexit.register
def _release_all() -> None:
    for lease in list(_running):
        with contextlib.suppress(Exception):  # the others are to be stopped too
            lease.release()
