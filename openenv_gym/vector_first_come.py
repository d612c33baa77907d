"""One session whose server answers first come, first served: each answer has whatever steps are done by then.

Resets, and steps of all in lockstep, are those of every session (``vector_sessions.py``); when to ask is
``vector_rollout.py``'s to say.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from openenv_gym import frames, messages
from openenv_gym.interface import Interface
from openenv_gym.shell import Shell
from openenv_gym.vector_rows import Actions, Rows
from openenv_gym.vector_sessions import Send, VectorSession, malformed

__all__ = ["FirstComeSession"]


class FirstComeSession(VectorSession):
    """A contiguous block of the vector environment's environments, in one session with a thread for each.

    Args:
        shell: the session, opened.
        interface: what its environments look like.
        first: the vector environment's index of its first environment.
        binary: whether resets and steps are binary frames; the server must have offered them.
    """

    def __init__(self, shell: Shell, interface: Interface, first: int, *, binary: bool) -> None:
        super().__init__(shell, interface, first, binary=binary)
        self._due = np.full(self.count, np.inf)  # until when each must have answered
        self._under_way = np.zeros(self.count, np.bool_)
        self._waits = False

    @property
    def under_way(self) -> int:
        """How many environments have a step under way."""
        return int(np.count_nonzero(self._under_way))

    def prepare_send(self, actions: Actions, index: np.ndarray, env_ids: np.ndarray) -> Send:
        """Steps, ready to be sent, whose answer comes at once with whatever is done by then.

        Args:
            actions: a batch with the actions of these environments.
            index: their rows in it.
            env_ids: the session's own indices of the environments to step, none of which has a step under way.

        Raises:
            ValueMappingError: an action has no form on the wire.
        """
        encoded = self._encoded(actions, index, len(env_ids))
        return lambda: self._begin_waiting(env_ids, encoded, frames.Wait(0))

    def ask(self, at_least: int, within_s: float | None) -> None:
        """Ask for what is done, once so many steps are or so many seconds have passed; some must be under way."""
        self._begin_waiting(np.empty(0, np.int64), [], frames.Wait(min(at_least, self.under_way), within_s))

    def _begin_waiting(self, env_ids: np.ndarray, actions: list[Any], wait: frames.Wait) -> None:
        self._begin(messages.VectorStep, None)
        if self.deadline is not None:
            self._due[env_ids] = self.deadline
        self._under_way[env_ids] = True
        if self.deadline is not None:
            self.deadline = self.deadline.at(float(self._due[self._under_way].min()))
        self._waits = True
        if not self._binary:
            data = messages.VectorActions(
                actions=actions, env_ids=env_ids.tolist(), at_least=wait.at_least, within_s=wait.within_s
            )
            self.shell.begin(messages.VectorStep, data=data)
        else:
            self.shell.begin_packed(
                messages.VectorStep,
                lambda request_id: frames.write_waiting_step(request_id, len(env_ids), env_ids, actions, wait),
            )

    def finish(self, timeout_s: float | None) -> Rows | None:
        """The answer to the request under way; None where no step was done.

        Raises:
            RequestTimeoutError, SessionLostError, EnvironmentExecutionError, InvalidActionError, ProtocolError: as in
                any session.
        """
        try:
            rows = super().finish(timeout_s)
        finally:
            self._waits = False
        assert rows is not None
        return rows if len(rows.env_ids) else None

    def _require_named(self, env_ids: np.ndarray | None, count: int) -> int:
        if not self._waits:
            return super()._require_named(env_ids, count)
        named = np.empty(0, np.int64) if env_ids is None else env_ids
        known = named[(named >= 0) & (named < self.count)]
        if not (len(known) == len(set(known.tolist())) == count and self._under_way[known].all()):
            raise malformed("the answer of environments with a step under way")
        self._under_way[named] = False
        self._due[named] = np.inf
        self._named = named
        return count
