"""Batched infos as Gymnasium's vector environments make them: from single infos, and from batched infos of parts.

A batched info has, for each key, one array with a row an environment, and under ``_key`` a mask of those that said
anything; the first value decides the array's dtype and shape. Not for infos on the wire (``info.py``).

Source of the rules: ``gymnasium.vector.VectorEnv._add_info``, gymnasium 1.4.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["add_info", "merge_infos", "with_final_observations"]


def add_info(infos: dict[str, Any], info: Mapping[str, Any], row: int, count: int) -> None:
    """Add one environment's info to the batched one, in place.

    Args:
        infos: the batched info so far; empty to begin with.
        info: what the environment said.
        row: its row.
        count: how many rows there are.

    Raises:
        TypeError, ValueError: a value does not fit the array that the first one made, as in Gymnasium.

    Example:
        >>> infos: dict[str, Any] = {}
        >>> add_info(infos, {"lives": 3}, 1, 2)
        >>> infos
        {'lives': array([0, 3]), '_lives': array([False,  True])}
    """
    for key, value in info.items():
        if isinstance(value, dict) and key != "final_obs":
            add_info(infos.setdefault(key, {}), value, row, count)
        else:
            if key not in infos:
                infos[key] = _array_for(None if key == "final_obs" else value, count)
            infos[key][row] = value
        _mask(infos, key, count)[row] = True


def merge_infos(infos: dict[str, Any], part: Mapping[str, Any], rows: np.ndarray, count: int) -> None:
    """Add the batched info of some environments to that of all, in place.

    As if they had never been apart, where a key's values are of one type: a part has cast them to its own first one's.

    Args:
        infos: the batched info so far; empty to begin with.
        part: the batched info of some of the environments.
        rows: int64, their rows.
        count: how many rows there are in ``infos``.

    Raises:
        TypeError, ValueError: values of one key do not fit together, as in Gymnasium.

    Example:
        >>> infos: dict[str, Any] = {}
        >>> merge_infos(infos, {"lives": np.array([5]), "_lives": np.array([True])}, np.array([1]), 2)
        >>> infos
        {'lives': array([0, 5]), '_lives': array([False,  True])}
    """
    for key, value in part.items():
        said = part.get(f"_{key}")
        if said is None:
            continue  # it is the mask of another key
        if isinstance(value, dict):
            merge_infos(infos.setdefault(key, {}), value, rows, count)
        else:
            if key not in infos:
                infos[key] = _empty_array(count, value)
            _assign(infos[key], rows[said], value[said])
        _mask(infos, key, count)[rows[said]] = True


def with_final_observations(infos: Mapping[str, Any], rows: np.ndarray, observations: list[Any], count: int) -> Any:
    """The batched info with the last observations of the episodes that have ended, where Gymnasium has them.

    Args:
        infos: the batched info; it may have the mask ``_final_obs`` already.
        rows: int64, the rows whose episodes have ended.
        observations: the last observation of each.
        count: how many rows there are.
    """
    array, mask = np.full(count, None, object), np.zeros(count, np.bool_)
    for row, observation in zip(rows.tolist(), observations, strict=True):
        array[row] = observation
    mask[rows] = True
    added = {"final_obs": array, "_final_obs": mask}
    if "_final_obs" not in infos:
        return added | dict(infos)
    merged: dict[str, Any] = {}
    for key, value in infos.items():
        merged |= added if key == "_final_obs" else {key: value}
    return merged


def _mask(infos: dict[str, Any], key: str, count: int) -> np.ndarray:
    mask = infos.get(f"_{key}")
    if mask is None:
        mask = infos[f"_{key}"] = np.zeros(count, np.bool_)
    assert isinstance(mask, np.ndarray)
    return mask


def _array_for(value: object, count: int) -> np.ndarray:
    """The array that the first value of a key makes."""
    if type(value) in {int, float, bool} or isinstance(value, np.number):
        return np.zeros(count, type(value))
    if isinstance(value, np.ndarray):
        return np.zeros((count, *value.shape), value.dtype)
    return np.full(count, None, object)


def _empty_array(count: int, like: np.ndarray) -> np.ndarray:
    if like.dtype == object and like.ndim == 1:
        return np.full(count, None, object)
    return np.zeros((count, *like.shape[1:]), like.dtype)


def _assign(array: np.ndarray, rows: np.ndarray, values: np.ndarray) -> None:
    if not (array.dtype.hasobject or values.dtype.hasobject):
        array[rows] = values
        return
    # One by one, for an object may be a sequence, which would be taken apart.
    for row, value in zip(rows.tolist(), values, strict=True):
        array[row] = value
