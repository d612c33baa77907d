"""``RemoteVectorEnv``: environments on OpenEnv servers as one ``gymnasium.vector.VectorEnv``.

It turns Gymnasium's calls into requests of its sessions, and their answers into Gymnasium's batches. Which servers and
how many sessions is ``vector_opening.py``; what is under way in them, ``vector_rollout.py``; a single environment is
``env.py``.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import NoAsyncCallError
from gymnasium.utils import EzPickle
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from openenv_gym.interface import Interface
from openenv_gym.providers.base import Provider
from openenv_gym.shell import reason_of
from openenv_gym.vector_arguments import check_env_ids, check_min_envs, seeds_for, split_mask
from openenv_gym.vector_batches import store_batch
from openenv_gym.vector_calls import call_each, get_each, render_each, set_each
from openenv_gym.vector_episodes import Episodes
from openenv_gym.vector_pending import Pending, alone, whole
from openenv_gym.vector_rows import Actions, Rows, join_answers
from openenv_gym.vector_settings import Sources, VectorSettings
from openenv_gym.vector_waiting import deadline_in

__all__ = ["RemoteVectorEnv"]


class RemoteVectorEnv(VectorEnv[Any, Any, np.ndarray], EzPickle):
    """Environments that run behind OpenEnv servers, stepped together as if they were here.

    Step by step it gives what ``gymnasium.vector.SyncVectorEnv`` gives over the same environments, in each autoreset
    mode. The environments are contiguous blocks over the servers, and over the shards that these publish. On a server
    of this project a block is one session, with one message a step; elsewhere every environment has a session of its
    own, and all requests are on their way before the first answer is awaited.

    ``send`` and ``recv`` step some of the environments while others are at it.

    When an environment raises, a server is lost or an answer is late, all sessions end; ``reset()`` opens new ones.

    Args:
        num_envs: how many environments.
        base_url: a server's address or several. None: ``provider`` or ``target`` gives one.
        provider: a description of a server to start; it is copied, and the copy is stopped at ``close()``.
        target: what an embedded server on this machine serves, as ``openenv-gym serve`` takes it.
        env_id: a Gymnasium id. Without an address it is the target; with one, the servers must serve it.
        env_kwargs: keyword arguments for the environments' making; remote servers must allow their names.
        render_mode: a mode of the served environments; not "human".
        autoreset_mode: what follows an episode's end: "NextStep", "SameStep", "Disabled" or Gymnasium's enum of these.
        vectorization: how a server of this project steps a session's environments: one after the other ("sync",
            default), each in a process of its own ("async") or on a thread of its own ("threads", which answers
            ``send`` first come, first served), or by their "vector_entry_point".
        envs_per_session: how many environments share a session at most; None: all of a server.
        max_episode_steps: truncates episodes of so many steps, besides the environments' own limits.
        copy: whether every step gives fresh arrays. False: all give the same ones, overwritten by the next reset or
            step; what ``recv`` gives is always fresh.
        binary: whether values may travel as raw bytes where a server offers that; the values are the same in JSON.
        mode: "simulation", which alone there is for a vector; None: OPENENV_CLIENT_MODE, else simulation.
        **settings: fields of ``ConnectionSettings`` and of ``SpaceOverrides``, as in ``RemoteEnv``.

    Raises:
        SettingsError: the arguments name no server, or contradict each other or a server.
        ModeError: the mode is production.
        UnreachableError: a server does not answer.
        CapacityError: the servers have room for fewer environments; no session is left.
        SpaceMappingError: a server's schema has no Space, or servers differ.
        ServerError: a server could not make the environments.

    Example:
        >>> import gymnasium, openenv_gym
        >>> envs = gymnasium.make_vec("openenv/gym-v0", num_envs=3, env_id="CartPole-v1")
        >>> observations, infos = envs.reset(seed=0)
        >>> observations.dtype, observations.shape
        (dtype('float32'), (3, 4))
        >>> observations, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
        >>> rewards
        array([1., 1., 1.])
        >>> envs.close()
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        base_url: str | Sequence[str] | None = None,
        provider: Provider | None = None,
        target: str | None = None,
        env_id: str | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        vectorization: Literal["sync", "async", "threads", "vector_entry_point"] | None = None,
        envs_per_session: int | None = None,
        max_episode_steps: int | None = None,
        copy: bool = True,
        binary: bool = True,
        mode: str | None = None,
        **settings: Any,
    ) -> None:
        own: dict[str, Any] = {
            "base_url": base_url,
            "provider": provider,
            "target": target,
            "env_id": env_id,
            "env_kwargs": env_kwargs,
            "render_mode": render_mode,
            "autoreset_mode": autoreset_mode,
            "vectorization": vectorization,
            "envs_per_session": envs_per_session,
            "max_episode_steps": max_episode_steps,
            "copy": copy,
            "binary": binary,
            "mode": mode,
        }
        EzPickle.__init__(self, num_envs, **own, **settings)
        self._settings = VectorSettings.of(num_envs, own, settings)
        self.num_envs, self.render_mode, self.copy = num_envs, render_mode, copy
        self.autoreset_mode = self._settings.autoreset_mode
        self._spec: EnvSpec | None = None
        self._pending = Pending()
        self._buffer: Any = None
        self._sources = Sources(self._settings)
        try:
            patience_s = self._settings.connection.close_timeout_s
            self._episodes = Episodes(lambda: self._sources.open(self._check), num_envs, patience_s)
        except BaseException:
            self._sources.release()
            raise
        interface = self._episodes.interface
        self.single_action_space, self.single_observation_space = interface.action_space, interface.observation_space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.metadata = {**interface.metadata, "autoreset_mode": self.autoreset_mode}

    def _check(self, interface: Interface, base_url: str) -> None:
        """Raise where a server's environments are not what this one is for; subclasses may ask for more."""
        if not self._sources.embedded:
            interface.check_env_id(self._settings.env_id, base_url)
        interface.check_render_mode(self.render_mode)

    @whole
    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in all environments, in new sessions if the last ones were lost, or in some.

        Args:
            seed: s for the seeds s, s + 1 …; or a list with one for each environment, None among them. Without a seed
                an environment continues its own generator.
            options: ``reset_mask``, an array of bool with one entry an environment, says which to reset. All else is
                passed on to each.

        Returns:
            The batch of observations (of an environment that was not reset, its last one) and the batched info.

        Raises:
            ClosedEnvironmentError: it is closed.
            AlreadyPendingCallError: another call is under way.
            TypeError, ValueError: a list of seeds or a mask that does not fit.
            VectorTimeoutError: no answer within ``reset_timeout_s``.
            ServerError: a server refused the request or an environment raised.
        """
        self._require_idle("reset")
        self._begin_reset(seed, options)
        return self.reset_wait()

    @whole
    def reset_async(
        self, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> None:
        """Ask for a reset and do not wait; see ``reset``."""
        self._require_idle("reset_async")
        self._begin_reset(seed, options)

    def _begin_reset(self, seed: int | Sequence[int | None] | None, options: dict[str, Any] | None) -> None:
        mask, left = split_mask(options, self.num_envs)
        self._episodes.begin(seeds_for(seed, self.num_envs), left, mask)
        self._pending.begin("reset")

    @whole
    def reset_wait(self, timeout: float | None = None) -> tuple[Any, dict[str, Any]]:
        """The answer to ``reset_async``.

        Args:
            timeout: seconds; None: as the settings have it.

        Raises:
            NoAsyncCallError: there was no ``reset_async``.
            VectorTimeoutError: no answer in time; all sessions are given up.
        """
        self._pending.finish("reset", closed=self.closed)
        observations, infos = self._episodes.finish(deadline_in(timeout, "timeout"), self._buffer)
        return self._given(observations), infos

    @whole
    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take one action in every environment.

        Args:
            actions: a member of ``action_space``; lists may stand for arrays.

        Returns:
            observations, rewards (float64), terminations, truncations (bool), and the batched info.

        Raises:
            ClosedEnvironmentError: it is closed.
            AlreadyPendingCallError: another call is under way.
            ValueMappingError: an action has no form under the Space; nothing was sent.
            InvalidActionError: a server refused an action. With one session no environment has moved.
            EnvironmentExecutionError: the environment ``env_index`` raised.
            VectorTimeoutError: no answer within ``step_timeout_s``.
            SessionLostError: a session is lost; call ``reset()``.
            SessionStateError: there was no reset, or, with autoreset "Disabled", an episode is over.
        """
        self._require_idle("step")
        self._begin_step(actions)
        return self.step_wait()

    @whole
    def step_async(self, actions: Any) -> None:
        """Send the actions and do not wait; see ``step``."""
        self._require_idle("step_async")
        self._begin_step(actions)

    def _begin_step(self, actions: Any) -> None:
        if self.autoreset_mode is AutoresetMode.DISABLED:
            self._episodes.require_running(slice(None))
        self._episodes.rollout.begin_step(Actions(self.single_action_space, actions, self.num_envs))
        self._pending.begin("step")

    def _leave(self, error: BaseException) -> None:
        """The whole of a reset or step has failed, at any point of it: nothing of it may stay under way."""
        self._pending.forget()
        if self._episodes.rollout.in_flight:
            self._episodes.rollout.give_up(reason_of(error))

    @whole
    def step_wait(self, timeout: float | None = None) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """The answer to ``step_async``.

        Args:
            timeout: seconds; None: as the settings have it.

        Raises:
            NoAsyncCallError: there was no ``step_async``.
            VectorTimeoutError: no answer in time; all sessions are given up.
        """
        self._pending.finish("step", closed=self.closed)
        answers = self._episodes.rollout.gather(deadline_in(timeout, "timeout"), self._buffer)
        rows = join_answers(self.single_observation_space, answers)
        rewards, terminations, truncations = self._stepped(rows)
        return self._given(rows.observations), rewards, terminations, truncations, rows.infos

    @alone
    def send(self, actions: Any, env_ids: Any) -> None:
        """Give some environments their actions; ``recv`` gives the answers, first come first served.

        Args:
            actions: a batch, one action for each of ``env_ids`` in their order.
            env_ids: integers, which environments; none may have an action on its way.

        Raises:
            AlreadyPendingCallError: one has an action on its way, or another call is under way.
            TypeError, ValueError: the ids are none, or some of a session that steps all its environments at once.
            ValueMappingError, SessionLostError, SessionStateError: as ``step``.
        """
        self._pending.require_none("send", closed=self.closed)
        ids = check_env_ids(env_ids, self.num_envs)
        self._episodes.require_begun()
        if self.autoreset_mode is AutoresetMode.DISABLED:
            self._episodes.require_running(ids)
        self._episodes.rollout.send(Actions(self.single_action_space, actions, len(ids)), ids)

    @alone
    def recv(
        self, min_envs: int | None = None, timeout: float | None = None
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any], np.ndarray]:
        """The answers to ``send`` that have arrived, once there are enough of them.

        Args:
            min_envs: wait for so many environments at least, or for all that have actions on their way; None: for one.
            timeout: seconds; None: as the settings have it.

        Returns:
            What ``step`` returns, and the ids (int64) of the environments that its rows are of. All is in their order,
            the arrays of the info too.

        Raises:
            NoAsyncCallError: no action is on its way.
            VectorTimeoutError: there are not enough in time; nothing is lost, unless one is later than
                ``step_timeout_s``: then all sessions are given up.
            EnvironmentExecutionError, InvalidActionError, SessionLostError: as ``step``; all sessions are given up.
        """
        self._pending.require_none("recv", closed=self.closed)
        wanted = check_min_envs(min_envs, self.num_envs)
        if not self._episodes.rollout.outstanding:
            raise NoAsyncCallError("Calling `recv` without any action on its way: send() first", "recv")
        answers = self._episodes.rollout.receive(wanted, deadline_in(timeout, "timeout"))
        rows = join_answers(self.single_observation_space, answers)
        rewards, terminations, truncations = self._stepped(rows)
        return rows.observations, rewards, terminations, truncations, rows.infos, rows.env_ids.copy()

    def _stepped(self, rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rewards, terminations, truncations = rows.rewards, rows.terminations, rows.truncations
        assert rewards is not None and terminations is not None and truncations is not None  # noqa: PT018
        if self.autoreset_mode is AutoresetMode.DISABLED:
            self._episodes.over[rows.env_ids] = terminations | truncations
        return rewards, terminations, truncations

    def _given(self, observations: Any) -> Any:
        """The observations as the caller gets them."""
        if self.copy:
            return observations
        if self._buffer is not None and observations is not self._buffer:
            observations = store_batch(self.single_observation_space, self._buffer, observations)
        self._buffer = observations
        return observations

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every environment; the servers must allow its name.

        Raises:
            InvalidActionError: a server does not allow the name.
            EnvironmentExecutionError: the method raised.
            SessionStateError: a server is of another make, where there is no such thing.
        """
        self._require_idle("call")
        return call_each(self._episodes.rollout, name, args, kwargs)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Read an attribute of every environment; see ``call``."""
        self._require_idle("get_attr")
        return get_each(self._episodes.rollout, name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of every environment; see ``call``.

        Args:
            name: its name.
            values: a list or tuple with one value an environment (another number: ``ValueError``), or one for all.
        """
        self._require_idle("set_attr")
        set_each(self._episodes.rollout, name, values if isinstance(values, list | tuple) else [values] * self.num_envs)

    def render(self) -> tuple[Any, ...]:
        """The rendering of every environment: None of each without a ``render_mode``."""
        self._require_idle("render")
        if self.render_mode is None:
            gymnasium.logger.warn("render() was called without a render_mode: give make_vec one")
            return (None,) * self.num_envs
        return render_each(self._episodes.rollout)

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]  # as SyncVectorEnv has it
        """The last seed of each environment; -1 where it has had none from here."""
        return tuple(self._episodes.generators.seeds)

    @property  # type: ignore[misc]  # it cannot be set, as in SyncVectorEnv
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """Generators on this side, one an environment and seeded as it was; the environments keep their own."""
        return self._episodes.generators.all()

    @property
    def spec(self) -> EnvSpec | None:
        """The spec that ``gymnasium.make_vec`` gave, with what the server knows: threshold, time limit, determinism."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        known = dict(self._episodes.interface.spec_fields)
        if self._settings.max_episode_steps is not None:
            known["max_episode_steps"] = self._settings.max_episode_steps
        self._spec = None if spec is None else dataclasses.replace(spec, **known)

    def _require_idle(self, name: str) -> None:
        self._pending.require_none(name, closed=self.closed, sent=self._episodes.rollout.outstanding)

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:
        """End all sessions, and with their last user the embedded or provided server.

        Args:
            timeout: seconds to wait for the servers, in all; None: ``close_timeout_s``.
            terminate: whether to leave without a word.
        """
        if not hasattr(self, "_episodes"):
            return
        with contextlib.ExitStack() as stack:
            stack.callback(self._sources.release)
            if terminate:
                self._episodes.rollout.give_up("the environment was closed")
            self._episodes.rollout.close(self._settings.connection.close_timeout_s if timeout is None else timeout)
