"""The keywords of ``gymnasium.make`` that are settings: told apart, checked, and put where they belong."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from openenv_gym.errors import SettingsError
from openenv_gym.interface import SpaceOverrides
from openenv_gym.transports.base import ConnectionSettings

__all__ = ["split_keywords"]


def split_keywords(keywords: Mapping[str, Any], others: tuple[str, ...]) -> tuple[SpaceOverrides, ConnectionSettings]:
    """What the caller decides about the Spaces, and about the connection.

    Args:
        keywords: fields of the two.
        others: further keywords the caller could have meant, for the error.

    Raises:
        SettingsError: a keyword that is nobody's (with the most likely one that was meant), or a value that cannot be.

    Example:
        >>> overrides, connection = split_keywords({"flatten": False, "step_timeout_s": 5}, ())
        >>> overrides.flatten, connection.step_timeout_s
        (False, 5)
    """
    space_names, connection_names = (
        {field.name for field in fields(kind)} for kind in (SpaceOverrides, ConnectionSettings)
    )
    for name in keywords:
        if name not in space_names | connection_names:
            raise _unknown(name, sorted({*others, *space_names, *connection_names}))
    overrides = SpaceOverrides(**{name: value for name, value in keywords.items() if name in space_names})
    connection = {name: value for name, value in keywords.items() if name in connection_names}
    return overrides, ConnectionSettings.from_mapping(connection)


def _unknown(name: str, known: list[str]) -> SettingsError:
    near = difflib.get_close_matches(name, known, n=1)
    meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
    return SettingsError(
        f"expected a keyword of openenv_gym, got {name!r}; {meant} The environment's own keywords go into "
        f"env_kwargs={{{name!r}: …}}",
        setting=name,
    )
