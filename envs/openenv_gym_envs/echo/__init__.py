"""Text in, the same text out: the smallest environment there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openenv_gym_envs.echo.environment import EchoAction, EchoEnvironment, EchoObservation

if TYPE_CHECKING:
    from openenv_gym_envs.echo.app import create_app

__all__ = ["EchoAction", "EchoEnvironment", "EchoObservation", "create_app"]


def __getattr__(name: str) -> Any:
    # The application brings a web server; who imports the types alone should not pay for it.
    if name == "create_app":
        from openenv_gym_envs.echo.app import create_app  # noqa: PLC0415

        return create_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
