"""Whether the trainers are installed: Stable-Baselines3, and torch, which it stands on.

The extra ``dev`` installs them on one Python alone, where all of their tests run; on others these are not collected.
"""

from __future__ import annotations

import importlib.util
import sys

__all__ = ["NEEDED", "TRAINERS", "WITH_TRAINERS"]

TRAINERS = all(importlib.util.find_spec(name) for name in ("stable_baselines3", "torch"))

NEEDED = sys.version_info < (3, 12)
"""Whether the extra asks for them here."""

WITH_TRAINERS = ["openenv_gym/test_sb3.py", "openenv_gym/test_sb3_remote.py", "house/test_learning_programs.py"]
"""The files of tests that need them, as seen from this folder."""
