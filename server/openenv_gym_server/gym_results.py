"""What a Gymnasium environment's step returned, in Python's own types.

Rewards come as NumPy scalars, as arrays of one number and as None, flags as NumPy's bools; every face of an environment
takes them alike. Not for the old API's four values (``legacy.py``).
"""

from __future__ import annotations

from typing import Any

from openenv_gym_server.errors import UnsendableError
from openenv_gym_server.legacy import StepTuple, modern_info, modern_step

__all__ = ["as_flag", "as_reward", "plain_step"]


def plain_step(result: Any, env_id: str) -> StepTuple:
    """Observation, reward, terminated, truncated and info of whatever a step returned.

    Args:
        result: what the environment's step returned.
        env_id: the environment's name, for errors.

    Raises:
        UnsendableError: it is no step's result, the reward is no number, a flag no bool, or info no mapping.

    Example:
        >>> import numpy as np
        >>> plain_step((0, np.float32(0.5), np.bool_(True), False, {}), "Demo-v0")
        (0, 0.5, True, False, {})
    """
    if result.__class__ is not tuple or len(result) != 5:
        result = modern_step(result)
    obs, reward, terminated, truncated, info = result
    if reward.__class__ is not float:
        reward = as_reward(reward, env_id)
    if terminated.__class__ is not bool:
        terminated = as_flag("terminated", terminated, env_id)
    if truncated.__class__ is not bool:
        truncated = as_flag("truncated", truncated, env_id)
    if info.__class__ is not dict:
        info = modern_info(info)
    return obs, reward, terminated, truncated, info


def as_reward(value: Any, env_id: str) -> float:
    """The reward as float64, for every scalar-like: Python and NumPy numbers, arrays of shape () and (1,), None."""
    if value is None:
        return 0.0
    if isinstance(value, float):
        return float(value)
    shape = tuple(getattr(value, "shape", ()))
    number = value.item() if shape in {(), (1,)} and hasattr(value, "item") else value
    cause: Exception | None = None
    if not isinstance(number, str | bytes | bytearray):  # float() would read a number out of their text
        try:
            return float(number)
        except (TypeError, ValueError, OverflowError) as error:
            cause = error
    raise UnsendableError(
        f"expected {env_id} to give a real number as reward, got {type(value).__name__}"
        f"{f' of shape {shape}' if shape else ''}{f' ({cause})' if cause else ''}; "
        "the environment has already advanced",
        code="EXECUTION_ERROR",
    ) from cause


def as_flag(name: str, value: object, env_id: str) -> bool:
    """The flag of that name as Python's bool.

    Raises:
        UnsendableError: it is none.
    """
    # NumPy's bool, and the scalar of any other array library.
    if getattr(value, "shape", None) == () and str(getattr(value, "dtype", "")).endswith("bool"):
        return bool(value)
    raise UnsendableError(
        f"expected {env_id} to give {name} as a bool, got {type(value).__name__} {str(value)[:100]}; "
        "the environment has already advanced",
        code="EXECUTION_ERROR",
    )
