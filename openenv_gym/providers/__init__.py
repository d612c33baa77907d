"""Providers: where a server's address comes from."""

from openenv_gym.providers.base import Lease, Provider
from openenv_gym.providers.process import ProcessProvider, lease_embedded

__all__ = ["Lease", "ProcessProvider", "Provider", "lease_embedded"]
