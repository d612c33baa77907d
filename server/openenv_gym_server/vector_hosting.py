"""One vector session's environments as its server knows them: one face for every way in which there are several.

Not for how they are played (``lane_vector.py``, ``native_vector.py``) nor for messages (``vector_dispatch.py``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from openenv_gym.errors import InvalidActionError
from openenv_gym.frames import Part, Wait
from openenv_gym.json_text import JSONObject
from openenv_gym_server.errors import fault, invalid_message
from openenv_gym_server.settings import Names

__all__ = ["HostedVector", "VectorResult", "not_steppable", "wrong_number"]


@dataclass(slots=True)
class VectorResult:
    """What a reset or a step of several environments gave, one row an environment.

    Attributes:
        count: how many rows.
        observations: those of all rows, as the vector's own ``fields`` and ``parts`` take them.
        rewards: float64; None after a reset.
        terminations: bool; None after a reset.
        truncations: bool; None after a reset.
        infos: the batched info, without ``final_obs`` where ``final`` has the observations.
        final: the last observations of episodes that were followed by the next within this step, and their rows.
        notes: what the caller should hear.
    """

    count: int
    observations: Any
    rewards: Any = None
    terminations: Any = None
    truncations: Any = None
    infos: dict[str, Any] = field(default_factory=dict)
    final: tuple[list[int], Any] | None = None
    notes: list[str] = field(default_factory=list)


class HostedVector(ABC):
    """Several environments behind one session.

    Attributes:
        num_envs: how many.
        autoreset_mode: what follows on the end of an episode, by Gymnasium's name.
        partial: whether a step may be of some of them.
        first_come: whether a step may be answered before all are done.
        under_way: the environments with a step that was begun and is not answered.
        binary: whether resets and steps may be binary frames.
        finite: whether no answer need be searched for a NaN or an infinity.
        inline: whether steps may run on the event loop.
        limits_tools: whether actions may be calls of tools.
        failed: whether one of them raised, so that the session must end.
        total_steps: steps that were taken since they were made, those of all environments together.
    """

    num_envs: int
    autoreset_mode: str
    partial: bool = True
    first_come: bool = False
    under_way: Collection[int] = frozenset()
    binary: bool = False
    finite: bool = False
    inline: bool = False
    limits_tools: bool = False
    failed: bool = False
    asynchronous: bool = False
    total_steps: int = 0

    @property
    @abstractmethod
    def environment_type(self) -> str:
        """The name of the environments' class."""

    @property
    @abstractmethod
    def render_mode(self) -> str | None:
        """What ``render`` gives."""

    @abstractmethod
    def metadata(self) -> JSONObject:
        """The ``/metadata`` document of one of them."""

    @abstractmethod
    def schema(self) -> JSONObject:
        """The ``/schema`` document of one of them."""

    @abstractmethod
    def decoded(self, actions: Sequence[JSONObject], ids: Sequence[int]) -> Any:
        """The actions of these environments, none of which has moved.

        Raises:
            InvalidActionError: one is refused.
        """

    @abstractmethod
    def unpacked(self, body: memoryview, ids: Sequence[int]) -> Any:
        """The same of a binary frame.

        Raises:
            InvalidActionError: one is refused, or the bytes are no batch of actions.
        """

    @abstractmethod
    def reset(self, ids: Sequence[int], seeds: Sequence[int | None], options: dict[str, Any] | None) -> VectorResult:
        """Begin an episode in each of these environments.

        Raises:
            EnvironmentExecutionError: one of them raised; ``env_index`` is the one, where known.
        """

    @abstractmethod
    def step(self, ids: Sequence[int], actions: Any) -> VectorResult:
        """Take the actions.

        Raises:
            InvalidActionError: an environment's episode is over, or none has begun; none has moved.
            EnvironmentExecutionError: one of them raised; ``env_index`` is the one, where known.
        """

    @abstractmethod
    def fields(self, observations: Any, count: int, ids: Sequence[int]) -> list[JSONObject]:
        """Each observation as the JSON of its fields.

        Raises:
            EnvironmentExecutionError: one cannot be sent.
        """

    @abstractmethod
    def parts(self, observations: Any, count: int, ids: Sequence[int]) -> list[Part]:
        """The observations as the batch of a binary frame.

        Raises:
            EnvironmentExecutionError: one cannot be sent.
        """

    @abstractmethod
    def state(self) -> JSONObject:
        """Where each of them is."""

    @abstractmethod
    def render(self) -> object:
        """The current rendering of each."""

    @abstractmethod
    def call(self, name: str, args: list[Any], keywords: dict[str, Any], allowed: Names) -> object:
        """What the method of that name returns in each; of an attribute, its value.

        Raises:
            InvalidActionError: the name is not allowed, or there is none.
        """

    @abstractmethod
    def set_attributes(self, name: str, values: list[Any], allowed: Names) -> None:
        """Set an attribute in each.

        Raises:
            InvalidActionError: the name is not allowed.
        """

    @abstractmethod
    def close(self) -> None:
        """Close all of them."""

    @property
    def busy(self) -> bool:
        """Whether an environment is at a step whose answer no message waits for."""
        return False

    def step_first_come(self, ids: Sequence[int], actions: Any, wait: Wait) -> tuple[list[int], VectorResult]:
        """Begin these steps, and give the rows of all that are done once there are enough.

        Raises:
            InvalidActionError: an environment's episode is over, or none has begun; none has moved.
            EnvironmentExecutionError: one of them raised; ``env_index`` is the one.
        """
        raise NotImplementedError(f"expected environments that are first_come, got {type(self).__name__}")

    def give_up(self) -> None:  # noqa: B027 - most cannot
        """Have what is under way end with an error, if it can; called while the session's thread waits for it."""

    def tool_timeout_s(self, actions: Sequence[JSONObject]) -> float | None:  # noqa: ARG002 - without tools
        """Seconds that all of the actions may take together; None for ever."""
        return None

    def chosen(self, env_ids: Sequence[int] | np.ndarray | None) -> Sequence[int]:
        """The environments that a message names; all of them where it names none.

        Raises:
            InvalidActionError: one is named twice, or is none of this session's.
        """
        if env_ids is None:
            return range(self.num_envs)
        if len(env_ids) > self.num_envs:
            raise wrong_number("env_ids", len(env_ids), self.num_envs)
        ids = [int(index) for index in env_ids]
        if not ids:
            message = "expected the ids of some environments, or none of them for all, got an empty list"
            raise invalid_message(fault("too_short", ["data", "env_ids"], message, ids))
        seen: set[int] = set()
        for row, index in enumerate(ids):
            if not 0 <= index < self.num_envs or index in seen:
                why = "is named twice" if index in seen else f"is none of the {self.num_envs} of this session"
                raise invalid_message(fault("env_id", ["data", "env_ids", row], f"environment {index} {why}", index))
            seen.add(index)
        return ids


def wrong_number(what: str, given: int, wanted: int) -> InvalidActionError:
    """A refusal of a list that has not one entry an environment."""
    message = f"expected {wanted} {what}, one an environment, got {given}"
    return invalid_message(fault("wrong_number", ["data", what], message, given))


def not_steppable(index: int, *, begun: bool) -> InvalidActionError:
    """A refusal of a step in an environment that has no episode to step in; none has moved."""
    message = f"environment {index} was not reset yet; reset it before its first step"
    if begun:
        message = (
            f"the episode of environment {index} is over and this session does not begin the next by itself (autoreset "
            'mode "Disabled"); reset it first: options["reset_mask"] of reset() names the environments that begin anew'
        )
    return invalid_message(fault("episode_over" if begun else "not_reset", ["data", "env_ids"], message, index))
