"""Stable-Baselines3 over vectors of environments, remote ones above all (extra ``sb3``).

``make_vec_env`` makes the vector, ``VectorEnvAdapter`` turns Gymnasium's ``VectorEnv`` into Stable-Baselines3's
``VecEnv``. A single ``openenv_gym`` environment needs none of this: Stable-Baselines3 takes it as any other. Importing
this module imports torch, so nothing else of the package does.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import NoAsyncCallError
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

from openenv_gym.errors import InvalidActionError, MissingExtraError, OpenEnvGymError, SettingsError, SpaceMappingError

try:
    from stable_baselines3.common.env_util import is_wrapped
    from stable_baselines3.common.vec_env import VecEnv, VecMonitor
except ImportError as error:
    raise MissingExtraError(
        'openenv_gym.sb3 needs Stable-Baselines3, which is not installed: pip install "openenv-gym[sb3]"', extra="sb3"
    ) from error

__all__ = ["VectorEnvAdapter", "make_vec_env"]

_TRUNCATED = "TimeLimit.truncated"
_FINAL = frozenset({"final_obs", "_final_obs", "final_info", "_final_info"})
_LEAVES = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
_LOCAL = {
    "action_space": "single_action_space",
    "metadata": "metadata",
    "observation_space": "single_observation_space",
    "render_mode": "render_mode",
    "spec": "spec",
}
# What Gymnasium makes of a Python bool, int and float when it batches them.
_PLAIN = frozenset(map(np.dtype, (np.bool_, np.int64, np.float64)))


def make_vec_env(
    name: str | EnvSpec,
    /,
    n_envs: int = 1,
    seed: int | None = None,
    *,
    monitor: bool = True,
    monitor_dir: str | None = None,
    **keywords: Any,
) -> VecEnv:
    """A ``VecEnv`` of ``n_envs`` environments out of Gymnasium's registry.

    Args:
        name: an ``openenv/…`` id: one vector of remote environments; any other: Gymnasium's own ``SyncVectorEnv`` of
            local ones, unless ``vectorization_mode`` says another.
        n_envs: how many.
        seed: seeds the action space now, and the environments, ``seed + i`` each, at the first reset.
        monitor: put ``VecMonitor`` around it, whose returns and lengths of episodes Stable-Baselines3 logs.
        monitor_dir: the folder for the monitor's file, made where it is missing.
        **keywords: for ``gymnasium.make_vec``: ``base_url``, ``env_id``, ``env_kwargs``, ``render_mode`` …

    Raises:
        SettingsError: the keywords contradict each other, or ask for a vector that Stable-Baselines3 cannot use.
        SpaceMappingError: Stable-Baselines3 has nothing for the Spaces.

    Example:
        >>> from stable_baselines3 import PPO                                               # doctest: +SKIP
        >>> envs = make_vec_env("openenv/gym-v0", 8, seed=0, env_id="CartPole-v1")          # doctest: +SKIP
        >>> PPO("MlpPolicy", envs).learn(100_000)                                           # doctest: +SKIP
    """
    if monitor_dir is not None and not monitor:
        raise SettingsError("expected monitor=True with a monitor_dir, got monitor=False", setting="monitor_dir")
    if "num_envs" in keywords:
        raise SettingsError(
            f"expected n_envs, as Stable-Baselines3 calls it, got num_envs: n_envs={keywords['num_envs']!r}",
            setting="num_envs",
        )
    vector = gymnasium.make_vec(name, num_envs=n_envs, **_same_step(name, keywords))
    try:
        envs: VecEnv = VectorEnvAdapter(vector)
    except BaseException:
        vector.close()
        raise
    if monitor:
        if monitor_dir is not None:
            Path(monitor_dir).mkdir(parents=True, exist_ok=True)
        envs = VecMonitor(envs, monitor_dir)
    if seed is not None:
        envs.action_space.seed(seed)
    envs.seed(seed)
    return envs


def _same_step(name: str | EnvSpec, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of ``make_vec`` with the mode that Stable-Baselines3 needs, where each kind of vector takes it."""
    env_id = name.id if isinstance(name, EnvSpec) else name
    given = dict(keywords)
    if given.get("vectorization_mode") is None:
        remote = env_id.rpartition(":")[2].startswith("openenv/")
        given["vectorization_mode"] = "vector_entry_point" if remote else "sync"
    if given["vectorization_mode"] == "vector_entry_point":
        given.setdefault("autoreset_mode", AutoresetMode.SAME_STEP)
    else:
        given["vector_kwargs"] = {"autoreset_mode": AutoresetMode.SAME_STEP, **(given.get("vector_kwargs") or {})}
    return given


