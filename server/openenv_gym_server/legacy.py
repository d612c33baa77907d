"""Environments of the old ``gym`` API, taken as they are.

The old API is a family: ``reset()`` gave the observation alone, later a pair; the seed went to a ``seed()`` method,
later to ``reset``; ``step()`` gave four values with one ``done``; ``render`` took a mode. What an environment speaks is
told by its signatures and by what its methods return, never by where its class comes from, so every release of ``gym``
and every hand-written class in its style is served alike. Not for Spaces (``legacy_spaces.py``) nor for the wire
(``space_codec.py``).

Source of the meaning of ``TimeLimit.truncated``: gym's own ``TimeLimit`` wrapper, releases 0.9 to 0.25.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

from openenv_gym.errors import EnvironmentExecutionError
from openenv_gym_server.errors import UnsendableError
from openenv_gym_server.legacy_spaces import modern_space
from openenv_gym_server.signatures import keywords_of

__all__ = [
    "AnyEnv",
    "LegacyEnv",
    "StepTuple",
    "as_gymnasium",
    "looks_legacy",
    "modern_info",
    "modern_metadata",
    "modern_reset",
    "modern_step",
]

AnyEnv: TypeAlias = gymnasium.Env[Any, Any]
StepTuple: TypeAlias = tuple[Any, Any, Any, Any, dict[str, Any]]


def as_gymnasium(env: object, render_mode: str | None = None) -> AnyEnv:
    """The environment itself where it speaks Gymnasium's API, else a :class:`LegacyEnv` around it.

    Raises:
        EnvironmentExecutionError: the object has no ``reset`` or no ``step``.
        SpaceMappingError: a Space of it has no counterpart.
    """
    if not looks_legacy(env):
        return cast("AnyEnv", env)
    return LegacyEnv(env, render_mode)


def looks_legacy(env: object) -> bool:
    """Whether an environment, or a class of environments, speaks the old API by all that shows before a call."""
    is_modern_class = issubclass(env, gymnasium.Env) if isinstance(env, type) else isinstance(env, gymnasium.Env)
    if not is_modern_class:
        return True
    accepted = _keywords(env, "reset")
    if "return_info" in accepted or not accepted & {"seed", _ANY}:
        return True
    given = (getattr(env, name, None) for name in ("action_space", "observation_space"))
    # A class declares its Spaces in __init__ as a rule; a property object is not yet a Space either.
    return any(not isinstance(space, gymnasium.Space) for space in given) and not isinstance(env, type)


class LegacyEnv(gymnasium.Env[Any, Any]):
    """An environment of the old API with Gymnasium's face.

    ``done`` with a true ``info["TimeLimit.truncated"]`` is truncated and not terminated; any other ``done`` is
    terminated. The key stays in ``info``. Public attributes that the face does not have are those of the environment
    inside.

    Args:
        legacy_env: the environment.
        render_mode: for environments whose ``render`` takes a mode: the mode every ``render()`` asks for.

    Raises:
        EnvironmentExecutionError: the object has no ``reset`` or no ``step``.
        SpaceMappingError: a Space of it has no counterpart.

    Example:
        >>> class Coin:
        ...     observation_space, action_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)
        ...     def reset(self): return 0
        ...     def step(self, action): return 1, 1.0, True, {"TimeLimit.truncated": True}
        >>> env = LegacyEnv(Coin())
        >>> env.reset(), env.step(0)
        ((0, {}), (1, 1.0, False, True, {'TimeLimit.truncated': True}))
    """

    def __init__(self, legacy_env: Any, render_mode: str | None = None) -> None:
        for method in ("reset", "step"):
            if not callable(getattr(legacy_env, method, None)):
                raise EnvironmentExecutionError(
                    f"expected an environment with reset() and step(), got {type(legacy_env).__name__} "
                    f"without {method}(); give an environment id, an EnvSpec, or a factory that returns an environment"
                )
        self.legacy_env = legacy_env
        self.observation_space = modern_space(getattr(legacy_env, "observation_space", None), "observation_space")
        self.action_space = modern_space(getattr(legacy_env, "action_space", None), "action_space")
        self.metadata = modern_metadata(getattr(legacy_env, "metadata", None))
        self.spec = _modern_spec(getattr(legacy_env, "spec", None))
        self.render_mode = render_mode if render_mode is not None else getattr(legacy_env, "render_mode", None)
        self._reset_keywords = _keywords(legacy_env, "reset")
        self._render_takes_mode = "mode" in _keywords(legacy_env, "render")
        self._notes: list[str] = []
        self._noted: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "legacy_env":
            raise AttributeError(name)
        return getattr(self.legacy_env, name)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; what the old ``reset`` has no place for is noted, see :meth:`take_notes`."""
        super().reset(seed=seed)
        keywords: dict[str, Any] = {}
        if seed is not None and not self._seed(seed, keywords):
            self._note(
                "seed",
                "its reset takes no seed and it has no seed() method, so the episode is not reproducible",
            )
        if options is not None:
            if self._reset_keywords & {"options", _ANY}:
                keywords["options"] = options
            else:
                self._note("options", "its reset takes none")
        if "return_info" in self._reset_keywords:
            keywords["return_info"] = True
        return modern_reset(self.legacy_env.reset(**keywords), self.observation_space)

    def _seed(self, seed: int, keywords: dict[str, Any]) -> bool:
        if "seed" in self._reset_keywords:
            keywords["seed"] = seed
        elif callable(getattr(self.legacy_env, "seed", None)):
            self.legacy_env.seed(seed)
        elif _ANY in self._reset_keywords:
            keywords["seed"] = seed
        else:
            return False
        return True

    def step(self, action: Any) -> StepTuple:
        """Take an action; four values become five."""
        return modern_step(self.legacy_env.step(action))

    def render(self) -> Any:
        """What the old ``render`` gives for the mode of this environment; None without a mode."""
        if not callable(getattr(self.legacy_env, "render", None)):
            raise EnvironmentExecutionError(f"{type(self.legacy_env).__name__} does not render: it has no render()")
        if not self._render_takes_mode:
            return self.legacy_env.render()
        return None if self.render_mode is None else self.legacy_env.render(mode=self.render_mode)

    def close(self) -> None:
        """Close the environment inside, where it can be closed."""
        close = getattr(self.legacy_env, "close", None)
        if callable(close):
            close()

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """Set an attribute where it is: on the environment inside, unless it is one of this face."""
        if name in self.__dict__ or hasattr(type(self), name):
            return super().set_wrapper_attr(name, value, force=force)
        if not force and not hasattr(self.legacy_env, name):
            return False
        setattr(self.legacy_env, name, value)
        return True

    def take_notes(self) -> list[str]:
        """What the caller asked for and the environment has no place for: each said once, then forgotten."""
        notes, self._notes = self._notes, []
        return notes

    def _note(self, what: str, reason: str) -> None:
        if what not in self._noted:
            self._noted.add(what)
            self._notes.append(f"{type(self.legacy_env).__name__} did not take the {what} given to reset: {reason}")


