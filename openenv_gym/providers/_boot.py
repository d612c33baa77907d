"""How a server process is begun by another Python process: its program, and the import path that it takes over.

The child reads one line of JSON from its standard input: ``sys_path``, ``module``, whose ``main`` gets the whole, and
whatever that takes. Not for watching the child (``process.py``, ``cli/workers.py``).
"""

from __future__ import annotations

import json
import os
import sys

from openenv_gym.errors import ProviderError

__all__ = ["boot_command", "import_path", "loaded", "loading"]

_LOADING = "OPENENV_GYM_LOADING"
"""The environment variable that names what a server process is still loading, and what its parent is, and so on."""

# The child first takes over sys.path, so that it can import what its parent can, this package included.
_BOOT = (
    "import json, sys; config = json.loads(sys.stdin.readline()); sys.path[:] = config['sys_path']; "
    "import importlib; importlib.import_module(config['module']).main(config)"
)


def boot_command() -> list[str]:
    """The command of a child, which waits for its configuration."""
    return [sys.executable, "-c", _BOOT]


def import_path() -> list[str]:
    """``sys.path`` as it means the same directories in a child."""
    return [entry or os.getcwd() for entry in sys.path]  # noqa: PTH109


def loading(target: str) -> dict[str, str]:
    """The environment variables of a child that is to load the target.

    Raises:
        ProviderError: this very process is loading it: its child would start a child that would start a child.
    """
    chain = json.loads(os.environ.get(_LOADING, "[]"))
    if target in chain:
        raise ProviderError(
            f"expected a server of {target!r} to load it, but loading it starts another server of {target!r}: the "
            "module makes an environment, or a provider, while it is imported. Put the part that trains under "
            "if __name__ == '__main__':, or the environment's class and its registration into a module of its own"
        )
    return {**os.environ, _LOADING: json.dumps([*chain, target])}


def loaded() -> None:
    """The target is loaded: what is started from now on is the environment's own affair."""
    os.environ.pop(_LOADING, None)
