"""The infos of several environments as one; whose info does not fit the others' is named.

Not for the rule itself (``openenv_gym.vector_infos``), nor for their form on the wire (``openenv_gym.info``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from openenv_gym.vector_infos import add_info
from openenv_gym_server.crews import raise_in_lane

__all__ = ["batched"]


def batched(entries: Iterable[tuple[int, Mapping[str, Any]]], count: int) -> dict[str, Any]:
    """One info of many: each key with one entry a row, and a mask under the key with an underscore before it.

    Args:
        entries: the row and the info of each environment, in the order in which Gymnasium adds them.
        count: how many rows there are.

    Raises:
        EnvironmentExecutionError: Gymnasium cannot join two infos (a string and then a dict under one key);
            ``env_index`` is the row of the second.

    Example:
        >>> batched([(0, {"score": 1.5}), (2, {"score": 0.5})], 3)
        {'score': array([1.5, 0. , 0.5]), '_score': array([ True, False,  True])}
    """
    infos: dict[str, Any] = {}
    for row, info in entries:
        try:
            add_info(infos, info, row, count)
        except Exception as error:  # noqa: BLE001 - what an info holds is the environment's, and so is its failure
            raise_in_lane(error, row)
    return infos
