"""The sessions of a vector environment together: in lockstep, or first come first served.

Who is asked what, whose answer is out, and that a failure of one ends all. Not for a single session's requests
(``vector_sessions.py``, ``vector_singles.py``), nor for opening them (``vector_opening.py``).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from gymnasium.error import AlreadyPendingCallError

from openenv_gym import messages
from openenv_gym.errors import InvalidActionError, OpenEnvGymError, ServerError
from openenv_gym.shell import reason_of
from openenv_gym.vector_first_come import FirstComeSession
from openenv_gym.vector_rows import Actions, Rows
from openenv_gym.vector_sessions import Send
from openenv_gym.vector_waiting import (
    Answer,
    Answering,
    VectorTimeoutError,
    arrived,
    deadline_in,
    finish_all,
    finish_in_time,
    finish_one,
)
from openenv_gym.waiting import Lookout, close_all

__all__ = ["EnvSession", "Rollout"]


class EnvSession(Answering, Protocol):
    """A session of some of the environments: ``VectorSession`` or ``SingleSession``.

    Attributes:
        first: the vector environment's index of its first environment.
        into: a batch to whose arrays the next answer about all of them may be written; None: to fresh ones.
        asks_again: whether an answer may make a further request necessary, which must not wait for others' answers.
    """

    first: int
    asks_again: bool
    into: Any

    @property
    def count(self) -> int:
        """How many environments it has."""
        ...

    @property
    def partial(self) -> bool:
        """Whether a step may be for some of them."""
        ...

    def prepare_reset(self, env_ids: np.ndarray | None, seeds: Any, options: Any) -> Send:
        """A reset, ready to be sent."""
        ...

    def prepare_step(self, actions: Actions, index: slice | np.ndarray | None, env_ids: np.ndarray | None) -> Send:
        """A step, ready to be sent."""
        ...

    def latest(self) -> Any:
        """The batch of the last observations."""
        ...


class Rollout:
    """The requests that are under way in the sessions.

    Args:
        sessions: contiguous blocks of environments, in order.

    Attributes:
        sessions: these.
        outstanding: how many environments have an action on its way, or an answer that ``receive`` has not given.
    """

    def __init__(self, sessions: Sequence[EnvSession]) -> None:
        self.sessions = tuple(sessions)
        counts = [session.count for session in self.sessions]
        self._owners = np.repeat(np.arange(len(counts)), counts)
        self._first_come = {
            place: session for place, session in enumerate(self.sessions) if isinstance(session, FirstComeSession)
        }
        self._queues: list[deque[Send]] = [deque() for _ in counts]
        self._busy: set[int] = set()
        self._on_way = np.zeros(sum(counts), np.bool_)
        self.outstanding = 0
        self._answers: deque[Answer] = deque()
        self._asked: list[EnvSession] = []
        self._lookout = Lookout([session.shell for session in self.sessions])
        self._patience_s = 0.0

    @property
    def alive(self) -> bool:
        """Whether every session goes on, as far as can be known without asking the servers."""
        return all(session.shell.alive for session in self.sessions)

    @property
    def step_timeout_s(self) -> float | None:
        """Seconds for anything but a reset; the sessions have it in common."""
        return self.sessions[0].shell.settings.step_timeout_s

    def begin(self, prepare: Callable[[EnvSession, slice], Send | None]) -> None:
        """Ask the sessions, each for its part, and wait for nothing.

        Args:
            prepare: makes a session's request, given the rows that it is of; None: nothing is asked of it. No request
                is sent before all are made.

        Raises:
            SessionLostError: a session is lost; then all are given up.
        """
        requests = []
        for session in self.sessions:
            request = prepare(session, slice(session.first, session.first + session.count))
            if request is not None:
                requests.append((session, request))
        self._asked = [session for session, _ in requests]
        try:
            self._note_silence()
            for _, request in requests:
                request()
        except BaseException as error:
            for session in self._asked:
                session.shell.silent = False
            self._end_unless(error, OpenEnvGymError)
            raise

    def _note_silence(self) -> None:
        """Look at once for messages that nobody has asked for, where each session would look before it speaks."""
        plain = [session.shell for session in self._asked if not session.shell.session.extended]
        if len(plain) > 1:
            self._lookout.note_silence(plain)

    def begin_step(self, actions: Actions) -> None:
        """Ask every session for a step with its rows of the actions; see ``begin``."""
        whole = len(self.sessions) == 1
        self.begin(lambda session, rows: session.prepare_step(actions, None if whole else rows, None))

    def gather(self, until: float | None, into: Any = None) -> list[Answer]:
        """The answers to what ``begin`` has asked, in the order of the sessions.

        Args:
            until: when all must be there; None: when the settings say so.
            into: a batch of all environments, to whose arrays a single session may write what they observe.

        Raises:
            VectorTimeoutError: an answer is late; all sessions are given up.
            EnvironmentExecutionError: an environment raised; all sessions are given up.
            InvalidActionError: a server refused an action. With one session nothing has moved and it goes on; of
                several, others have, and all are given up.
            SessionLostError: a session is lost; all are given up.
        """
        begun = time.monotonic()
        try:
            if len(self.sessions) == 1:
                self.sessions[0].into = into
            answers = finish_all(self._asked, until, self._lookout, self._patience_s)
        except BaseException as error:
            self._end_unless(error, *((InvalidActionError,) if len(self.sessions) == 1 else ()))
            raise
        if not any(session.asks_again for session in self._asked):
            self._patience_s = min(time.monotonic() - begun, _LONGEST_PATIENCE_S)
        return answers

    def ask_each(self, ask: Callable[[EnvSession], None], timeout_s: float | None) -> list[messages.Reply]:
        """Anything else of every session: all are asked before the first answer is waited for.

        Args:
            ask: makes the request of one.
            timeout_s: seconds for all answers together; None or 0: no limit.

        Raises:
            VectorTimeoutError: an answer is late; all are given up.
            ServerError: a server refused; every session that goes on has been heard.
            SessionLostError: a session is lost; all are given up.
        """
        replies, refusals = [], []
        try:
            for session in self.sessions:
                ask(session)
            until = deadline_in(timeout_s or None, "step_timeout_s")
            for session in self.sessions:
                try:
                    replies.append(finish_in_time(session.shell.finish, until))
                except ServerError as error:
                    refusals.append(error)
        except BaseException as error:
            self._end_unless(error, OpenEnvGymError)
            raise
        if refusals:
            self._end_unless(refusals[0], ServerError)
            raise refusals[0]
        return replies

    def send(self, actions: Actions, env_ids: np.ndarray) -> None:
        """Give some environments their actions, and wait for nothing.

        Args:
            actions: a batch.
            env_ids: int64, whose action each of its rows is.

        Raises:
            AlreadyPendingCallError: one of them has an action on its way, or an answer that was not received.
            ValueError: some, but not all, of a session that steps all its environments at once. Nothing was sent.
            SessionLostError: a session is lost; all are given up.
        """
        pending = env_ids[self._on_way[env_ids]]
        if pending.size:
            raise AlreadyPendingCallError(
                f"expected environments without an action on its way, but {pending.tolist()} have one: recv() first",
                "send",
            )
        owners = self._owners[env_ids]
        requests = [(place, self._part(place, actions, env_ids, owners)) for place in np.unique(owners).tolist()]
        try:
            self._on_way[env_ids] = True
            self.outstanding += len(env_ids)
            for place, request in requests:
                self._queues[place].append(request)
            for place, _ in requests:
                if place in self._busy and place in self._first_come:
                    self._take(place)  # its answer is there, or comes in a moment: see _ask
                self._next(place)
        except BaseException as error:
            self._end_unless(error)
            raise

    def _part(self, place: int, actions: Actions, env_ids: np.ndarray, owners: np.ndarray) -> Send:
        session = self.sessions[place]
        rows = np.flatnonzero(owners == place)
        local = env_ids[rows] - session.first
        if len(local) == session.count:
            # All of them: in the session's own order, so that it need not name them.
            order = np.argsort(local)
            rows, local = rows[order], local[order]
        if isinstance(session, FirstComeSession):
            return session.prepare_send(actions, rows, local)
        if len(local) == session.count:
            return session.prepare_step(actions, rows, None)
        if not session.partial:
            raise ValueError(
                f"expected an action for each of the environments {session.first} to "
                f"{session.first + session.count - 1}, got them for {env_ids[rows].tolist()}: the server steps them "
                'together; vectorization="sync" or envs_per_session=1 steps them apart'
            )
        return session.prepare_step(actions, rows, local)

    def _next(self, place: int) -> None:
        """Let a session that is idle go on with its next request."""
        if place not in self._busy and self._queues[place]:
            self._busy.add(place)
            self._queues[place].popleft()()

    def receive(self, min_envs: int, until: float | None) -> list[Answer]:
        """What has arrived, once it is of so many environments, or of all that have actions on their way.

        Args:
            min_envs: at least so many.
            until: when to stop waiting; None: when the settings say that an answer is late.

        Raises:
            VectorTimeoutError: ``until`` has passed, and nothing is lost. Or an answer is later than the settings
                allow: then all sessions are given up.
            EnvironmentExecutionError, InvalidActionError, SessionLostError: as ``gather``; all are given up.
        """
        wanted = min(min_envs, self.outstanding)
        try:
            while (arrived_envs := self._arrived_envs()) < wanted:
                self._ask(wanted - arrived_envs, until)
                if not self._take_arrived(until) and until is not None and time.monotonic() >= until:
                    break
            else:
                # And whoever else is there by now: so nobody waits behind those who are always quick.
                self._take_arrived(0.0)
                return self._given()
        except BaseException as error:
            self._end_unless(error)
            raise
        raise VectorTimeoutError(
            f"expected the answers of {wanted} environments in time, got {self._arrived_envs()}; nothing is lost: "
            "recv() again"
        )

    def _given(self) -> list[Answer]:
        answers = list(self._answers)
        self._answers.clear()
        for answer in answers:
            self._on_way[_ids(answer)] = False
        self.outstanding = int(np.count_nonzero(self._on_way))
        return answers

    def _ask(self, missing: int, until: float | None) -> None:
        """Ask those that answer only what they are asked.

        No answer may keep what is sent after this call from beginning: so one session alone is asked for as long as
        this call waits, and of several each only for a moment, again and again.
        """
        for place, session in self._first_come.items():
            if place in self._busy or not session.under_way:
                continue
            within_s = None if until is None else max(until - time.monotonic(), 0.0)
            alone = len(self.sessions) == 1
            if not alone:
                within_s = _MOMENT_S if within_s is None else min(within_s, _MOMENT_S)
            self._busy.add(place)
            session.ask(missing if alone else 1, within_s)

    def _arrived_envs(self) -> int:
        return sum(np.size(_ids(answer)) for answer in self._answers)

    def _take_arrived(self, until: float | None) -> bool:
        """Take every answer that can be had now, after waiting for one; whether there was any."""
        busy = sorted(self._busy)
        places = {id(self.sessions[place]): place for place in busy}
        ready = arrived([self.sessions[place] for place in busy], until) if busy else []
        for session in ready:
            self._take(places[id(session)])
        return bool(ready)

    def _take(self, place: int) -> None:
        """Take a session's answer, and let it go on unless the answer made a further request necessary."""
        answer = finish_one(self.sessions[place], None)
        if answer is not None:
            self._answers.append(answer)
        if not self.sessions[place].shell.in_flight:
            self._busy.discard(place)
            self._next(place)

    @property
    def in_flight(self) -> bool:
        """Whether a session has been asked something whose answer was not taken."""
        return any(session.shell.in_flight for session in self.sessions)

    def _end_unless(self, error: BaseException, *spared: type[OpenEnvGymError]) -> None:
        """A failure ends all sessions; not where it is ``spared``, and all go on with nothing under way."""
        if not (isinstance(error, spared) and self.alive and not self.in_flight):
            self.give_up(reason_of(error))

    def give_up(self, reason: str) -> None:
        """Leave all sessions at once, whatever they are at; their servers close the environments."""
        for session in self.sessions:
            session.shell.drop(reason)
        for queue in self._queues:
            queue.clear()
        self._busy.clear()
        self._answers.clear()
        self._on_way[:] = False
        self.outstanding = 0

    def close(self, timeout_s: float) -> None:
        """Say goodbye where nothing is under way, and leave all sessions within so many seconds."""
        for session in self._first_come.values():
            if session.under_way:
                session.shell.drop("it was closed")  # whose server says goodbye once the steps are done
        close_all([session.shell for session in self.sessions], timeout_s)


_LONGEST_PATIENCE_S = 0.1
"""How much later a failure may be told, so that those who step together are heard together."""

_MOMENT_S = 0.005
"""How long one of several sessions waits for its first step to be done before it says that none is: so long a step may
have to wait that is sent meanwhile."""


def _ids(answer: Answer) -> np.ndarray | int:
    return answer.env_ids if isinstance(answer, Rows) else answer.env_id
