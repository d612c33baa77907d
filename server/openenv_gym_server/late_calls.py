"""What is said of a call of a tool that outlives its limit, while the tool still has the environment's thread.

Such a call is a step as any other that failed, so ``after_tool`` gives its reward: on a thread of its own, since the
environment's is not free. Not for how long a call may take (``session.py``) nor for tools that can be cancelled
(``tool_waiting.py``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from openenv_gym.messages import Outcome
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.worker import Worker

__all__ = ["AFTER_TOOL_S", "given_up"]

T = TypeVar("T")

AFTER_TOOL_S = 1.0
"""How long ``after_tool`` has for the reward of a call that was given up; without it, that has none."""


async def given_up(hosted: HostedEnvironment, name: str, seconds: float, work: asyncio.Future[Any]) -> Outcome | None:
    """What is said of a call that runs for too long; None where it has ended at this very moment, so ``work`` has it.

    Args:
        hosted: the environment.
        name: the tool.
        seconds: its limit.
        work: what the call gives in the end.
    """
    thread = Worker("openenv-after-tool")
    try:
        outcome = await _within_a_moment(thread.run(hosted.give_up, name, seconds))
    finally:
        thread.stop()
    if outcome is None:
        await asyncio.wait({work}, timeout=AFTER_TOOL_S)
        if work.done():
            return None
    return outcome or hosted.timed_out(name, seconds, begun=True)


async def _within_a_moment(work: Awaitable[T]) -> T | None:
    try:
        return await asyncio.wait_for(work, AFTER_TOOL_S)
    except TimeoutError:
        return None
