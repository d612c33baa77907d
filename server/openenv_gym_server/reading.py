"""Where messages are read that are too large to be read between two others. Not for how (``dispatch.py``)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

__all__ = ["LARGE", "off_the_loop"]

T = TypeVar("T")

LARGE = 65_536
"""Characters or bytes of a message that are read on the event loop at most: some fractions of a millisecond."""


async def off_the_loop(size: int, read: Callable[..., T], *args: object) -> T:
    """What ``read(*args)`` gives, run on one of the loop's few threads where a message of that size is large."""
    if size <= LARGE:
        return read(*args)
    return await asyncio.to_thread(read, *args)
