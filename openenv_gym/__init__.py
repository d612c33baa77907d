"""OpenEnv servers as Gymnasium environments, and Gymnasium environments as OpenEnv services.

Importing this package registers ``openenv/gym-v0``, ``openenv/echo-v0``, ``openenv/blackjack-v0`` and
``openenv/remote-v0``. Everything else loads when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openenv_gym import errors as errors
from openenv_gym.lazy import lazy_names
from openenv_gym.registration import register_ids

if TYPE_CHECKING:
    from openenv_gym.client import EnvClient as EnvClient
    from openenv_gym.client_pool import ClientPool as ClientPool
    from openenv_gym.client_pool import pool as pool
    from openenv_gym.discovery import connect as connect
    from openenv_gym.env import RemoteEnv as RemoteEnv
    from openenv_gym.generic_client import GenericAction as GenericAction
    from openenv_gym.generic_client import GenericEnvClient as GenericEnvClient
    from openenv_gym.mcp_client import MCPToolClient as MCPToolClient
    from openenv_gym.providers.base import Provider as Provider
    from openenv_gym.providers.process import ProcessProvider as ProcessProvider
    from openenv_gym.spaces.text import UnicodeText as UnicodeText
    from openenv_gym.sync_client import SyncEnvClient as SyncEnvClient
    from openenv_gym.tools import CallToolAction as CallToolAction
    from openenv_gym.tools import CallToolObservation as CallToolObservation
    from openenv_gym.tools import ListToolsAction as ListToolsAction
    from openenv_gym.tools import ListToolsObservation as ListToolsObservation
    from openenv_gym.tools import Tool as Tool
    from openenv_gym.tools import ToolError as ToolError
    from openenv_gym.tools import ToolErrorType as ToolErrorType
    from openenv_gym.transports.base import ConnectionSettings as ConnectionSettings
    from openenv_gym.types import Action as Action
    from openenv_gym.types import Observation as Observation
    from openenv_gym.types import State as State
    from openenv_gym.types import StepResult as StepResult
    from openenv_gym.vector import RemoteVectorEnv as RemoteVectorEnv

_LAZY = {
    "Action": "openenv_gym.types",
    "CallToolAction": "openenv_gym.tools",
    "CallToolObservation": "openenv_gym.tools",
    "ClientPool": "openenv_gym.client_pool",
    "ConnectionSettings": "openenv_gym.transports.base",
    "EnvClient": "openenv_gym.client",
    "GenericAction": "openenv_gym.generic_client",
    "GenericEnvClient": "openenv_gym.generic_client",
    "ListToolsAction": "openenv_gym.tools",
    "ListToolsObservation": "openenv_gym.tools",
    "MCPToolClient": "openenv_gym.mcp_client",
    "Observation": "openenv_gym.types",
    "ProcessProvider": "openenv_gym.providers.process",
    "Provider": "openenv_gym.providers.base",
    "RemoteEnv": "openenv_gym.env",
    "RemoteVectorEnv": "openenv_gym.vector",
    "State": "openenv_gym.types",
    "StepResult": "openenv_gym.types",
    "SyncEnvClient": "openenv_gym.sync_client",
    "Tool": "openenv_gym.tools",
    "ToolError": "openenv_gym.tools",
    "ToolErrorType": "openenv_gym.tools",
    "UnicodeText": "openenv_gym.spaces.text",
    "connect": "openenv_gym.discovery",
    "pool": "openenv_gym.client_pool",
}

__all__ = [
    "Action",
    "CallToolAction",
    "CallToolObservation",
    "ClientPool",
    "ConnectionSettings",
    "EnvClient",
    "GenericAction",
    "GenericEnvClient",
    "ListToolsAction",
    "ListToolsObservation",
    "MCPToolClient",
    "Observation",
    "ProcessProvider",
    "Provider",
    "RemoteEnv",
    "RemoteVectorEnv",
    "State",
    "StepResult",
    "SyncEnvClient",
    "Tool",
    "ToolError",
    "ToolErrorType",
    "UnicodeText",
    "connect",
    "errors",
    "pool",
]
__version__ = "0.1.0"

__getattr__, __dir__ = lazy_names(__name__, _LAZY)

register_ids()