def modern_reset(result: Any, observation_space: gymnasium.Space[Any]) -> tuple[Any, dict[str, Any]]:
    """The pair of observation and info, of whatever an old or a new ``reset`` returned.

    A pair whose second part is a mapping is taken for (observation, info), unless it is a sample of the Space itself.
    """
    is_pair = isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], Mapping)
    if not is_pair or (isinstance(observation_space, gymnasium.spaces.Tuple) and observation_space.contains(result)):
        return result, {}
    return result[0], dict(result[1])


def modern_step(result: Any) -> StepTuple:
    """Observation, reward, terminated, truncated and info, of whatever an old or a new ``step`` returned.

    Raises:
        UnsendableError: it is no sequence of four or five, ``done`` is no truth value, or info no mapping.
    """
    if not isinstance(result, tuple | list) or len(result) not in {4, 5}:
        size = f" of {len(result)}" if isinstance(result, tuple | list) else ""
        raise UnsendableError(
            "expected step() to return (observation, reward, terminated, truncated, info) or the old four values "
            f"(observation, reward, done, info), got {type(result).__name__}{size}; "
            "the environment has already advanced"
        )
    info = modern_info(result[-1])
    if len(result) == 5:
        return result[0], result[1], result[2], result[3], info
    done = _done(result[2])
    truncated = done and _done(info.get("TimeLimit.truncated", False))
    return result[0], result[1], done and not truncated, truncated, info


def modern_info(value: object) -> dict[str, Any]:
    """The info as a dict; None is an empty one.

    Raises:
        UnsendableError: it is no mapping.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UnsendableError(
            f"expected info to be a dict, got {type(value).__name__}; the environment has already advanced"
        )
    return value if isinstance(value, dict) else dict(value)


def _done(value: Any) -> bool:
    """Old environments give their flag as bool, as a number 0 or 1, or as an array of one of these."""
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.item()
    if not isinstance(value, bool | int | float | np.bool_ | np.number) or value not in {0, 1}:
        raise UnsendableError(
            f"expected done to be true or false, got {type(value).__name__}; the environment has already advanced"
        )
    return bool(value)


_ANY = "**"
"""Stands among the keywords of a method for "and any other"."""


def _keywords(env: object, method: str) -> frozenset[str]:
    """The keywords a method takes; where a wrapper hands all of them on, those of the environment inside as well."""
    names: set[str] = set()
    while callable(call := getattr(env, method, None)):
        keywords = keywords_of(call)
        names |= keywords.names
        if not keywords.any_other:
            break
        inner = None if isinstance(env, type) else getattr(env, "env", None)
        if inner is None:
            return frozenset(names | {_ANY})
        env = inner
    return frozenset(names)


def modern_metadata(metadata: object) -> dict[str, Any]:
    """Metadata of either API with Gymnasium's keys; the old ones (``render.modes`` and so on) stay beside them."""
    modern = dict(metadata) if isinstance(metadata, Mapping) else {}
    modern.setdefault("render_modes", list(modern.get("render.modes", [])))
    if "video.frames_per_second" in modern:
        modern.setdefault("render_fps", modern["video.frames_per_second"])
    return modern


def _modern_spec(spec: Any) -> EnvSpec | None:
    if spec is None or isinstance(spec, EnvSpec):
        return spec
    try:
        return EnvSpec(
            id=spec.id,
            entry_point=getattr(spec, "entry_point", None),
            reward_threshold=getattr(spec, "reward_threshold", None),
            nondeterministic=bool(getattr(spec, "nondeterministic", False)),
            max_episode_steps=getattr(spec, "max_episode_steps", None),
        )
    except (AttributeError, TypeError, gymnasium.error.Error):
        # The spec informs and nothing depends on it: an id Gymnasium cannot parse leaves the environment without one.
        return None
