"""Text in, the same text out: the smallest environment there is, with its client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openenv_gym.lazy import lazy_names

if TYPE_CHECKING:
    from openenv_gym.tools import CallToolAction, CallToolObservation, ListToolsAction, ListToolsObservation
    from openenv_gym_envs.echo.app import create_app
    from openenv_gym_envs.echo.client import EchoEnv
    from openenv_gym_envs.echo.environment import EchoAction, EchoEnvironment, EchoObservation
    from openenv_gym_envs.echo.remote import RemoteEcho, RemoteEchoVector

__all__ = [
    "CallToolAction",
    "CallToolObservation",
    "EchoAction",
    "EchoEnv",
    "EchoEnvironment",
    "EchoObservation",
    "ListToolsAction",
    "ListToolsObservation",
    "RemoteEcho",
    "RemoteEchoVector",
    "create_app",
]

# Who talks to an echo server should not pay for a server of their own, nor the other way round.
_HOMES = {
    "CallToolAction": "openenv_gym.tools",
    "CallToolObservation": "openenv_gym.tools",
    "EchoAction": "openenv_gym_envs.echo.environment",
    "EchoEnv": "openenv_gym_envs.echo.client",
    "EchoEnvironment": "openenv_gym_envs.echo.environment",
    "EchoObservation": "openenv_gym_envs.echo.environment",
    "ListToolsAction": "openenv_gym.tools",
    "ListToolsObservation": "openenv_gym.tools",
    "RemoteEcho": "openenv_gym_envs.echo.remote",
    "RemoteEchoVector": "openenv_gym_envs.echo.remote",
    "create_app": "openenv_gym_envs.echo.app",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
