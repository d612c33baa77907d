"""One environment of a vector environment in a session of its own, on a server that knows no vector sessions.

What a vector session does on our servers is done here for it: autoreset, the time limit, the last observation. Not for
several of them together (``vector_rollout.py``).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from openenv_gym import messages
from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError
from openenv_gym.interface import Interface
from openenv_gym.shell import Shell
from openenv_gym.spaces.batches import stack
from openenv_gym.transition import (
    NOTES_KEY,
    SeedWatch,
    metadata_of,
    own_flags,
    read_info,
    read_notes,
    read_reward,
    warn_caller,
)
from openenv_gym.vector_rows import Actions, Row
from openenv_gym.vector_sessions import Send, located, read_observation
from openenv_gym.vector_waiting import answer_deadline

__all__ = ["SingleSession"]


class _Asked(enum.Enum):
    """What the request under way is for."""

    RESET = "reset"
    """The caller's reset."""
    STEP = "step"
    """The caller's step."""
    NEXT_EPISODE = "next episode"
    """The caller's step after an end: it begins the next episode."""
    FOLLOWING = "following"
    """The reset that follows the last step of an episode within the caller's step."""


class SingleSession:
    """One environment in its own session.

    Args:
        shell: the session, opened.
        interface: what its environment looks like.
        env_id: the vector environment's index of it.
        autoreset_mode: what happens after the end of an episode.
        max_episode_steps: truncates episodes of so many steps; None: the server's own limit alone.
    """

    count = 1
    partial = True
    into: Any = None  # what comes is no batch

    def __init__(
        self,
        shell: Shell,
        interface: Interface,
        env_id: int,
        *,
        autoreset_mode: AutoresetMode,
        max_episode_steps: int | None,
    ) -> None:
        self.shell = shell
        self.first = env_id
        self.deadline: float | None = None
        self._interface = interface
        self._mode = autoreset_mode
        self.asks_again = autoreset_mode is AutoresetMode.SAME_STEP
        self._limit = max_episode_steps
        self._asked = _Asked.RESET
        self._steps = 0
        self._over = False
        self._last: Row | None = None  # the step that ended the episode, while the next begins
        self._fields: dict[str, Any] = {}
        self._seed: int | None = None
        self._seeds = SeedWatch()

    def prepare_reset(
        self,
        env_ids: np.ndarray | None,  # noqa: ARG002 - there is one environment, and it is meant
        seeds: Sequence[int | None] | None,
        options: Mapping[str, Any] | None,
    ) -> Send:
        """A reset, ready to be sent; see ``VectorSession.prepare_reset``."""
        data = {} if options is None else self._interface.reset_options(options)
        seed = None if seeds is None else seeds[0]
        if seed is not None:
            data["seed"] = seed

        def send() -> None:
            self._seed = seed
            self._begin(_Asked.RESET, messages.Reset, data)

        return send

    def prepare_step(self, actions: Actions, index: slice | np.ndarray | None, env_ids: np.ndarray | None) -> Send:  # noqa: ARG002
        """A step, ready to be sent; see ``VectorSession.prepare_step``."""
        if self._over and self._mode is AutoresetMode.NEXT_STEP:
            return self._next_episode
        data = self._interface.encode_action(actions.samples(index)[0])
        return lambda: self._begin(_Asked.STEP, messages.Step, data)

    def _next_episode(self) -> None:
        self._seed = None
        self._begin(_Asked.NEXT_EPISODE, messages.Reset, {})

    def _begin(self, asked: _Asked, kind: type[messages.Message], data: Mapping[str, Any]) -> None:
        self.deadline = answer_deadline(self.shell.settings, reset=kind is messages.Reset)
        self._asked = asked
        self.shell.begin(kind, data=data)

    def finish(self, timeout_s: float | None) -> Row | None:
        """The answer to the request under way; None where the episode is over and its next one is asked for now.

        Raises:
            RequestTimeoutError: it did not come in time; the session is lost.
            SessionLostError: the session is lost.
            EnvironmentExecutionError: the environment raised; ``env_index`` is the vector environment's index of it.
            InvalidActionError: the server refused the request, and the environment has not moved; the session is lost
                where that was the reset behind an episode's last step.
            ValueMappingError: the observation does not fit its Space.
        """
        try:
            reply = self.shell.finish(timeout_s)
        except EnvironmentExecutionError as error:
            raise located(error, self.first) from error.__cause__
        except InvalidActionError as error:
            if self._asked is _Asked.FOLLOWING:
                self.shell.drop(error.message)
            raise
        assert isinstance(reply, messages.ObservationReply)
        outcome, metadata = reply.data, metadata_of(reply.data)
        self._fields = outcome.observation
        if NOTES_KEY in metadata:
            warn_caller(*(f"{self.shell.base_url}: {note}" for note in read_notes(outcome)))
        observation, info = read_observation(self._interface, self._fields, self.first), read_info(outcome)
        if self._asked is _Asked.STEP:
            stepped = (read_reward(outcome), *own_flags(outcome.done, metadata))
            return self._stepped(Row(self.first, observation, stepped, (info,)))
        self._steps, self._over = 0, False
        if self._seed is not None:
            self._seeds.note(self._seed, self._fields, self.shell.base_url)
        if self._asked is _Asked.RESET:
            return Row(self.first, observation, None, (info,))
        if self._asked is _Asked.NEXT_EPISODE:
            return Row(self.first, observation, (0.0, False, False), (info,))
        assert self._last is not None
        last, self._last = self._last, None
        ending = {"final_obs": last.observation, "final_info": last.infos[0]}
        return Row(self.first, observation, last.stepped, (ending, info))

    def _stepped(self, row: Row) -> Row | None:
        assert row.stepped is not None
        reward, terminated, truncated = row.stepped
        self._steps += 1
        truncated = truncated or (self._limit is not None and self._steps >= self._limit)
        row.stepped = reward, terminated, truncated
        self._over = terminated or truncated
        if not self._over or self._mode is not AutoresetMode.SAME_STEP:
            return row
        self._last, self._seed = row, None
        self._begin(_Asked.FOLLOWING, messages.Reset, {})
        return None

    def latest(self) -> Any:
        """The batch of its last observation, in fresh arrays."""
        return stack(self._interface.observation_space, [self._interface.decode_observation(self._fields)])