class VectorEnvAdapter(VecEnv):
    """Gymnasium's ``VectorEnv`` as Stable-Baselines3's ``VecEnv``.

    Rollouts are those of ``DummyVecEnv`` over the same environments: the observation after an episode's last step is
    the next episode's first, the last one itself is ``infos[i]["terminal_observation"]``, and
    ``infos[i]["TimeLimit.truncated"]`` says whether a time limit alone ended it. What the info of a reset was is in
    ``reset_infos``. Values of info come as Gymnasium batches them: one type a key, set by the first environment.

    Args:
        vector: in the mode SAME_STEP, giving fresh arrays. It is closed with the adapter.

    Raises:
        SettingsError: the vector is in another mode, or gives the same arrays again and again.
        SpaceMappingError: Stable-Baselines3 has nothing for the Spaces.

    Example:
        >>> import gymnasium
        >>> from gymnasium.vector import AutoresetMode
        >>> same_step = {"autoreset_mode": AutoresetMode.SAME_STEP}
        >>> envs = VectorEnvAdapter(gymnasium.make_vec("CartPole-v1", 2, "sync", vector_kwargs=same_step))
        >>> envs.seed(0)
        [0, 1]
        >>> envs.reset().shape
        (2, 4)
        >>> envs.close()
    """

    def __init__(self, vector: VectorEnv[Any, Any, Any]) -> None:
        _check_vector(vector)
        self.vector = vector
        # A wrapper passes on the two halves of a step unwrapped.
        self._splits = hasattr(vector, "step_async") and not isinstance(vector, VectorWrapper)
        self._actions: np.ndarray | None = None
        self._begun = False
        super().__init__(vector.num_envs, vector.single_observation_space, vector.single_action_space)

    @property
    def spec(self) -> EnvSpec | None:
        """What ``gymnasium.make_vec`` made the vector from."""
        return self.vector.spec

    # ------------------------------------------------------------------------------------------------ the rollout

    def reset(self) -> Any:
        """Reset all environments, with the seeds and options set since the last time.

        A step that is under way is waited for and forgotten. Environments with options of their own are reset group by
        group; where that is the very first reset, they are reset once more before.

        Returns:
            The first observations: an array of shape (n_envs, …), or a dictionary of such.
        """
        if self._splits and self._actions is not None:
            # A reset opens anew whatever was lost; and where the step was interrupted, there may be none under way.
            with contextlib.suppress(OpenEnvGymError, NoAsyncCallError):
                self.step_wait()
        self._actions = None
        # Gymnasium declares less than its own vectors take: a list of seeds is one of them.
        seeds: Any = None if all(seed is None for seed in self._seeds) else list(self._seeds)
        groups = list(_groups(self._options))
        if len(groups) > 1 and not self._begun:
            # A vector has observations of all its environments only after it has reset them all.
            self.vector.reset(seed=seeds, options=dict(groups[0][0]) or None)
        for options, members in groups:
            asked: dict[str, Any] | None = {**options} or None
            if len(groups) > 1:
                asked = {**options, "reset_mask": np.isin(np.arange(self.num_envs), members)}
            observations, infos = self.vector.reset(seed=seeds, options=asked)
            rows = _unbatch(infos, self.num_envs)
            for member in members:
                self.reset_infos[member] = rows[member]
        self._begun = True
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        """Send the actions.

        Args:
            actions: shape (n_envs, …).
        """
        dtype = self.action_space.dtype
        if dtype is not None and isinstance(actions, np.ndarray) and actions.dtype != dtype:
            actions = actions.astype(dtype)
        self._actions = actions  # first, so that reset() knows of it wherever an interrupt comes
        if self._splits:
            self.vector.step_async(actions)  # type: ignore[attr-defined]

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """What came of the actions.

        Returns:
            Observations of shape (n_envs, …); rewards, float32 of shape (n_envs,); dones, bool of the same shape; one
            info an environment.

        Raises:
            NoAsyncCallError: no actions were sent.
        """
        actions = self._actions
        if actions is None:
            raise NoAsyncCallError("expected step_async() before step_wait(), got none", "step")
        if self._splits:
            outcome = self.vector.step_wait()  # type: ignore[attr-defined]
            self._actions = None
        else:
            self._actions = None
            outcome = self.vector.step(actions)
        observations, rewards, terminations, truncations, infos = outcome
        dones = np.logical_or(terminations, truncations)
        if infos:
            rows = self._read_infos(dones, infos)
            for row, limited in zip(rows, np.greater(truncations, terminations).tolist(), strict=True):
                row[_TRUNCATED] = limited
        else:
            rows = [{_TRUNCATED: False} for _ in range(self.num_envs)]
        return observations, np.asarray(rewards).astype(np.float32), dones, rows

    def _read_infos(self, dones: np.ndarray, infos: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Each environment's info of this step; where it was an episode's last, the rest is the new one's."""
        rows = _unbatch({key: value for key, value in infos.items() if key not in _FINAL}, self.num_envs)
        over = np.flatnonzero(dones).tolist()
        if over:
            last = _unbatch(infos.get("final_info", {}), self.num_envs)
            for member in over:
                self.reset_infos[member] = rows[member]
                rows[member] = {**last[member], "terminal_observation": infos["final_obs"][member]}
        return rows

    def close(self) -> None:
        """Close the vector. May be called again."""
        self._actions = None
        self.vector.close()

    # ------------------------------------------------------------------------------------------------- rendering

    def get_images(self) -> Sequence[np.ndarray | None]:
        """The frame of each environment, shape (height, width, 3), dtype uint8."""
        if self.render_mode != "rgb_array":
            warnings.warn(f"images need render_mode='rgb_array', this vector has {self.render_mode!r}", stacklevel=2)
            return [None] * self.num_envs
        images: Any = self.vector.render()
        return list(images)

    # --------------------------------------------------------------------------------------- the environments' own

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """An attribute of each environment; a server must allow its name.

        Raises:
            AttributeError: they have none of that name, or the server does not allow it.
        """
        chosen = self._chosen(indices)
        if attr_name in _LOCAL:
            return [getattr(self.vector, _LOCAL[attr_name]) for _ in chosen]
        try:
            values = self._own("get_attr")(attr_name)
        except InvalidActionError as error:
            raise AttributeError(str(error)) from error
        return [values[index] for index in chosen]

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Set an attribute of the chosen environments; a server must allow its name."""
        chosen = set(self._chosen(indices))
        values = [value] * self.num_envs
        if len(chosen) < self.num_envs:
            present = self._own("get_attr")(attr_name)
            values = [value if index in chosen else present[index] for index in range(self.num_envs)]
        self._own("set_attr")(attr_name, values)

    def env_method(
        self, method_name: str, *method_args: Any, indices: int | Iterable[int] | None = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of the environments; a server must allow its name.

        Raises:
            SettingsError: some of them were chosen, but a vector calls all or none of those that are elsewhere.
        """
        chosen = self._chosen(indices)
        if chosen == list(range(self.num_envs)):
            if method_name == "render":
                return list(self.vector.render() or ())
            return list(self._own("call")(method_name, *method_args, **method_kwargs))
        envs = self._here()
        if envs is None:
            raise SettingsError(
                f"expected indices=None, got {chosen} of {self.num_envs} environments: {method_name}() is called where "
                "the environments are, on all of them at once",
                setting="indices",
            )
        return [envs[index].get_wrapper_attr(method_name)(*method_args, **method_kwargs) for index in chosen]

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: int | Iterable[int] | None = None
    ) -> list[bool]:
        """Whether the environments have this wrapper; of those that are elsewhere nobody knows, so no."""
        envs = self._here()
        return [envs is not None and is_wrapped(envs[index], wrapper_class) for index in self._chosen(indices)]

    def _own(self, name: str) -> Any:
        found = getattr(self.vector, name, None)
        if found is None:
            raise AttributeError(f"expected a vector that has {name}(), as SyncVectorEnv does, got {self.vector!r}")
        return found

    def _here(self) -> list[gymnasium.Env[Any, Any]] | None:
        """The environments themselves, where they are objects of this process."""
        return getattr(self.vector.unwrapped, "envs", None)

    def _chosen(self, indices: int | Iterable[int] | None) -> list[int]:
        return [range(self.num_envs)[index] for index in self._get_indices(indices)]


