"""OpenEnv servers as Gymnasium environments, and Gymnasium environments as OpenEnv services.

Importing this package registers ``openenv/gym-v0``, ``openenv/echo-v0`` and ``openenv/remote-v0``. Everything else
loads when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from openenv_gym.registration import register_ids

if TYPE_CHECKING:
    from openenv_gym import errors as errors
    from openenv_gym.env import RemoteEnv as RemoteEnv
    from openenv_gym.providers.base import Provider as Provider
    from openenv_gym.providers.process import ProcessProvider as ProcessProvider
    from openenv_gym.spaces.text import UnicodeText as UnicodeText
    from openenv_gym.transports.base import ConnectionSettings as ConnectionSettings

_LAZY = {
    "ConnectionSettings": "openenv_gym.transports.base",
    "ProcessProvider": "openenv_gym.providers.process",
    "Provider": "openenv_gym.providers.base",
    "RemoteEnv": "openenv_gym.env",
    "UnicodeText": "openenv_gym.spaces.text",
}

__all__ = ["ConnectionSettings", "ProcessProvider", "Provider", "RemoteEnv", "UnicodeText", "errors"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    if name == "errors":
        return importlib.import_module("openenv_gym.errors")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


register_ids()
