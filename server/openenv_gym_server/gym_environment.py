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
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import TimeLimit

from openenv_gym.json_text import JSONObject
from openenv_gym.tools import CallToolAction, ListToolsAction
from openenv_gym.types import EnvironmentMetadata
from openenv_gym_server.environment import Environment
from openenv_gym_server.errors import fault, invalid_message
from openenv_gym_server.gym_making import collects_frames, make_env
from openenv_gym_server.gym_results import plain_step
from openenv_gym_server.gym_tool_codec import GymToolCodec
from openenv_gym_server.gym_tools import GymTools, named_actions
from openenv_gym_server.legacy import AnyEnv, LegacyEnv, modern_reset
from openenv_gym_server.notes import Notes, quoted
from openenv_gym_server.space_codec import GymObservation, SpaceCodec

__all__ = ["GymEnvironment", "GymMetadata", "GymObservation", "InlineGymEnvironment", "WrappedAttributes", "described"]


_MAX_DESCRIPTION = 1_000
_TOOL_ACTIONS = (CallToolAction, ListToolsAction)


class GymMetadata(EnvironmentMetadata):
    """What a served Gymnasium environment says about itself; ``gymnasium`` is what only Gymnasium knows."""

    gymnasium: dict[str, Any]


class GymEnvironment(Environment[Any, Any, JSONObject]):
    """A Gymnasium environment behind OpenEnv's reset, step and state, and with tools that play it (``GymTools``).

    Args:
        env: an environment id (``"module:namespace/Name-v0"`` imports the module first), an ``EnvSpec``, or a callable
            that returns an environment.
        render_mode: passed to the environment where it is not None.
        **env_kwargs: the environment's own keyword arguments; with an id also ``max_episode_steps``.

    Attributes:
        last: what the last reset or step of the Gymnasium environment gave; None before the first.

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
    has_tools: ClassVar[bool] = True

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
            self._codec = GymToolCodec(self._env.action_space, self._env.observation_space, self.env_id)
        except ValueError:
            self._env.close()
            raise
        self._episode_id: str | None = None
        self._step_count = 0
        self._closed = False
        self._notes = Notes()
        self._tools = GymTools()
        self.last: GymObservation | None = None

    @property
    def codec(self) -> SpaceCodec:
        """How this environment's actions and observations are written as JSON."""
        return self._codec

    @property
    def kind(self) -> type:
        """The class of the environment inside, without its wrappers."""
        return self._named

    @property
    def gymnasium_env(self) -> AnyEnv:
        """The environment inside, which speaks Gymnasium's API whatever it was made of."""
        return self._env

    @property
    def collects_frames(self) -> bool:
        """Whether the frames of a whole episode are kept here, for an environment without such a mode of its own."""
        return collects_frames(self._env)

    @property
    def remote_target(self) -> object:
        """Every attribute of the Gymnasium environment and of its wrappers, found as ``get_wrapper_attr`` finds it."""
        return WrappedAttributes(self._env)

    def name_actions(self, named: Mapping[str, object]) -> None:
        """Give actions a tool each.

        Args:
            named: actions of the action Space, or their JSON, by the tool's name.

        Raises:
            SettingsError: a name cannot be a tool's, or an action does not lie in the Space.
        """
        self._tools = GymTools(named_actions(named, self._codec, self._env))

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
        self.last = GymObservation(obs, info=info, warnings=tuple(notes), early=True)
        return self.last

    def step(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
        """Take an action, a sample of the action Space; or list the tools or call one (``openenv_gym.tools``).

        The reward becomes a Python float and the flags Python bools; a reward of None is 0.0.

        Returns:
            A ``GymObservation``; of tools, a ``ListToolsObservation`` or a ``CallToolObservation``.

        Raises:
            UnsendableError: the reward is no number, or a flag no bool; of a tool's call it is the call's failure.
        """
        del timeout_s, kwargs  # OpenEnv's signature; Gymnasium's step takes an action and nothing else
        if isinstance(action, _TOOL_ACTIONS):
            return self._tools.step(self, action)
        return self.take(action)

    def take(self, action: Any) -> GymObservation:
        """Take an action, a sample of the action Space.

        Raises:
            UnsendableError: the reward is no number, or a flag no bool.
        """
        obs, reward, terminated, truncated, info = plain_step(self._env.step(action), self.env_id)
        self._step_count += 1
        observation = GymObservation(obs, reward, terminated, truncated, info, (), self._step_count == 1)
        self.last = observation
        return observation

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
        return described(self.env_id, self._named, self._spec, self._env.metadata, _time_limit(self._env))


class InlineGymEnvironment(GymEnvironment):
    """A Gymnasium environment whose steps are short enough to run on the server's event loop.

    Example:
        >>> with_fast_steps = InlineGymEnvironment("CartPole-v1")
        >>> with_fast_steps.INLINE
        True
        >>> with_fast_steps.close()
    """

    INLINE: ClassVar[bool] = True


class WrappedAttributes:
    """The attributes of an environment and of its wrappers, whose own ``getattr`` stops at the outermost.

    Args:
        env: the outermost wrapper.
    """

    __slots__ = ("_env",)

    def __init__(self, env: AnyEnv) -> None:
        object.__setattr__(self, "_env", env)

    def __getattr__(self, name: str) -> Any:
        return self._env.get_wrapper_attr(name)

    def __setattr__(self, name: str, value: object) -> None:
        self._env.set_wrapper_attr(name, value)

    def __dir__(self) -> list[str]:
        env, names = self._env, set(dir(self._env))
        while isinstance(env, gymnasium.Wrapper):
            env = env.env
            names |= set(dir(env))
        return sorted(names)


def described(
    env_id: str, kind: type, spec: EnvSpec | None, metadata: Mapping[str, Any], max_episode_steps: int | None
) -> GymMetadata:
    """What is said of an environment of this class; ``metadata`` is Gymnasium's own."""
    return GymMetadata(
        name=env_id,
        description=_first_sentence(kind) or f"{env_id}, a Gymnasium environment",
        gymnasium={
            "env_id": env_id,
            "render_modes": [str(mode) for mode in metadata.get("render_modes") or ()],
            "render_fps": metadata.get("render_fps"),
            "reward_threshold": None if spec is None else spec.reward_threshold,
            "nondeterministic": False if spec is None else spec.nondeterministic,
            "max_episode_steps": max_episode_steps,
            "autoreset_modes": [mode.value for mode in AutoresetMode],
            "shards": None,
        },
    )


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
