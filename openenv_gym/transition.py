"""What an answer to reset or step says in Gymnasium's terms: reward, terminated and truncated, info, notes.

OpenEnv's envelope has one ``done`` and free metadata; this project's servers put both flags and the exact info into the
metadata. Everything here takes any JSON in their places: what has not the form it would have from such a server is
the environment's own metadata, and so its info. Not for observations (``interface.py``).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any

from openenv_gym.errors import OpenEnvGymWarning
from openenv_gym.info import decode_info
from openenv_gym.json_text import encode_json
from openenv_gym.messages import Outcome
from openenv_gym.spaces.atoms import SPELLED

__all__ = [
    "EXACT_INFO_KEY",
    "NOTES_KEY",
    "SeedWatch",
    "metadata_of",
    "own_flags",
    "own_reward",
    "read_flags",
    "read_info",
    "read_notes",
    "read_reward",
    "warn_caller",
]

NOTES_KEY = "x-warnings"
"""Where a server of ours puts what its client's user should hear once: a list of strings."""

EXACT_INFO_KEY = "x-gymnasium-info"
"""Where a server of ours puts the exact form of an info whose plain form loses something."""

_FLAGS = ("terminated", "truncated")
_NO_METADATA: Mapping[str, Any] = {}


def metadata_of(outcome: Outcome) -> Mapping[str, Any]:
    """The envelope's metadata; empty where it has none."""
    return outcome.metadata or _NO_METADATA


def read_reward(outcome: Outcome) -> float:
    """The reward as a float64; 0.0 where the answer has none."""
    reward = outcome.reward
    if reward is None:
        reward = _spelled_reward(metadata_of(outcome))
    return 0.0 if reward is None else float(reward)


def own_reward(reward: bool | float | None, metadata: Mapping[str, Any]) -> bool | float | None:
    """The reward of an answer as the environment gave it; None where it gave none.

    JSON has no NaN and no infinities: the envelope says null then, and the metadata which.
    """
    return _spelled_reward(metadata) if reward is None else reward


def read_flags(outcome: Outcome) -> tuple[bool, bool]:
    """``terminated`` and ``truncated``."""
    return own_flags(outcome.done, metadata_of(outcome))


def own_flags(done: bool, metadata: Mapping[str, Any]) -> tuple[bool, bool]:
    """``terminated`` and ``truncated``; ``done`` is termination unless the metadata says otherwise."""
    truncated = metadata.get("truncated") is True or metadata.get("TimeLimit.truncated") is True
    terminated = metadata.get("terminated")
    return (terminated if isinstance(terminated, bool) else done and not truncated), truncated


def read_info(outcome: Outcome) -> dict[str, Any]:
    """What the environment said in ``info``, or in its metadata where it knows no info.

    Raises:
        ValueMappingError: the exact form of the info is malformed.
    """
    metadata = metadata_of(outcome)
    if not metadata:
        return {}
    rest = {
        key: value
        for key, value in metadata.items()
        # Without a call for what nearly every answer has.
        if not (key in _FLAGS and type(value) is bool) and not _is_read_elsewhere(key, value, outcome)
    }
    info = rest.get("info")
    if not isinstance(info, dict) or not all(isinstance(metadata.get(flag), bool) for flag in _FLAGS):
        return rest
    del rest["info"]
    return decode_info(info, rest.pop(EXACT_INFO_KEY, None)) | rest


def read_notes(outcome: Outcome) -> list[str]:
    """What the server noted for its user."""
    notes: Any = metadata_of(outcome).get(NOTES_KEY)
    return list(notes) if _is_notes(notes) else []


def warn_caller(*notes: str) -> None:
    """Warn of each at the place that called this package; of nothing, at no cost."""
    if not notes:
        return
    level, frame = 1, sys._getframe()  # noqa: SLF001  (as warnings itself does)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("openenv_gym."):
        level, frame = level + 1, frame.f_back
    for note in notes:
        warnings.warn(note, OpenEnvGymWarning, stacklevel=level)


class SeedWatch:
    """Notices a server that takes a seed and drops it, as one of another make may: two equal seeds give two episodes.

    Example:
        >>> watch = SeedWatch()
        >>> watch.note(7, {"text": "hello"}, "http://host")
        >>> watch.note(7, {"text": "hello"}, "http://host")
    """

    def __init__(self) -> None:
        self._last: tuple[int, bytes] | None = None

    def note(self, seed: int, observation: Mapping[str, Any], base_url: str) -> None:
        """A reset with this seed gave this first observation; warns where the last one's was another."""
        first = encode_json(observation)
        last, self._last = self._last, (seed, first)
        if last is not None and last[0] == seed and last[1] != first:
            warn_caller(
                f"{base_url}: two resets with seed={seed} gave different first observations; "
                "the server seems to ignore seeds"
            )


def _is_read_elsewhere(key: str, value: object, outcome: Outcome) -> bool:
    """Whether one of the other functions here gives this entry of the metadata its meaning."""
    if key == "reward":
        return outcome.reward is None and isinstance(value, str) and value in SPELLED
    return key == NOTES_KEY and _is_notes(value)


def _is_notes(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(note, str) for note in value)


def _spelled_reward(metadata: Mapping[str, Any]) -> float | None:
    spelled = metadata.get("reward")
    return SPELLED.get(spelled) if isinstance(spelled, str) else None
