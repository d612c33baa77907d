"""One session of several environments on a server of this project: one message each way for all of them.

Not for servers of other makes (``vector_singles.py``), nor for several sessions together (``vector_rollout.py``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from openenv_gym import frames, json_text, messages
from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError, ProtocolError, ValueMappingError
from openenv_gym.info import decode_info, encode_exact
from openenv_gym.interface import Interface
from openenv_gym.session_refusals import name_environments
from openenv_gym.shell import Shell
from openenv_gym.spaces import BatchCodec
from openenv_gym.spaces.batches import stack
from openenv_gym.transition import warn_caller
from openenv_gym.vector_batches import samples_of
from openenv_gym.vector_infos import with_final_observations
from openenv_gym.vector_rows import Actions, Latest, Rows
from openenv_gym.vector_waiting import Deadline, answer_deadline

__all__ = ["Send", "VectorSession", "located", "malformed", "read_observation"]

Send: TypeAlias = "Callable[[], None]"
"""Sends a request that is ready to go, and waits for nothing."""


class VectorSession:
    """A contiguous block of the vector environment's environments, in one session.

    Args:
        shell: the session, opened.
        interface: what its environments look like.
        first: the vector environment's index of its first environment.
        binary: whether resets and steps are binary frames; the server must have offered them.

    Attributes:
        count: how many environments it has.
        partial: whether a step may be for some of them.
        deadline: when the answer to the request under way must be there.
        into: a batch to whose arrays the next answer about all environments is written; None: to fresh ones.
        asks_again: whether an answer may make a further request necessary.
    """

    asks_again = False

    def __init__(self, shell: Shell, interface: Interface, first: int, *, binary: bool) -> None:
        assert shell.opened is not None
        self.shell = shell
        self.first = first
        self.count = shell.opened.num_envs or 1
        self.partial = shell.opened.partial
        self.deadline: Deadline | None = None
        self.into: Any = None
        self._interface = interface
        self._space = interface.observation_space
        self._all = np.arange(first, first + self.count)
        self._stepping = False  # whether the request under way is a step
        self._named: np.ndarray | None = None  # whom the request under way is for
        self._binary = binary
        self._actions = BatchCodec(interface.action_space) if binary else None
        self._observations = BatchCodec(self._space) if binary else None
        self._latest = Latest(self._space, self.count, self._decode)

    def prepare_reset(
        self, env_ids: np.ndarray | None, seeds: Sequence[int | None] | None, options: Mapping[str, Any] | None
    ) -> Send:
        """A reset, ready to be sent.

        Args:
            env_ids: the session's own indices of the environments to reset; None: all.
            seeds: one for each of these.
            options: for each of these.

        Raises:
            ValueMappingError: an option has no form on the wire.
        """
        encoded = None if options is None else {str(key): encode_exact(value) for key, value in options.items()}
        if self._binary:
            said = {"seeds": seeds, "options": encoded}
            data = json_text.encode_json({key: value for key, value in said.items() if value is not None})
            return self._packed(messages.VectorReset, frames.Kind.RESET, env_ids, [data])
        settings = messages.VectorResetSettings(
            env_ids=_listed(env_ids), seeds=None if seeds is None else list(seeds), options=encoded
        )
        return self._text(messages.VectorReset, env_ids, settings)

    def prepare_step(self, actions: Actions, index: slice | np.ndarray | None, env_ids: np.ndarray | None) -> Send:
        """A step, ready to be sent.

        Args:
            actions: a batch with the actions of these environments.
            index: their rows in it; None: all.
            env_ids: the session's own indices of the environments to step; None: all.

        Raises:
            ValueMappingError: an action has no form on the wire.
        """
        encoded = self._encoded(actions, index, self.count if env_ids is None else len(env_ids))
        if self._binary:
            return self._packed(messages.VectorStep, frames.Kind.STEP, env_ids, encoded)
        return self._text(
            messages.VectorStep, env_ids, messages.VectorActions(actions=encoded, env_ids=_listed(env_ids))
        )

    def _encoded(self, actions: Actions, index: slice | np.ndarray | None, count: int) -> list[Any]:
        """These rows of the actions as they go on the wire: pieces of a frame, or the fields of each."""
        if self._actions is not None:
            return self._actions.pack_fitting(actions.rows(index), count)
        return [self._interface.encode_action(sample) for sample in actions.samples(index)]

    def _packed(
        self,
        kind: type[messages.Message],
        frame_kind: frames.Kind,
        env_ids: np.ndarray | None,
        parts: Sequence[frames.Part],
    ) -> Send:
        count = self.count if env_ids is None else len(env_ids)
        build = functools.partial(frames.write_frame, frame_kind, count=count, env_ids=env_ids, parts=parts)

        def send() -> None:
            self._begin(kind, env_ids)
            self.shell.begin_packed(kind, build)

        return send

    def _text(self, kind: type[messages.Message], env_ids: np.ndarray | None, data: Any) -> Send:
        def send() -> None:
            self._begin(kind, env_ids)
            self.shell.begin(kind, data=data)

        return send

    def _begin(self, kind: type[messages.Message], env_ids: np.ndarray | None) -> None:
        self._stepping = kind is messages.VectorStep
        self.deadline = answer_deadline(self.shell.settings, reset=not self._stepping)
        self._named = env_ids

    def finish(self, timeout_s: float | None) -> Rows | None:
        """The answer to the request under way.

        Raises:
            RequestTimeoutError: it did not come in time; the session is lost.
            SessionLostError: the session is lost.
            EnvironmentExecutionError: an environment raised: that of ``env_index`` of the vector environment.
            InvalidActionError: the server refused the request, and no environment of this session has moved.
            ProtocolError: it is the answer to something else; the session is lost.
        """
        try:
            reply = self.shell.finish(timeout_s)
        except EnvironmentExecutionError as error:
            raise located(error, self.first) from error.__cause__
        except InvalidActionError as error:
            raise name_environments(error, self._global().tolist()) from error.__cause__
        try:
            if isinstance(reply, messages.PackedReply):
                rows = self._rows_of_frame(reply.packed)
            else:
                assert isinstance(reply, messages.VectorReply)
                rows = self._rows_of_text(reply.data)
            if self._stepping and rows.rewards is None:
                raise malformed("rewards, terminations and truncations")
        except ProtocolError as error:
            self.shell.drop(error.message)
            raise
        return rows

    def _rows_of_frame(self, packed: frames.Packed) -> Rows:
        assert self._observations is not None
        parts = frames.read_outcome(packed)
        count = self._require_named(packed.env_ids, packed.count)
        self._latest.note(parts.observations, self._named)
        infos = {} if parts.info is None else decode_info(None, parts.info)
        if parts.final is not None:
            rows = parts.final.rows
            last = self._observations.unpack(parts.final.observations, len(rows))
            infos = with_final_observations(infos, rows, samples_of(self._space, last, len(rows)), count)
        if parts.notes:
            self._warn(parts.notes)
        into, self.into = self.into, None
        observations = self._observations.unpack(parts.observations, count, into if self._named is None else None)
        done = parts.stepped
        if done is None:
            return Rows(self._global(), observations, None, None, None, infos)
        return Rows(self._global(), observations, done.rewards, done.terminations, done.truncations, infos)

    def _rows_of_text(self, outcome: messages.VectorOutcome) -> Rows:
        named = None if outcome.env_ids is None else np.asarray(outcome.env_ids, np.int64)
        count = self._require_named(named, len(outcome.observations))
        self._latest.note(outcome.observations, self._named)
        infos = decode_info(None, outcome.infos or {})
        if outcome.final:
            rows = np.array(sorted(outcome.final), np.int64)
            if rows[0] < 0 or rows[-1] >= count:
                raise malformed(f"last observations of rows below {count}")
            last = self._read([outcome.final[row] for row in rows.tolist()], self._global()[rows])
            infos = with_final_observations(infos, rows, last, count)
        if outcome.notes:
            self._warn(outcome.notes)
        observations = self._decode(outcome.observations, count, self._global())
        if outcome.rewards is None:
            return Rows(self._global(), observations, None, None, None, infos)
        stepped = (outcome.rewards, outcome.terminations or (), outcome.truncations or ())
        if any(len(values) != count for values in stepped):
            raise malformed(f"{count} rewards, terminations and truncations")
        try:
            rewards = np.array([float(reward) for reward in outcome.rewards])
        except ValueError:
            raise malformed("rewards that are numbers") from None
        return Rows(self._global(), observations, rewards, np.array(stepped[1]), np.array(stepped[2]), infos)

    def _read(self, listed: Sequence[dict[str, Any]], env_ids: np.ndarray) -> list[Any]:
        return [
            read_observation(self._interface, fields, env_id)
            for fields, env_id in zip(listed, env_ids.tolist(), strict=True)
        ]

    def _decode(self, raw: Any, count: int, env_ids: np.ndarray | None = None) -> Any:
        if self._observations is not None:
            return self._observations.unpack(raw, count)
        # What is read again could be read before: no error needs its ids.
        return stack(self._space, self._read(raw, self._all[:count] if env_ids is None else env_ids))

    def _require_named(self, env_ids: np.ndarray | None, count: int) -> int:
        """The number of rows of an answer, which must be about whom the request was for."""
        wanted = self.count if self._named is None else len(self._named)
        same = env_ids is None if self._named is None else env_ids is None or np.array_equal(env_ids, self._named)
        if count != wanted or not same:
            raise malformed(f"the answer of {wanted} environments")
        return count

    def _global(self) -> np.ndarray:
        return self._all if self._named is None else self._named + self.first

    def _warn(self, notes: Sequence[str]) -> None:
        warn_caller(*(f"{self.shell.base_url}: {note}" for note in notes))

    def latest(self) -> Any:
        """The batch of the last observations of all of its environments, in fresh arrays."""
        return self._latest.batch()


def read_observation(interface: Interface, fields: dict[str, Any], env_id: int) -> Any:
    """The observation that an environment has sent.

    Raises:
        ValueMappingError: it does not fit its Space.
        EnvironmentExecutionError: it tells of a failure.
    """
    try:
        return interface.decode_observation(fields)
    except ValueMappingError as error:
        raise ValueMappingError(
            f"the observation of environment {env_id} does not fit: {error}; observation_space and decode_observation "
            "say how to read what a schema does not describe",
            path=error.path,
        ) from error
    except EnvironmentExecutionError as error:
        raise located(error, env_id) from error.__cause__


def located(error: EnvironmentExecutionError, first: int) -> EnvironmentExecutionError:
    """The error with the vector environment's index of the environment that raised.

    Args:
        error: its ``env_index``, where it has one, is the session's.
        first: the vector environment's index of the session's first environment.
    """
    own = error.env_index or 0
    error.env_index = first + own
    said = f": {error.message}"
    for beginning in ("the environment failed", f"environment {own} failed"):
        if error.message.startswith(beginning):
            said = f" failed{error.message.removeprefix(beginning)}"
    error.args = (f"environment {error.env_index}{said}",)
    return error


def _listed(env_ids: np.ndarray | None) -> list[int] | None:
    return None if env_ids is None else env_ids.tolist()


def malformed(expected: str) -> ProtocolError:
    """The error of an answer that is about something else."""
    return ProtocolError(f"expected {expected}, got others: the server does not keep to {messages.SUBPROTOCOL}")
