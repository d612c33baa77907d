"""The servers that are measured, each in a process of its own that ends with the block.

Ours are what ``openenv-gym serve`` runs; the others are in ``peers.py``.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple


class Server(NamedTuple):
    """A server that runs.

    Attributes:
        url: its base URL.
        pid: the id of its process.
    """

    url: str
    pid: int

    @property
    def memory_kb(self) -> float:
        """The process's resident memory, in kB (1,024 bytes)."""
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(self.pid)], check=True, capture_output=True, text=True)
        return float(shown.stdout)


@contextlib.contextmanager
def ours(target: str, *options: str) -> Iterator[Server]:
    """``openenv-gym serve``, which takes any number of sessions."""
    command = ["openenv_gym.cli", "serve", target, "--port", "0", "--log-level", "warning"]
    with _running([*command, "--max-concurrent-envs", "unlimited", *options]) as (line, pid):
        found = re.search(r"http://[\w.:]+", line)
        if found is None:
            raise RuntimeError(f"openenv-gym serve {target} did not start; its error stands above")
        yield Server(found[0], pid)


@contextlib.contextmanager
def peer(kind: str) -> Iterator[Server]:
    """One of ``peers.py``."""
    with _running(["benchmarks.peers", kind]) as (port, pid):
        if not port.strip():
            raise RuntimeError(f"the {kind} server did not start; its error stands above")
        yield Server(f"http://127.0.0.1:{port.strip()}", pid)


@contextlib.contextmanager
def _running(arguments: list[str]) -> Iterator[tuple[str, int]]:
    """A module as a program, for as long as the block lasts; gives its first line and its id."""
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout:
        try:
            yield process.stdout.readline(), process.pid
        finally:
            process.terminate()
            process.wait()


def event_loop() -> str:
    """The event loop that uvicorn's ``auto`` means here."""
    try:
        importlib.import_module("uvloop")
    except ImportError:
        return "asyncio"
    return "uvloop"
