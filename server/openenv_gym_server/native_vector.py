"""A vector session on an environment that is a vector by itself: its own ``vector_entry_point``.

Not for making it (``vector_making.py``), nor for environments that are played one by one (``lane_vector.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from openenv_gym.errors import EnvironmentExecutionError, OpenEnvGymError, ValueMappingError
from openenv_gym.frames import Part
from openenv_gym.json_text import JSONObject
from openenv_gym_server.episodes import Episodes
from openenv_gym_server.errors import UnsendableError, fault, invalid_message, raise_as_environments, user_code
from openenv_gym_server.remote_names import check_name, check_settable
from openenv_gym_server.settings import Names
from openenv_gym_server.space_codec import SpaceCodec
from openenv_gym_server.space_rows import SpaceRows
from openenv_gym_server.vector_hosting import HostedVector, VectorResult, wrong_number

__all__ = ["NativeVector"]


class NativeVector(HostedVector):
    """An environment that steps all of its environments at once, or none.

    Args:
        env: the environment.
        codec: how the action and the observation of one of them are written as JSON.
        described: the ``/metadata`` document.
        autoreset_mode: what follows on the end of an episode, as the environment says.
        inline: whether its steps may run on the event loop.
    """

    partial = False
    binary = True
    finite = True

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        codec: SpaceCodec,
        described: JSONObject,
        autoreset_mode: AutoresetMode,
        *,
        inline: bool = False,
    ) -> None:
        self.num_envs = env.num_envs
        self.autoreset_mode = autoreset_mode.value
        self.inline = inline
        self._env = env
        self._codec = codec
        self._described = described
        self._rows = SpaceRows(codec, env.single_action_space, env.single_observation_space, self.num_envs)
        self._episodes = Episodes(self.num_envs, autoreset_mode)

    @property
    def environment_type(self) -> str:
        """The name of the environment's class."""
        return type(self._env.unwrapped).__name__

    @property
    def render_mode(self) -> str | None:
        """What ``render`` gives."""
        return self._env.render_mode

    def metadata(self) -> JSONObject:
        """The ``/metadata`` document."""
        return self._described

    def schema(self) -> JSONObject:
        """The ``/schema`` document of one of its environments."""
        return self._codec.schema()

    def decoded(self, actions: Sequence[JSONObject], ids: Sequence[int]) -> Any:
        """The batch of actions, in the order of the environments."""
        self._check_whole(ids, len(actions))
        return self._in_place(self._rows.joined_actions(self._rows.actions(actions)), ids)

    def unpacked(self, body: memoryview, ids: Sequence[int]) -> Any:
        """The batch of actions, in the order of the environments."""
        self._check_whole(ids, len(ids))
        return self._in_place(self._rows.batch(body, len(ids)), ids)

    def reset(self, ids: Sequence[int], seeds: Sequence[int | None], options: dict[str, Any] | None) -> VectorResult:
        """Begin an episode in each of these environments; of some, by Gymnasium's ``reset_mask``."""
        whole = len(ids) == self.num_envs
        if not whole:
            self._episodes.check_all_begun()
        spread: list[int | None] = [None] * self.num_envs
        for index, seed in zip(ids, seeds, strict=True):
            spread[index] = seed
        if not whole:
            mask = np.zeros(self.num_envs, np.bool_)
            mask[list(ids)] = True
            options = {**(options or {}), "reset_mask": mask}
        try:
            # The base class says less of the seed than its subclasses take.
            observations, infos = self._env.reset(seed=_one_seed(spread), options=options)  # type: ignore[arg-type]
        except BaseException as error:  # noqa: BLE001 - an environment may raise anything; all of it is its own error
            self._fail(error)
        self._episodes.began(ids)
        return self._of(ids, VectorResult(self.num_envs, observations, infos=dict(infos)))

    def step(self, ids: Sequence[int], actions: Any) -> VectorResult:
        """Take the actions."""
        self._episodes.check_steppable(range(self.num_envs))
        try:
            observations, rewards, terminations, truncations, infos = self._env.step(actions)
            result = VectorResult(
                self.num_envs,
                observations,
                np.asarray(rewards, np.float64),
                np.asarray(terminations, np.bool_),
                np.asarray(truncations, np.bool_),
                dict(infos),
            )
            self._episodes.stepped(range(self.num_envs), result.terminations | result.truncations)
            self.total_steps += self.num_envs
        except BaseException as error:  # noqa: BLE001 - an environment may raise anything; all of it is its own error
            self._fail(error)
        return self._of(ids, result)

    def _check_whole(self, ids: Sequence[int], given: int) -> None:
        if len(ids) != self.num_envs:
            message = (
                f"this environment steps all of its {self.num_envs} environments at once, not {len(ids)} of them; open "
                'the session with vectorization "sync" for steps of some'
            )
            raise invalid_message(fault("partial", ["data", "env_ids"], message, len(ids)))
        if given != len(ids):
            raise wrong_number("actions", given, len(ids))

    def _in_place(self, batch: Any, ids: Sequence[int]) -> Any:
        """The batch in the order of the environments, which may be named in any."""
        if isinstance(ids, range):
            return batch
        rows = self._rows.each_action(batch, self.num_envs)
        ordered: list[Any] = [None] * len(rows)
        for index, row in zip(ids, rows, strict=True):
            ordered[index] = row
        return self._rows.joined_actions(ordered)

    def _of(self, ids: Sequence[int], result: VectorResult) -> VectorResult:
        """The rows of these environments, in their order."""
        if isinstance(ids, range):
            return result
        result.count = len(ids)
        rows = list(ids)
        result.observations = _taken(result.observations, rows, self.num_envs)
        result.infos = _taken(result.infos, rows, self.num_envs)
        if result.rewards is not None:
            result.rewards = result.rewards[rows]
            result.terminations, result.truncations = result.terminations[rows], result.truncations[rows]
        return result

    def _fail(self, error: BaseException) -> None:
        self.failed = True
        raise_as_environments(error)

    def fields(self, observations: Any, count: int, ids: Sequence[int]) -> list[JSONObject]:
        """Each observation as the JSON of its fields."""
        try:
            return self._rows.fields(self._rows.each_observation(observations, count), ids)
        except (TypeError, ValueError, KeyError, IndexError) as error:
            self.failed = True
            raise _unsendable(error) from error
        except EnvironmentExecutionError:
            self.failed = True
            raise

    def parts(self, observations: Any, count: int, ids: Sequence[int]) -> list[Part]:  # noqa: ARG002
        """The observations as the batch of a binary frame."""
        try:
            return self._rows.batch_parts(observations, count)
        except ValueMappingError as error:
            self.failed = True
            raise _unsendable(error) from error

    def state(self) -> JSONObject:
        """Where each of them is."""
        return {
            "num_envs": self.num_envs,
            "episode_ids": self._episodes.names,  # type: ignore[dict-item]  # strings and null
            "step_counts": self._episodes.steps,  # type: ignore[dict-item]  # integers
        }

    def render(self) -> object:
        """The current rendering, as the environment gives it."""
        with user_code:
            return self._env.render()

    def call(self, name: str, args: list[Any], keywords: dict[str, Any], allowed: Names) -> object:
        """What its own ``call`` gives, where it has one."""
        check_name(name, allowed)
        with user_code:
            return tuple(self._own("call")(name, *args, **keywords))

    def set_attributes(self, name: str, values: list[Any], allowed: Names) -> None:
        """What its own ``set_attr`` does, where it has one."""
        check_settable(name, allowed)
        if len(values) != self.num_envs:
            raise wrong_number("values", len(values), self.num_envs)
        with user_code:
            self._own("set_attr")(name, values)

    def _own(self, method: str) -> Any:
        own = getattr(self._env, method, None)
        if not callable(own):
            message = f"{self.environment_type} steps all of its environments at once and has no {method}() for each"
            raise invalid_message(fault("not_supported", ["data", "name"], message, None))
        return own

    def close(self) -> None:
        """Close all of them."""
        with user_code:
            self._env.close()


def _one_seed(seeds: list[int | None]) -> int | list[int | None] | None:
    """The seeds as their caller gave them: an environment of one generator takes one number alone."""
    first = seeds[0]
    if first is None:
        return None if not any(seed is not None for seed in seeds) else seeds
    return first if seeds == list(range(first, first + len(seeds))) else seeds


def _taken(part: Any, rows: list[int], count: int) -> Any:
    """These rows of whatever has one entry an environment."""
    if isinstance(part, dict):
        return {key: _taken(value, rows, count) for key, value in part.items()}
    if isinstance(part, np.ndarray) and part.shape[:1] == (count,):
        return part[rows]
    if isinstance(part, tuple) and len(part) == count and not any(isinstance(each, np.ndarray) for each in part):
        return tuple(part[row] for row in rows)
    if isinstance(part, tuple):
        return tuple(_taken(each, rows, count) for each in part)
    return part


def _unsendable(error: Exception) -> OpenEnvGymError:
    return UnsendableError(
        f"the observations cannot be sent: {error}; the environment has already advanced", code="EXECUTION_ERROR"
    )
