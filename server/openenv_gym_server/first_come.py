"""First come, first served: which step of a vector session may wait for how many, and what it gives.

Not for how steps run and are waited for (``crews.py``), nor for messages (``vector_dispatch.py``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from openenv_gym.errors import InvalidActionError
from openenv_gym.frames import Wait
from openenv_gym_server.errors import fault, invalid_message
from openenv_gym_server.vector_hosting import HostedVector, VectorResult, wrong_number

__all__ = ["check_idle", "step_first_come"]


def step_first_come(
    hosted: HostedVector,
    env_ids: Sequence[int] | np.ndarray | None,
    count: int,
    decode: Callable[[Sequence[int]], Any],
    wait: Wait,
) -> tuple[list[int], VectorResult]:
    """Begin the steps that a message asks for, and give the rows of all that are done once there are enough.

    Args:
        hosted: the environments.
        env_ids: those that get an action; None: all of them.
        count: how many actions the message has.
        decode: makes the actions of these environments.
        wait: how long to wait.

    Returns:
        The environments of the rows, in the order in which they were done, and the rows.

    Raises:
        InvalidActionError: the message is refused, and nothing has begun.
        EnvironmentExecutionError: an environment has raised.
    """
    if not hosted.first_come:
        message = 'this session answers when all steps are done; ask for vectorization "threads" when it is opened'
        raise invalid_message(fault("not_supported", ["data", "at_least"], message, wait.at_least))
    ids: Sequence[int] = () if env_ids is not None and len(env_ids) == 0 else hosted.chosen(env_ids)
    if count != len(ids):
        raise wrong_number("actions", count, len(ids))
    for row, index in enumerate(ids):
        if index in hosted.under_way:
            message = f"environment {index} has a step under way, whose answer comes first"
            raise invalid_message(fault("under_way", ["data", "env_ids", row], message, index))
    _check_wait(wait, len(ids) + len(hosted.under_way))
    return hosted.step_first_come(ids, decode(ids), wait)


def _check_wait(wait: Wait, under_way: int) -> None:
    if not 0 <= wait.at_least <= under_way:
        message = f"expected a number from 0 to the {under_way} steps that are under way, got {wait.at_least}"
        raise invalid_message(fault("out_of_range", ["data", "at_least"], message, wait.at_least))
    if wait.within_s is not None and not 0 <= wait.within_s <= threading.TIMEOUT_MAX:
        message = f"expected seconds from 0 to {threading.TIMEOUT_MAX:g}, got {wait.within_s}"
        raise invalid_message(fault("out_of_range", ["data", "within_s"], message, str(wait.within_s)))


def check_idle(hosted: HostedVector, what: str) -> None:
    """Refuse what cannot be done while steps are under way.

    Raises:
        InvalidActionError: some are.
    """
    if hosted.under_way:
        message = (
            f"{len(hosted.under_way)} environments have steps under way, and their answers come before {what}: send "
            "steps with at_least until all are answered"
        )
        raise invalid_message(fault("under_way", ["type"], message, what))


def no_wait(field: str) -> InvalidActionError:
    """A refusal of a limit of a wait for nothing in particular."""
    message = "expected at_least beside it, which says how many steps are waited for"
    return invalid_message(fault("missing", ["data", field], message, None))
