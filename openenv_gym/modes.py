"""Simulation and production: which of the two a client is for, and what only the first has.

In simulation a trainer resets, steps and reads the state; in production an agent sees tools alone. Not for the modes of
a server (``openenv_gym_server.settings``).
"""

from __future__ import annotations

import os
from typing import Literal

from openenv_gym.errors import ModeError, SettingsError

__all__ = ["Mode", "mode_of_vector", "read_mode", "require_simulation"]

Mode = Literal["simulation", "production"]

_VARIABLE = "OPENENV_CLIENT_MODE"


def read_mode(mode: str | None) -> Mode:
    """The mode that is asked for: the argument, else OPENENV_CLIENT_MODE, else simulation. Any letter case will do.

    Raises:
        SettingsError: there is no such mode; the message names those there are.

    Example:
        >>> read_mode("Production")
        'production'
    """
    asked = os.environ.get(_VARIABLE) or "simulation" if mode is None else mode
    match asked.strip().lower() if isinstance(asked, str) else asked:
        case "simulation":
            return "simulation"
        case "production":
            return "production"
    source = _VARIABLE if mode is None else "mode"
    raise SettingsError(f"expected {source} to be 'simulation' or 'production', got {asked!r}", setting="mode")


def require_simulation(mode: Mode, call: str) -> None:
    """See that the call exists in the mode.

    Raises:
        ModeError: it does not; the message says what to do.
    """
    if mode != "simulation":
        raise ModeError(
            f"{call}() is for mode='simulation', this client is for production, where an agent sees tools alone: "
            "use MCPToolClient and call_tool(), or make the client with mode='simulation'",
            mode=mode,
        )


def mode_of_vector(mode: str | None) -> Mode:
    """The mode that is asked for of a vector environment, as ``read_mode`` has it: simulation.

    Raises:
        SettingsError: there is no such mode.
        ModeError: it is production; the message says who asked for it and what to do.
    """
    wanted = read_mode(mode)
    if wanted != "simulation":
        source = f"{_VARIABLE} is {os.environ.get(_VARIABLE)!r}" if mode is None else f"mode={mode!r}"
        raise ModeError(
            f"expected a vector environment to be made for simulation, but {source}: an agent in production has the "
            "tools of one environment, and no step of many. Give mode='simulation'; or have each environment made by "
            "itself, with vectorization_mode='sync' of gymnasium.make_vec",
            mode=wanted,
        )
    return wanted