def _check_vector(vector: VectorEnv[Any, Any, Any]) -> None:
    mode = vector.metadata.get("autoreset_mode")
    if mode not in {AutoresetMode.SAME_STEP, AutoresetMode.SAME_STEP.value}:
        raise SettingsError(
            f"expected a vector in AutoresetMode.SAME_STEP, the only one that Stable-Baselines3 knows, got {mode}: "
            "make it with autoreset_mode=AutoresetMode.SAME_STEP",
            setting="autoreset_mode",
        )
    if getattr(vector.unwrapped, "copy", True) is False:
        raise SettingsError(
            "expected a vector with copy=True: Stable-Baselines3 keeps an observation while the next one is made",
            setting="copy",
        )
    observation_space = vector.single_observation_space
    parts: dict[str, spaces.Space[Any]] = {"$": observation_space}
    if isinstance(observation_space, spaces.Dict):
        parts = {f"$.{name}": part for name, part in observation_space.spaces.items()}
    for path, part in [*parts.items(), ("$", vector.single_action_space)]:
        if not isinstance(part, _LEAVES):
            raise SpaceMappingError(
                "expected Box, Discrete, MultiDiscrete and MultiBinary (in observations also in one Dict), which "
                f"Stable-Baselines3 has policies for, got {part} at {path}: put a wrapper around the environments",
                path=path,
            )


