"""Any Gymnasium environment as an OpenEnv Environment.

Given by id, spec or factory; environments of the old ``gym`` API are taken as they are. Not for JSON
(``space_codec.py`` writes and reads it) nor for the web application (``gym_app.py``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar
from uuid import uuid4

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import TimeLimit

from openenv_gym.messages import JSONObject
from openenv_gym.types import EnvironmentMetadata
from openenv_gym_server.environment import Environment
from openenv_gym_server.errors import UnsendableError, fault, invalid_message
from openenv_gym_server.gym_making import collects_frames, make_env
from openenv_gym_server.legacy import AnyEnv, LegacyEnv, modern_info, modern_reset, modern_step
from openenv_gym_server.notes import Notes, quoted
from openenv_gym_server.space_codec import GymObservation, SpaceCodec

__all__ = ["GymEnvironment", "GymMetadata", "GymObservation", "InlineGymEnvironment"]


_MAX_DESCRIPTION = 1_000


class GymMetadata(EnvironmentMetadata):
    """What a served Gymnasium environment says about itself; ``gymnasium`` is what only Gymnasium knows."""

    gymnasium: dict[str, Any]


class GymEnvironment(Environment[Any, GymObservation, JSONObject]):
    """A Gymnasium environment behind OpenEnv's reset, step and state.

    Args:
        env: an environment id (``"module:namespace/Name-v0"`` imports the module first), an ``EnvSpec``, or a callable
            that returns an environment.
        render_mode: passed to the environment where it is not None.
        **env_kwargs: the environment's own keyword arguments; with an id also ``max_episode_steps``.

    Raises:
        TypeError: ``env`` is none of these, or does not take the arguments.
        gymnasium.error.Error: the id is not registered.
        SpaceMappingError: a Space of the environment has no JSON form.

    Example:
        >>> environment = GymEnvironment("CartPole-v1")
        >>> environment.reset(seed=0, episode_id="first").obs.shape
        (4,)
        >>> environment.step(1).reward
        1.0
        >>> environment.state
        {'episode_id': 'first', 'step_count': 1, 'env_id': 'CartPole-v1'}
        >>> environment.close()
    """

    SUPPORTS_CONCURRENT_SESSIONS: ClassVar[bool] = True

    def __init__(
        self,
        env: str | EnvSpec | Callable[..., Any],
        /,
        *,
        render_mode: str | None = None,
        **env_kwargs: Any,
    ) -> None:
        super().__init__()
        self._env: AnyEnv = make_env(env, render_mode, env_kwargs)
        self.render_mode = self._env.render_mode
        inner = self._env.unwrapped
        self._spec = inner.spec
        self._legacy = inner if isinstance(inner, LegacyEnv) else None
        self._named = type(inner if self._legacy is None else self._legacy.legacy_env)
        self.env_id = self._named.__name__ if self._spec is None else self._spec.id
        try:
            self._codec = SpaceCodec(self._env.action_space, self._env.observation_space, self.env_id)
        except ValueError:
            self._env.close()
            raise
        self._episode_id: str | None = None
        self._step_count = 0
        self._closed = False
        self._notes = Notes()

    @property
    def codec(self) -> SpaceCodec:
        """How this environment's actions and observations are written as JSON."""
        return self._codec

    @property
    def collects_frames(self) -> bool:
        """Whether the frames of a whole episode are kept here, for an environment without such a mode of its own."""
        return collects_frames(self._env)

    @property
    def remote_target(self) -> object:
        """Every attribute of the Gymnasium environment and of its wrappers, found as ``get_wrapper_attr`` finds it."""
        return _Attributes(self._env)

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> GymObservation:
        """Begin an episode.

        Args:
            seed: handed to the environment.
            episode_id: the episode's name in :attr:`state`; a new one is made up without it.
            options: handed to the environment.
            **kwargs: Gymnasium's reset has no others: they are left out, and named once in the warnings.

        Raises:
            InvalidActionError: the options are no mapping; the environment has not seen them.
        """
        if options is not None and not isinstance(options, Mapping):
            message = f"Input should be an object or null, as {self.env_id} takes them"
            raise invalid_message(fault("dict_type", ["data", "options"], message, options))
        result = self._env.reset(seed=seed, options=options)
        obs, info = modern_reset(result, self._env.observation_space)
        self._episode_id = uuid4().hex if episode_id is None else episode_id
        self._step_count = 0
        for name in kwargs:
            self._notes.add(
                f"reset of {self.env_id} takes seed and options; {quoted(name)} was left out (put it into options)"
            )
        notes = [*([] if self._legacy is None else self._legacy.take_notes()), *self._notes.take()]
        return GymObservation(obs, info=info, warnings=tuple(notes), early=True)

    def step(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> GymObservation:
        """Take an action, a sample of the action Space.

        The reward becomes a Python float and the flags Python bools; a reward of None is 0.0.

        Raises:
            UnsendableError: the reward is no number, or a flag no bool.
        """
        del timeout_s, kwargs  # OpenEnv's signature; Gymnasium's step takes an action and nothing else
        result = self._env.step(action)
        if result.__class__ is not tuple or len(result) != 5:
            result = modern_step(result)
        obs, reward, terminated, truncated, info = result
        self._step_count += 1
        if reward.__class__ is not float:
            reward = _reward(reward, self.env_id)
        if terminated.__class__ is not bool:
            terminated = _flag("terminated", terminated, self.env_id)
        if truncated.__class__ is not bool:
            truncated = _flag("truncated", truncated, self.env_id)
        if info.__class__ is not dict:
            info = modern_info(info)
        return GymObservation(obs, reward, terminated, truncated, info, (), self._step_count == 1)

    @property
    def state(self) -> JSONObject:
        """The episode's name, the steps taken in it (0 after reset) and the environment's id."""
        return {"episode_id": self._episode_id, "step_count": self._step_count, "env_id": self.env_id}

    def render(self) -> object:
        """What the environment renders in its render mode."""
        return self._env.render()

    def close(self) -> None:
        """Close the environment; again is harmless."""
        if not self._closed:
            self._closed = True
            self._env.close()

    def get_metadata(self) -> GymMetadata:
        """The environment's name and, under ``gymnasium``, what Gymnasium's registry knows of it."""
        spec = self._spec
        return GymMetadata(
            name=self.env_id,
            description=_first_sentence(self._named) or f"{self.env_id}, a Gymnasium environment",
            gymnasium={
                "env_id": self.env_id,
                "render_modes": [str(mode) for mode in self._env.metadata.get("render_modes") or ()],
                "render_fps": self._env.metadata.get("render_fps"),
                "reward_threshold": None if spec is None else spec.reward_threshold,
                "nondeterministic": False if spec is None else spec.nondeterministic,
                "max_episode_steps": _time_limit(self._env),
                "autoreset_modes": [],
                "shards": None,
            },
        )


class InlineGymEnvironment(GymEnvironment):
    """A Gymnasium environment whose steps are short enough to run on the server's event loop.

    Example:
        >>> with_fast_steps = InlineGymEnvironment("CartPole-v1")
        >>> with_fast_steps.INLINE
        True
        >>> with_fast_steps.close()
    """

    INLINE: ClassVar[bool] = True


class _Attributes:
    """Looks through wrappers, whose own ``getattr`` stops at the outermost."""

    def __init__(self, env: AnyEnv) -> None:
        self._env = env

    def __getattr__(self, name: str) -> Any:
        return self._env.get_wrapper_attr(name)

    def __dir__(self) -> list[str]:
        env, names = self._env, set(dir(self._env))
        while isinstance(env, gymnasium.Wrapper):
            env = env.env
            names |= set(dir(env))
        return sorted(names)


def _first_sentence(kind: type) -> str | None:
    """The first sentence of a class's own docstring, or its first paragraph; Gymnasium's begin with a heading."""
    paragraph: list[str] = []
    for line in map(str.strip, (kind.__dict__.get("__doc__") or "").splitlines()):
        if line and not line.startswith("#"):
            paragraph.append(line)
        elif paragraph:
            break
    text = " ".join(paragraph)
    sentence = re.match(r".{10,}?[.!?](?=\s+[^\sa-z])", text)
    return (sentence[0] if sentence else text)[:_MAX_DESCRIPTION] or None


def _time_limit(env: AnyEnv) -> int | None:
    """The steps after which an episode is cut off.

    Gymnasium tells it by ``env.spec`` alone, which copies the environment's arguments; some have no copy.
    """
    spec = env.unwrapped.spec
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, TimeLimit):
            return env._max_episode_steps  # noqa: SLF001
        env = env.env
    return None if spec is None else spec.max_episode_steps


