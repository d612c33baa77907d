"""Providers: where a server's address comes from."""

from openenv_gym.providers.base import Lease, Provider
from openenv_gym.providers.embedded import EmbeddedProvider
from openenv_gym.providers.foreign import (
    AnyProvider,
    ContainerProvider,
    RuntimeProvider,
    default_container_provider,
    default_runtime_provider,
)
from openenv_gym.providers.process import ProcessProvider, lease_embedded

__all__ = [
    "AnyProvider",
    "ContainerProvider",
    "EmbeddedProvider",
    "Lease",
    "ProcessProvider",
    "Provider",
    "RuntimeProvider",
    "default_container_provider",
    "default_runtime_provider",
    "lease_embedded",
]