def _groups(options: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], list[int]]]:
    """Equal options, and the environments that have them."""
    left = list(range(len(options)))
    while left:
        wanted = options[left[0]]
        members = [index for index in left if options[index] is wanted or _equal(options[index], wanted)]
        yield wanted, members
        left = [index for index in left if index not in members]


def _equal(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    try:
        return bool(left == right)
    except ValueError:  # arrays in them
        return False


def _unbatch(infos: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    """Gymnasium's batched info as one dictionary an environment.

    Args:
        infos: each key with an array of ``count`` values, or a dictionary of such, and under ``_key`` a mask of those
            who have it; without a mask all have.
        count: how many environments.
    """
    rows: list[dict[str, Any]] = [{} for _ in range(count)]
    for key, value in infos.items():
        if isinstance(key, str) and key[:1] == "_" and key[1:] in infos:
            continue
        mask = infos.get(f"_{key}")
        present = range(count) if mask is None else np.flatnonzero(mask).tolist()
        if isinstance(value, Mapping):
            values: Any = _unbatch(value, count)
        elif not isinstance(value, np.ndarray) or value.shape[:1] != (count,):
            values = [value] * count
        else:
            values = value.tolist() if value.ndim == 1 and value.dtype in _PLAIN else value
        for index in present:
            rows[index][key] = values[index]
    return rows