def _reward(value: Any, env_id: str) -> float:
    """The reward as float64, for every scalar-like: Python and NumPy numbers, arrays of shape () and (1,), None."""
    if value is None:
        return 0.0
    if isinstance(value, float):
        return float(value)
    shape = tuple(getattr(value, "shape", ()))
    number = value.item() if shape in {(), (1,)} and hasattr(value, "item") else value
    cause: Exception | None = None
    if not isinstance(number, str | bytes | bytearray):  # float() would read a number out of their text
        try:
            return float(number)
        except (TypeError, ValueError, OverflowError) as error:
            cause = error
    raise UnsendableError(
        f"expected {env_id} to give a real number as reward, got {type(value).__name__}"
        f"{f' of shape {shape}' if shape else ''}{f' ({cause})' if cause else ''}; "
        "the environment has already advanced",
        code="EXECUTION_ERROR",
    ) from cause


def _flag(name: str, value: object, env_id: str) -> bool:
    # NumPy's bool, and the scalar of any other array library.
    if getattr(value, "shape", None) == () and str(getattr(value, "dtype", "")).endswith("bool"):
        return bool(value)
    raise UnsendableError(
        f"expected {env_id} to give {name} as a bool, got {type(value).__name__} {str(value)[:100]}; "
        "the environment has already advanced",
        code="EXECUTION_ERROR",
    )
