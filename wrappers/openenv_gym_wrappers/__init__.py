"""Gymnasium wrappers for remote environments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openenv_gym.lazy import lazy_names

if TYPE_CHECKING:
    from openenv_gym_wrappers.tools import MCPTools as MCPTools

_LAZY = {"MCPTools": "openenv_gym_wrappers.tools"}

__all__ = ["MCPTools"]

__getattr__, __dir__ = lazy_names(__name__, _LAZY)
