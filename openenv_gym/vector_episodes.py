"""The episodes of a vector environment: beginning them, in sessions that are opened anew where the last were lost.

Not for steps (``vector_rollout.py``), nor for the face that callers see (``vector.py``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from openenv_gym.errors import CapacityError, SessionLostError, SessionStateError, SpaceMappingError
from openenv_gym.interface import Interface
from openenv_gym.vector_arguments import Generators
from openenv_gym.vector_batches import join_batches
from openenv_gym.vector_infos import merge_infos
from openenv_gym.vector_rollout import EnvSession, Rollout
from openenv_gym.vector_rows import join_answers
from openenv_gym.vector_sessions import Send
from openenv_gym.vector_waiting import Answer

__all__ = ["Episodes", "Open"]

_FIRST_PAUSE_S = 0.02

Open = Callable[[], "tuple[list[EnvSession], Interface]"]
"""Opens all sessions, or none."""


class _Reset(NamedTuple):
    """A reset that is under way."""

    seeds: list[int | None] | None
    options: dict[str, Any] | None
    mask: np.ndarray | None
    retry: bool  # whether sessions that turn out to be lost may be opened anew


class Episodes:
    """All environments' episodes.

    Args:
        open_sessions: opens all sessions, or none.
        num_envs: how many environments there are.
        patience_s: seconds for which full servers are asked again for the places of lost sessions.

    Attributes:
        rollout: the sessions, and what is under way in them.
        interface: what the environments look like.
        begun: whether every environment has had a reset since its session was opened.
        over: bool, whose episode has ended; kept by whoever steps.
        generators: this side's random number generators.
    """

    def __init__(self, open_sessions: Open, num_envs: int, patience_s: float) -> None:
        self._open = open_sessions
        self._patience_s = patience_s
        self._num_envs = num_envs
        self._asked: _Reset | None = None
        self.begun = False
        self.over = np.zeros(num_envs, np.bool_)
        self.generators = Generators(num_envs)
        sessions, self.interface = open_sessions()
        self.rollout = Rollout(sessions)

    def require_begun(self) -> None:
        """Raise ``SessionStateError`` where there was no reset of all yet; lost sessions are told of elsewhere."""
        if not self.begun and self.rollout.alive:
            raise SessionStateError(
                "expected a reset of all environments first: call reset() without reset_mask",
                expected="episode",
                state="open",
            )

    def require_running(self, env_ids: np.ndarray | slice) -> None:
        """Raise ``SessionStateError`` where one of these episodes is over."""
        if self.over[env_ids].any():
            raise SessionStateError(
                f"expected episodes that go on, but those of the environments {np.flatnonzero(self.over).tolist()} are "
                'over: reset them with options={"reset_mask": …}, or choose another autoreset_mode',
                expected="episode",
                state="over",
            )

    def begin(self, seeds: list[int | None] | None, options: dict[str, Any] | None, mask: np.ndarray | None) -> None:
        """Ask for new episodes and wait for nothing.

        Args:
            seeds: one an environment; None: none is sent.
            options: for each environment that is reset.
            mask: which to reset; None: all, in new sessions where one was lost.

        Raises:
            SessionStateError: some, before there was a reset of all.
            SessionLostError: some, and a session is lost.
            ServerError, UnreachableError: new sessions could not be opened.
        """
        if mask is not None and mask.all():
            mask = None
        if mask is not None:
            self.require_begun()
        lost = mask is None and not self.rollout.alive
        if lost:
            self._reopen()
        self._asked = _Reset(seeds, options, mask, retry=mask is None and not lost)
        try:
            self._ask()
        except SessionLostError:
            self._ask_anew()

    def finish(self, until: float | None, into: Any = None) -> tuple[Any, dict[str, Any]]:
        """The batch of observations and the batched info.

        Args:
            until: when they must be there; None: when the settings say so.
            into: as ``Rollout.gather``.

        Raises:
            VectorTimeoutError, ServerError, SessionLostError: as ``Rollout.gather``.
        """
        answers = self._answers(until, into)
        asked, self._asked = self._asked, None
        assert asked is not None
        space = self.interface.observation_space
        rows = join_answers(space, answers)
        chosen = None if asked.mask is None else np.flatnonzero(asked.mask)
        if asked.seeds is not None:
            seeds = asked.seeds if chosen is None else [asked.seeds[env_id] for env_id in chosen.tolist()]
            self.generators.note(seeds, chosen)
        self.over[rows.env_ids] = False
        self.begun = True
        if chosen is None:
            return rows.observations, rows.infos
        infos: dict[str, Any] = {}
        merge_infos(infos, rows.infos, rows.env_ids, self._num_envs)
        latest = [session.latest() for session in self.rollout.sessions]
        return latest[0] if len(latest) == 1 else join_batches(space, latest), infos

    def _answers(self, until: float | None, into: Any) -> list[Answer]:
        try:
            return self.rollout.gather(until, into)
        except SessionLostError:
            self._ask_anew()
        return self.rollout.gather(until, into)

    def _ask(self) -> None:
        asked = self._asked
        assert asked is not None

        def prepare(session: EnvSession, rows: slice) -> Send | None:
            seeds = None if asked.seeds is None else asked.seeds[rows]
            if asked.mask is None:
                return session.prepare_reset(None, seeds, asked.options)
            chosen = np.flatnonzero(asked.mask[rows])
            if not chosen.size:
                return None
            seeds = None if seeds is None else [seeds[env_id] for env_id in chosen.tolist()]
            return session.prepare_reset(chosen if chosen.size < session.count else None, seeds, asked.options)

        self.rollout.begin(prepare)

    def _ask_anew(self) -> None:
        """In the handler of a lost session: ask in new ones, where they are not new already.

        A connection may have ended unnoticed since the last call, and a reset of all asks for fresh episodes anyway.
        """
        if self._asked is None or not self._asked.retry:
            raise  # noqa: PLE0704 - what is being handled
        self._asked = self._asked._replace(retry=False)
        self._reopen()
        self._ask()

    def _reopen(self) -> None:
        """New sessions; the Spaces that the caller has built on must still be the servers'."""
        self.rollout.give_up("new sessions were asked for")
        self.begun = False
        sessions, interface = self._open_in_turn()
        self.rollout = Rollout(sessions)
        known, found = ((face.action_space, face.observation_space) for face in (self.interface, interface))
        if known != found:
            self.rollout.give_up("the servers now serve another environment")
            raise SpaceMappingError(
                "expected the servers to serve the environment of the lost sessions, but they serve another: make a "
                "new one",
                path="$",
            )

    def _open_in_turn(self) -> tuple[list[EnvSession], Interface]:
        """Open, again and again where it is the lost sessions, at work there still, that fill the servers."""
        until, pause_s = time.monotonic() + self._patience_s, _FIRST_PAUSE_S
        while True:
            try:
                return self._open()
            except CapacityError:
                if time.monotonic() + pause_s > until:
                    raise
            time.sleep(pause_s)
            pause_s *= 2
