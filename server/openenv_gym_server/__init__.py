"""OpenEnv servers for environments written in Python, and for any Gymnasium environment.

``create_app`` serves an ``Environment``; ``create_gym_app`` serves a ``gymnasium.Env``. Names load when they are
first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openenv_gym.lazy import lazy_names

if TYPE_CHECKING:
    from openenv_gym.errors import EnvironmentFactoryError
    from openenv_gym.jsonrpc import JsonRpcError, JsonRpcErrorCode, JsonRpcRequest, JsonRpcResponse, McpMethod
    from openenv_gym.tools import (
        RESERVED_TOOL_NAMES,
        CallToolAction,
        CallToolObservation,
        ListToolsAction,
        ListToolsObservation,
        Tool,
        ToolError,
        ToolErrorType,
    )
    from openenv_gym.types import (
        Action,
        ConcurrencyConfig,
        EnvironmentMetadata,
        GetTaskRangeRequest,
        GetTaskRequest,
        HealthResponse,
        HealthStatus,
        ListTasksRequest,
        NumTasksRequest,
        Observation,
        SchemaResponse,
        ServerCapacityStatus,
        ServerMode,
        SessionInfo,
        State,
        WSErrorCode,
    )
    from openenv_gym_server.app import HTTPEnvServer, create_app, create_fastapi_app
    from openenv_gym_server.codec import Codec, ModelCodec
    from openenv_gym_server.environment import Environment
    from openenv_gym_server.errors import ConcurrencyConfigurationError, SessionNotFoundError
    from openenv_gym_server.gym_app import create_gym_app
    from openenv_gym_server.gym_environment import GymEnvironment
    from openenv_gym_server.mcp_environment import MCPEnvironment
    from openenv_gym_server.protocols import Message, ModelTokenizer, TaskProvider
    from openenv_gym_server.serialization import deserialize_action, serialize_observation
    from openenv_gym_server.settings import ServerSettings, uvicorn_options
    from openenv_gym_server.tool_functions import tool
    from openenv_gym_server.transforms import CompositeTransform, NullTransform, Transform

__all__ = [
    "RESERVED_TOOL_NAMES",
    "Action",
    "CallToolAction",
    "CallToolObservation",
    "Codec",
    "CompositeTransform",
    "ConcurrencyConfig",
    "ConcurrencyConfigurationError",
    "Environment",
    "EnvironmentFactoryError",
    "EnvironmentMetadata",
    "GetTaskRangeRequest",
    "GetTaskRequest",
    "GymEnvironment",
    "HTTPEnvServer",
    "HealthResponse",
    "HealthStatus",
    "JsonRpcError",
    "JsonRpcErrorCode",
    "JsonRpcRequest",
    "JsonRpcResponse",
    "ListTasksRequest",
    "ListToolsAction",
    "ListToolsObservation",
    "MCPEnvironment",
    "McpMethod",
    "Message",
    "ModelCodec",
    "ModelTokenizer",
    "NullTransform",
    "NumTasksRequest",
    "Observation",
    "SchemaResponse",
    "ServerCapacityStatus",
    "ServerMode",
    "ServerSettings",
    "SessionInfo",
    "SessionNotFoundError",
    "State",
    "TaskProvider",
    "Tool",
    "ToolError",
    "ToolErrorType",
    "Transform",
    "WSErrorCode",
    "create_app",
    "create_fastapi_app",
    "create_gym_app",
    "deserialize_action",
    "serialize_observation",
    "tool",
    "uvicorn_options",
]

_HOMES = {
    "RESERVED_TOOL_NAMES": "openenv_gym.tools",
    "Action": "openenv_gym.types",
    "CallToolAction": "openenv_gym.tools",
    "CallToolObservation": "openenv_gym.tools",
    "Codec": "openenv_gym_server.codec",
    "CompositeTransform": "openenv_gym_server.transforms",
    "ConcurrencyConfig": "openenv_gym.types",
    "ConcurrencyConfigurationError": "openenv_gym_server.errors",
    "Environment": "openenv_gym_server.environment",
    "EnvironmentFactoryError": "openenv_gym.errors",
    "EnvironmentMetadata": "openenv_gym.types",
    "GetTaskRangeRequest": "openenv_gym.types",
    "GetTaskRequest": "openenv_gym.types",
    "GymEnvironment": "openenv_gym_server.gym_environment",
    "HTTPEnvServer": "openenv_gym_server.app",
    "HealthResponse": "openenv_gym.types",
    "HealthStatus": "openenv_gym.types",
    "JsonRpcError": "openenv_gym.jsonrpc",
    "JsonRpcErrorCode": "openenv_gym.jsonrpc",
    "JsonRpcRequest": "openenv_gym.jsonrpc",
    "JsonRpcResponse": "openenv_gym.jsonrpc",
    "ListTasksRequest": "openenv_gym.types",
    "ListToolsAction": "openenv_gym.tools",
    "ListToolsObservation": "openenv_gym.tools",
    "MCPEnvironment": "openenv_gym_server.mcp_environment",
    "McpMethod": "openenv_gym.jsonrpc",
    "Message": "openenv_gym_server.protocols",
    "ModelCodec": "openenv_gym_server.codec",
    "ModelTokenizer": "openenv_gym_server.protocols",
    "NullTransform": "openenv_gym_server.transforms",
    "NumTasksRequest": "openenv_gym.types",
    "Observation": "openenv_gym.types",
    "SchemaResponse": "openenv_gym.types",
    "ServerCapacityStatus": "openenv_gym.types",
    "ServerMode": "openenv_gym.types",
    "ServerSettings": "openenv_gym_server.settings",
    "SessionInfo": "openenv_gym.types",
    "SessionNotFoundError": "openenv_gym_server.errors",
    "State": "openenv_gym.types",
    "TaskProvider": "openenv_gym_server.protocols",
    "Tool": "openenv_gym.tools",
    "ToolError": "openenv_gym.tools",
    "ToolErrorType": "openenv_gym.tools",
    "Transform": "openenv_gym_server.transforms",
    "WSErrorCode": "openenv_gym.types",
    "create_app": "openenv_gym_server.app",
    "create_fastapi_app": "openenv_gym_server.app",
    "create_gym_app": "openenv_gym_server.gym_app",
    "deserialize_action": "openenv_gym_server.serialization",
    "serialize_observation": "openenv_gym_server.serialization",
    "tool": "openenv_gym_server.tool_functions",
    "uvicorn_options": "openenv_gym_server.settings",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
