"""The environments of a vector session that are played in turn: their episodes, and what follows on their end.

The three autoreset modes and the further time limit are here, for whatever plays (``players.py``) and wherever
(``crews.py``: all on one thread, or one a thread or process). Not for what is made of their rows (``lane_vector.py``).

Source of the meaning of the modes: ``gymnasium.vector.AutoresetMode`` and ``SyncVectorEnv``, which these give the same
values as.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from gymnasium.vector import AutoresetMode

from openenv_gym_server.legacy import StepTuple
from openenv_gym_server.settings import Names

__all__ = ["LaneSettings", "Lanes", "Player", "Rows"]


@dataclass(slots=True)
class Rows:
    """What a reset or a step of several environments gave: lists of one entry a row.

    Attributes:
        observations: what each observed.
        rewards: none after a reset, as the flags.
        terminations: whether the task itself has ended the episode.
        truncations: whether it was cut off from outside.
        infos: what each said.
        ends: of episodes that others have followed within the step: the row, the last observation, the last info.
        notes: what the caller should hear.
    """

    observations: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    terminations: list[bool] = field(default_factory=list)
    truncations: list[bool] = field(default_factory=list)
    infos: list[dict[str, Any]] = field(default_factory=list)
    ends: list[tuple[int, Any, dict[str, Any]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, further: Rows) -> None:
        """Put further rows after these."""
        before = len(self.observations)
        self.ends += [(before + row, *last) for row, *last in further.ends]
        for name in ("observations", "rewards", "terminations", "truncations", "infos", "notes"):
            getattr(self, name).extend(getattr(further, name))


class Player(Protocol):
    """An environment as a lane plays it.

    Attributes:
        notes: where it writes what the caller should hear.
    """

    notes: list[str]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; ``seed`` and ``options`` are given only where a client begins it, None too."""

    def step(self, action: Any) -> Any:
        """Take an action; the five values, or what ``plain`` makes these of."""

    def plain(self, result: Any) -> StepTuple:
        """The five values in Python's own types, of whatever a step returned."""

    def attribute(self, name: str, allowed: Names, args: list[Any], keywords: dict[str, Any]) -> object:
        """The attribute of that name; where it can be called, what it returns."""

    def set_attribute(self, name: str, value: object, allowed: Names) -> None:
        """Set an attribute."""

    def state(self) -> dict[str, Any] | None:
        """The environment's own state; None where it has none beside what its server counts."""

    def render(self) -> object:
        """The current rendering."""

    def close(self) -> None:
        """Close the environment."""


@dataclass(frozen=True, slots=True)
class LaneSettings:
    """How each goes on.

    Attributes:
        autoreset_mode: what follows on the end of an episode.
        max_episode_steps: steps after which an episode is truncated, besides the environment's own limit.
    """

    autoreset_mode: AutoresetMode
    max_episode_steps: int | None = None


class Lanes:
    """Several environments, or one, played on the calling thread one after another.

    Args:
        players: the environments.
        settings: how each goes on.

    Attributes:
        players: the environments.

    Example:
        >>> from openenv_gym_server.players import GymPlayer
        >>> import gymnasium
        >>> player = GymPlayer(gymnasium.make("CartPole-v1"), "CartPole-v1")
        >>> lanes, rows = Lanes([player], LaneSettings(AutoresetMode.SAME_STEP, 1)), Rows()
        >>> lanes.reset(Rows(), [0], [7], None)
        >>> lanes.step(rows, [0], [1])
        >>> rows.rewards, rows.truncations, len(rows.ends)
        ([1.0], [True], 1)
    """

    __slots__ = ("_anew", "_limit", "_notes", "_over", "_steps", "_takes", "players")

    def __init__(self, players: Sequence[Player], settings: LaneSettings) -> None:
        self.players = players
        self._takes = [player.step for player in players]
        self._limit = settings.max_episode_steps
        self._anew = settings.autoreset_mode is AutoresetMode.SAME_STEP
        self._over = [False] * len(players)
        self._steps = [0] * len(players)
        self._notes: list[str] = []
        for player in players:
            player.notes = self._notes

    def reset(
        self, rows: Rows, ids: Sequence[int], seeds: Sequence[int | None], options: dict[str, Any] | None
    ) -> None:
        """Begin an episode in each of the environments named. Where one raises, the rows are of those before it."""
        for index, seed in zip(ids, seeds, strict=True):
            observation, info = self._begun(index, seed=seed, options=options)
            rows.infos.append(info)
            rows.observations.append(observation)
        self._note(rows)

    def step(self, rows: Rows, ids: Sequence[int], actions: Sequence[Any]) -> None:
        """Take an action in each of the environments named, or begin the next episode where one is over.

        One loop without a call for each, since a call costs as much as a short environment's whole step. Where one
        raises, the rows are of those before it.
        """
        over, takes, limit = self._over, self._takes, self._limit
        for index, action in zip(ids, actions, strict=True):
            if over[index]:
                observation, info = self._begun(index)
                reward, terminated, truncated = 0.0, False, False
            else:
                result = takes[index](action)
                if result.__class__ is not tuple or len(result) != 5:
                    result = self.players[index].plain(result)
                observation, reward, terminated, truncated, info = result
                if not (
                    reward.__class__ is float
                    and terminated.__class__ is truncated.__class__ is bool
                    and info.__class__ is dict
                ):
                    observation, reward, terminated, truncated, info = self.players[index].plain(result)
                if limit is not None:
                    truncated = self._counted(index) or truncated
                if terminated or truncated:
                    if self._anew:
                        rows.ends.append((len(rows.observations), _kept(observation), _kept(info)))
                        observation, info = self._begun(index)
                    else:
                        over[index] = True
            rows.rewards.append(reward)
            rows.terminations.append(terminated)
            rows.truncations.append(truncated)
            rows.infos.append(info and info.copy())  # environments may share one
            rows.observations.append(observation)
        self._note(rows)

    def _begun(self, index: int, **keywords: Any) -> tuple[Any, dict[str, Any]]:
        begun = self.players[index].reset(**keywords)
        self._over[index] = False
        self._steps[index] = 0
        return begun

    def _counted(self, index: int) -> bool:
        self._steps[index] += 1
        return self._steps[index] == self._limit

    def _note(self, rows: Rows) -> None:
        if self._notes:
            rows.notes += self._notes
            self._notes.clear()


def _kept(value: Any) -> Any:
    """The value, whatever the environment writes into its own dicts and arrays when its next episode begins."""
    if isinstance(value, dict):
        return {key: _kept(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_kept, value)) if type(value) is tuple else value
    return value.copy() if type(value) is np.ndarray else value
