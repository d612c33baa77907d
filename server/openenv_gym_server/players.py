"""Environments as the lanes of a vector session play them: Gymnasium's own, and those written for OpenEnv.

Not for autoreset and time limits (``lanes.py``), nor for the errors of a step, which whoever takes it names the
environment of (``crews.py``).
"""

from __future__ import annotations

from typing import Any

from openenv_gym.json_text import JSONObject
from openenv_gym.messages import Outcome
from openenv_gym.transition import read_flags, read_info, read_notes, read_reward
from openenv_gym_server.errors import user_code
from openenv_gym_server.gym_environment import WrappedAttributes
from openenv_gym_server.gym_results import plain_step
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.legacy import AnyEnv, LegacyEnv, StepTuple, modern_reset
from openenv_gym_server.remote_names import check_name, check_settable, missing_attribute
from openenv_gym_server.settings import Names

__all__ = ["GymPlayer", "ModelPlayer"]


class GymPlayer:
    """A Gymnasium environment.

    Args:
        env: the environment, wrapped as ``gymnasium.make`` wraps it.
        env_id: its name, for errors.

    Attributes:
        notes: what it did not take of a reset.
        step: the environment's own.

    Example:
        >>> import gymnasium
        >>> player = GymPlayer(gymnasium.make("CartPole-v1"), "CartPole-v1")
        >>> player.reset(seed=0)[1], player.plain(player.step(1))[1:]
        ({}, (1.0, False, False, {}))
    """

    def __init__(self, env: AnyEnv, env_id: str) -> None:
        self.notes: list[str] = []
        self._env = env
        self._env_id = env_id
        self.step = env.step  # itself: a call costs as much as many an environment's whole step
        self._space = env.observation_space
        inner = env.unwrapped
        self._legacy = inner if isinstance(inner, LegacyEnv) else None

    def reset(self, **keywords: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; without keywords as the environment does by itself."""
        begun = modern_reset(self._env.reset(**keywords), self._space)
        if self._legacy is not None:
            self.notes += self._legacy.take_notes()
        return begun

    def plain(self, result: Any) -> StepTuple:
        """The five values in Python's own types, of whatever the environment's step returned."""
        return plain_step(result, self._env_id)

    def attribute(self, name: str, allowed: Names, args: list[Any], keywords: dict[str, Any]) -> object:
        """The attribute of that name, of the environment or a wrapper; where it can be called, what it returns.

        Raises:
            InvalidActionError: the name is not allowed, or there is none.
        """
        check_name(name, allowed)
        with user_code:
            found = self._env.get_wrapper_attr(name) if self._env.has_wrapper_attr(name) else _MISSING
            if found is not _MISSING:
                return found(*args, **keywords) if callable(found) else found
        raise missing_attribute(self._env_id, name, dir(WrappedAttributes(self._env)), allowed)

    def set_attribute(self, name: str, value: object, allowed: Names) -> None:
        """Set an attribute, where it is or else on the outermost wrapper.

        Raises:
            InvalidActionError: the name is not allowed.
        """
        check_settable(name, allowed)
        with user_code:
            self._env.set_wrapper_attr(name, value)

    def state(self) -> JSONObject | None:
        """None: nothing beside what is counted for it."""
        return None

    def render(self) -> object:
        """The current rendering."""
        with user_code:
            return self._env.render()

    def close(self) -> None:
        """Close the environment."""
        with user_code:
            self._env.close()


_MISSING = object()


class ModelPlayer:
    """An environment written for OpenEnv: its observations are the JSON of their fields.

    Args:
        hosted: the environment.

    Attributes:
        notes: what its server noted for the caller.
    """

    def __init__(self, hosted: HostedEnvironment) -> None:
        self.notes: list[str] = []
        self._hosted = hosted

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[JSONObject, dict[str, Any]]:
        """Begin an episode; the options are keywords of its reset."""
        keywords = {} if options is None else dict(options)
        if seed is not None:
            keywords["seed"] = seed
        outcome = self._hosted.reset(keywords)
        return outcome.observation, self._info(outcome)

    def step(self, action: Any) -> tuple[JSONObject, float, bool, bool, dict[str, Any]]:
        """Take a decoded action; reward, flags and info are what its envelope says."""
        outcome = self._hosted.outcome(self._hosted.act(action))
        terminated, truncated = read_flags(outcome)
        return outcome.observation, read_reward(outcome), terminated, truncated, self._info(outcome)

    def plain(self, result: Any) -> StepTuple:
        """What ``step`` returned, which is plain already."""
        plain: StepTuple = result
        return plain

    def _info(self, outcome: Outcome) -> dict[str, Any]:
        self.notes += read_notes(outcome)
        return read_info(outcome)

    def attribute(self, name: str, allowed: Names, args: list[Any], keywords: dict[str, Any]) -> object:
        """The attribute of that name; where it can be called, what it returns.

        Raises:
            InvalidActionError: the name is not allowed, or there is none.
        """
        remote = self._hosted.remote
        found = remote.attribute(name, allowed)
        return remote.call(name, args, keywords, allowed) if callable(found) else found

    def set_attribute(self, name: str, value: object, allowed: Names) -> None:
        """Set an attribute.

        Raises:
            InvalidActionError: the name is not allowed.
        """
        self._hosted.remote.set_attribute(name, value, allowed)

    def state(self) -> JSONObject | None:
        """The environment's own state."""
        return self._hosted.state()

    def render(self) -> object:
        """The current rendering."""
        return self._hosted.render()

    def close(self) -> None:
        """Close the environment."""
        self._hosted.close()
