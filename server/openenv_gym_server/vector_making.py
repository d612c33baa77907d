"""Making the environments of a vector session from a Gymnasium source, in each way there is.

Not for environments written for OpenEnv (``sessions.py`` makes those one by one), nor for playing them.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import gymnasium
from gymnasium.spaces import Space
from gymnasium.vector import AutoresetMode, VectorEnv

from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError
from openenv_gym.json_text import JSONObject
from openenv_gym.messages import OpenSettings
from openenv_gym_server.crews import Crew, InTurn, close_all
from openenv_gym_server.errors import fault, invalid_message
from openenv_gym_server.gym_environment import GymEnvironment, described
from openenv_gym_server.gym_making import EnvSource, is_classic_control, make_env, portable
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.lane_vector import GymLanes
from openenv_gym_server.lanes import LaneSettings
from openenv_gym_server.native_vector import NativeVector
from openenv_gym_server.plain import plain_json
from openenv_gym_server.players import GymPlayer
from openenv_gym_server.process_crew import InProcesses
from openenv_gym_server.space_codec import SpaceCodec
from openenv_gym_server.thread_lanes import players_on_threads

__all__ = ["MAX_NUM_ENVS", "VectorSettings", "make_lanes", "make_native"]

MAX_NUM_ENVS = 65_536
"""Environments of one session at most, where no limit of sessions is below."""


@dataclass(frozen=True, slots=True)
class VectorSettings:
    """How a client wants its environments.

    Attributes:
        num_envs: how many.
        autoreset_mode: what follows on the end of an episode; None is what the vectorization does by itself.
        vectorization: ``"sync"``, ``"async"``, ``"threads"`` or ``"vector_entry_point"``.
        max_episode_steps: steps after which an episode is truncated, besides the environments' own limit.
    """

    num_envs: int
    autoreset_mode: AutoresetMode | None
    vectorization: str
    max_episode_steps: int | None

    @classmethod
    def of(cls, opening: OpenSettings) -> VectorSettings:
        """The settings of an opening.

        Raises:
            InvalidActionError: a number is out of its range.
        """
        for name, number, most in (
            ("num_envs", opening.num_envs, MAX_NUM_ENVS),
            ("max_episode_steps", opening.max_episode_steps, None),
        ):
            if number is not None and (number < 1 or (most is not None and number > most)):
                wanted = "of at least 1" if most is None else f"from 1 to {most}"
                message = f"Input should be a number {wanted}"
                raise invalid_message(fault("out_of_range", ["data", name], message, number))
        mode = None if opening.autoreset_mode is None else AutoresetMode(opening.autoreset_mode)
        return cls(opening.num_envs, mode, opening.vectorization or "sync", opening.max_episode_steps)

    @property
    def mode(self) -> AutoresetMode:
        """The autoreset mode, for environments that can do any."""
        return self.autoreset_mode or AutoresetMode.NEXT_STEP


def make_lanes(
    source: EnvSource, kwargs: Mapping[str, Any], settings: VectorSettings, first: HostedEnvironment
) -> GymLanes:
    """As many environments as the settings say, played one by one: in turn, or each in its own process or thread.

    Args:
        source: what makes an environment.
        kwargs: its keyword arguments.
        settings: how many, and how they go on after an episode.
        first: the first of them, made already; unless in turn, it only tells what the others are.

    Raises:
        EnvironmentExecutionError: an environment is another than the first.
    """
    environment = first.env
    assert isinstance(environment, GymEnvironment)
    lanes = LaneSettings(settings.mode, settings.max_episode_steps)
    spaces = environment.gymnasium_env.action_space, environment.gymnasium_env.observation_space
    player = functools.partial(_player, portable(source), dict(kwargs), environment.env_id, spaces)
    in_turn = settings.vectorization == "sync"
    crew: Crew
    if in_turn:
        first_player = GymPlayer(environment.gymnasium_env, environment.env_id)
        crew = InTurn(_players(first_player, player, settings.num_envs), lanes)
    elif settings.vectorization == "threads":
        crew = players_on_threads(player, settings.num_envs, lanes)
    else:
        crew = InProcesses([player] * settings.num_envs, lanes)
    try:
        if not in_turn:
            environment.close()
        return GymLanes(first, crew, settings.mode, inline=in_turn)
    except BaseException:
        crew.close()
        raise


def _players(first: GymPlayer, make: Callable[[], GymPlayer], count: int) -> list[GymPlayer]:
    """The first and as many more as are missing; where one cannot be made, those that were made are closed."""
    players = [first]
    try:
        for _ in range(count - 1):
            players.append(make())  # noqa: PERF401 - those that were made are closed where one cannot be
    except BaseException:
        close_all([made.close for made in players[1:]])
        raise
    return players


def _player(
    source: EnvSource, kwargs: Mapping[str, Any], env_id: str, spaces: tuple[Space[Any], Space[Any]]
) -> GymPlayer:
    keywords = dict(kwargs)
    env = make_env(source, keywords.pop("render_mode", None), keywords)
    if (env.action_space, env.observation_space) != spaces:
        made = env.action_space, env.observation_space
        env.close()
        raise EnvironmentExecutionError(
            f"expected all environments of a session to have the Spaces {spaces} of the first, got {made}",
            code="EXECUTION_ERROR",
        )
    return GymPlayer(env, env_id)


def make_native(source: EnvSource, kwargs: Mapping[str, Any], settings: VectorSettings) -> NativeVector:
    """The vector environment that a registered id has as its ``vector_entry_point``.

    Raises:
        InvalidActionError: it has none, or does not go on after an episode as the settings ask.
    """
    spec = portable(source)
    if not isinstance(spec, gymnasium.envs.registration.EnvSpec) or spec.vector_entry_point is None:
        message = 'this environment has no vector_entry_point; ask for vectorization "sync" or "async"'
        raise _refused("vectorization", message, settings.vectorization)
    keywords = dict(kwargs)
    limits = [limit for limit in (spec.max_episode_steps, settings.max_episode_steps) if limit is not None]
    if limits:
        keywords["max_episode_steps"] = min(limits)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*AutoresetMode", category=UserWarning)  # refused here instead
        env = gymnasium.make_vec(spec, settings.num_envs, vectorization_mode="vector_entry_point", **keywords)
    try:
        return _native(env, spec, settings, keywords.get("max_episode_steps"))
    except BaseException:
        env.close()
        raise


def _native(
    env: VectorEnv[Any, Any, Any],
    spec: gymnasium.envs.registration.EnvSpec,
    settings: VectorSettings,
    max_episode_steps: int | None,
) -> NativeVector:
    mode = env.metadata.get("autoreset_mode")
    if not isinstance(mode, AutoresetMode):
        message = f"the vector_entry_point of {spec.id} does not say its autoreset mode in its metadata"
        raise _refused("vectorization", message, settings.vectorization)
    if settings.autoreset_mode not in {None, mode}:
        message = (
            f'the vector_entry_point of {spec.id} does autoreset mode "{mode.value}" alone; ask for that one, or for '
            'vectorization "sync"'
        )
        raise _refused("autoreset_mode", message, settings.mode.value)
    codec = SpaceCodec(env.single_action_space, env.single_observation_space, spec.id)
    document = described(spec.id, type(env.unwrapped), spec, env.metadata, max_episode_steps)
    return NativeVector(env, codec, cast("JSONObject", plain_json(document)), mode, inline=is_classic_control(spec))


def _refused(name: str, message: str, value: object) -> InvalidActionError:
    return invalid_message(fault("not_supported", ["data", name], message, value))
