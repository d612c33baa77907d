"""A vector session whose environments are played one by one.

For Gymnasium environments and those written for OpenEnv, in turn, on threads or in processes (``crews.py``,
``process_crew.py``). Not for an environment that is a vector by itself (``native_vector.py``).

The values are those of ``gymnasium.vector.SyncVectorEnv``, step by step and in every autoreset mode. It is not used
itself, since it steps all environments or none and does not tell which one raised.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError
from openenv_gym.frames import Part, Wait
from openenv_gym.json_text import JSONObject
from openenv_gym_server.crews import Crew, OnThreads
from openenv_gym_server.episodes import Episodes
from openenv_gym_server.errors import fault, invalid_message
from openenv_gym_server.gym_environment import GymEnvironment
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.lanes import Rows
from openenv_gym_server.parsing import check_reset
from openenv_gym_server.remote_names import check_name, check_settable
from openenv_gym_server.settings import Names
from openenv_gym_server.space_codec import SpaceCodec
from openenv_gym_server.space_rows import SpaceRows, in_row
from openenv_gym_server.vector_hosting import HostedVector, VectorResult, wrong_number
from openenv_gym_server.vector_infos import batched

__all__ = ["MAX_INLINE", "GymLanes", "LaneVector", "ModelLanes"]

MAX_INLINE = 256
"""Environments of microseconds that are stepped in turn on the event loop at most: some milliseconds together."""


class LaneVector(HostedVector, ABC):
    """Environments that are played one by one.

    Args:
        first: the first of them, which speaks for all.
        crew: plays them.
        autoreset_mode: what follows on the end of an episode, as the crew has it.
    """

    def __init__(self, first: HostedEnvironment, crew: Crew, autoreset_mode: AutoresetMode) -> None:
        self._first = first
        self._crew = crew
        self._episodes = Episodes(crew.size, autoreset_mode)
        self.autoreset_mode = autoreset_mode.value
        self.num_envs = crew.size
        self.finite = first.finite
        self.limits_tools = first.limits_tools
        self.asynchronous = first.asynchronous
        self._threads = crew if isinstance(crew, OnThreads) else None
        self.first_come = self._threads is not None
        self.under_way: set[int] = set()
        self._told: set[str] = set()

    @property
    def environment_type(self) -> str:
        """The name of the environments' class."""
        return self._first.environment_type

    @property
    def render_mode(self) -> str | None:
        """What ``render`` gives."""
        return self._first.render_mode

    def metadata(self) -> JSONObject:
        """The ``/metadata`` document of the first."""
        return self._first.metadata()

    def schema(self) -> JSONObject:
        """The ``/schema`` document of the first."""
        return self._first.schema()

    # ------------------------------------------------------------------------------------------- an episode

    def reset(self, ids: Sequence[int], seeds: Sequence[int | None], options: dict[str, Any] | None) -> VectorResult:
        """Begin an episode in each of these environments."""
        with self._ending_on_failure():
            rows = self._crew.reset(ids, seeds, options)
            self._episodes.began(ids)
            return self._result(rows, ids, first=True)

    def step(self, ids: Sequence[int], actions: Sequence[Any]) -> VectorResult:
        """Take the actions."""
        self._episodes.check_steppable(ids)
        with self._ending_on_failure():
            return self._stepped(self._crew.step(ids, actions), ids)

    def step_first_come(self, ids: Sequence[int], actions: Any, wait: Wait) -> tuple[list[int], VectorResult]:
        """Begin these steps, and give the rows of all that are done once there are enough."""
        assert self._threads is not None
        self._episodes.check_steppable(ids)
        with self._ending_on_failure():
            self._threads.begin(ids, actions)
            self.under_way.update(ids)
            done, rows = self._threads.collect(wait.at_least, wait.within_s)
            self.under_way.difference_update(done)
            return done, self._stepped(rows, done) if done else _nothing()

    @property
    def busy(self) -> bool:
        """Whether an environment is at a step whose answer no message waits for."""
        return self._threads is not None and self._threads.busy

    def _stepped(self, rows: Rows, ids: Sequence[int]) -> VectorResult:
        first, self.total_steps = self.total_steps == 0, self.total_steps + len(ids)
        result = self._result(rows, ids, first)
        result.rewards = np.array(rows.rewards, np.float64)
        result.terminations = np.frombuffer(bytes(rows.terminations), np.bool_)
        result.truncations = np.frombuffer(bytes(rows.truncations), np.bool_)
        self._episodes.stepped(ids, result.terminations | result.truncations)
        return result

    def _result(self, rows: Rows, ids: Sequence[int], first: bool) -> VectorResult:
        """What any rows have."""
        result = VectorResult(len(ids), rows.observations)
        if rows.ends or any(rows.infos):
            result.infos = self._infos(_in_order(rows), ids)
            # An environment's own info of that name is mixed with these, and so stays where it is.
            if rows.ends and not any("final_obs" in info for info in rows.infos):
                del result.infos["final_obs"]
                result.final = [row for row, *_ in rows.ends], [observation for _, observation, _ in rows.ends]
        if rows.notes or first:
            result.notes = self._news(rows.notes + (self._notes_on(rows.observations[0]) if first else []))
        return result

    def _infos(self, entries: Iterator[tuple[int, Mapping[str, Any]]], ids: Sequence[int]) -> dict[str, Any]:
        try:
            return batched(entries, len(ids))
        except EnvironmentExecutionError as error:
            error.env_index = ids[error.env_index or 0]
            raise

    def _news(self, notes: list[str]) -> list[str]:
        """What was not said before: every environment says the same, as a rule."""
        fresh = [note for note in dict.fromkeys(notes) if note not in self._told]
        self._told.update(fresh)
        return fresh

    def _notes_on(self, observation: Any) -> list[str]:  # noqa: ARG002 - nothing, of an observation of fields
        return []

    def _ending_on_failure(self) -> _Ending:
        return _Ending(self)

    # ------------------------------------------------------------------------------------ what it is, and more

    def state(self) -> JSONObject:
        """Where each of them is; what an environment says of itself goes before what is counted here."""
        states = self._crew.ask("state", [()] * self.num_envs)
        counted: list[JSONObject] = [
            {"episode_id": name, "step_count": steps}
            for name, steps in zip(self._episodes.names, self._episodes.steps, strict=True)
        ]
        told = [own | (state or {}) for own, state in zip(counted, states, strict=True)]
        return {
            "num_envs": self.num_envs,
            "episode_ids": [each.get("episode_id") for each in told],
            "step_counts": [each.get("step_count") for each in told],
            "states": told,  # type: ignore[dict-item]  # objects of JSON values
        }

    def render(self) -> object:
        """The current rendering of each."""
        return tuple(self._crew.ask("render", [()] * self.num_envs))

    def call(self, name: str, args: list[Any], keywords: dict[str, Any], allowed: Names) -> object:
        """What the method of that name returns in each; of an attribute, its value."""
        check_name(name, allowed)
        return tuple(self._crew.ask("attribute", [(name, allowed, args, keywords)] * self.num_envs))

    def set_attributes(self, name: str, values: list[Any], allowed: Names) -> None:
        """Set an attribute in each."""
        check_settable(name, allowed)
        if len(values) != self.num_envs:
            raise wrong_number("values", len(values), self.num_envs)
        self._crew.ask("set_attribute", [(name, value, allowed) for value in values])

    def close(self) -> None:
        """Close all of them."""
        self._crew.close()

    def give_up(self) -> None:
        """Have what is under way end with an error, if it can."""
        self._crew.give_up()

    @abstractmethod
    def decoded(self, actions: Sequence[JSONObject], ids: Sequence[int]) -> list[Any]:
        """The actions of these environments."""


class _Ending:
    """Notes that an environment has raised, so that its session ends."""

    __slots__ = ("_vector",)

    def __init__(self, vector: HostedVector) -> None:
        self._vector = vector

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is not None:
            self._vector.failed = True


def _nothing() -> VectorResult:
    """What no step gives."""
    return VectorResult(0, (), np.empty(0), np.empty(0, np.bool_), np.empty(0, np.bool_))


def _in_order(rows: Rows) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The infos as Gymnasium adds them: of an environment whose next episode has begun, the old one's end first."""
    ends = {row: {"final_obs": observation, "final_info": info} for row, observation, info in rows.ends}
    for row, info in enumerate(rows.infos):
        if row in ends:
            yield row, ends[row]
        yield row, info


class GymLanes(LaneVector):
    """Gymnasium environments.

    Args:
        first: the first of them, which speaks for all.
        crew: plays them.
        autoreset_mode: what follows on the end of an episode, as the crew has it.
        inline: whether their steps may run on the event loop.
    """

    def __init__(
        self, first: HostedEnvironment, crew: Crew, autoreset_mode: AutoresetMode, *, inline: bool = False
    ) -> None:
        super().__init__(first, crew, autoreset_mode)
        env = first.env
        assert isinstance(env, GymEnvironment)
        self.inline = inline and first.inline and crew.size <= MAX_INLINE
        self.binary = first.binary
        inner = env.gymnasium_env
        spaces = inner.action_space, inner.observation_space
        # The environment's own codec takes calls of tools too, which are for a session of one environment.
        self._rows = SpaceRows(SpaceCodec(*spaces, env.env_id), *spaces, self.num_envs)

    def decoded(self, actions: Sequence[JSONObject], ids: Sequence[int]) -> list[Any]:  # noqa: ARG002 - of one Space
        """The actions of these environments."""
        return self._rows.actions(actions)

    def unpacked(self, body: memoryview, ids: Sequence[int]) -> list[Any]:
        """The actions of a binary frame."""
        return self._rows.each_action(self._rows.batch(body, len(ids)), len(ids))

    def fields(self, observations: Sequence[Any], count: int, ids: Sequence[int]) -> list[JSONObject]:  # noqa: ARG002
        """Each observation as the JSON of its fields."""
        with self._ending_on_failure():
            return self._rows.fields(observations, ids)

    def parts(self, observations: Sequence[Any], count: int, ids: Sequence[int]) -> list[Part]:
        """The observations as the batch of a binary frame."""
        with self._ending_on_failure():
            return self._rows.parts(observations, count, ids)

    def _notes_on(self, observation: Any) -> list[str]:
        return self._rows.notes(observation)


class ModelLanes(LaneVector):
    """Environments written for OpenEnv: text messages alone.

    Args:
        hosted: the environments.
        crew: plays them, in the same order.
        autoreset_mode: what follows on the end of an episode, as the crew has it.
        together: how the limits of tools that are called at once make one: ``sum`` in turn, ``max`` at the same time.
    """

    def __init__(
        self,
        hosted: Sequence[HostedEnvironment],
        crew: Crew,
        autoreset_mode: AutoresetMode,
        together: Callable[[list[float]], float] = sum,
    ) -> None:
        super().__init__(hosted[0], crew, autoreset_mode)
        self._hosted = hosted
        self._together = together

    def decoded(self, actions: Sequence[JSONObject], ids: Sequence[int]) -> list[Any]:
        """The actions of these environments."""
        decoded: list[Any] = []
        try:
            for index, action in zip(ids, actions, strict=True):
                decoded.append(self._hosted[index].decoded(action))
        except InvalidActionError as error:
            raise in_row(error, len(decoded)) from error
        return decoded

    def unpacked(self, body: memoryview, ids: Sequence[int]) -> list[Any]:  # noqa: ARG002 - whatever they are
        """Refused: these have no Spaces that both ends know."""
        raise invalid_message(fault("string_type", [], "this environment takes text frames alone", None))

    def reset(self, ids: Sequence[int], seeds: Sequence[int | None], options: dict[str, Any] | None) -> VectorResult:
        """Begin an episode in each; the options are keywords of its reset."""
        check_reset(options or {}, "data")
        return super().reset(ids, seeds, options)

    def fields(self, observations: Sequence[Any], count: int, ids: Sequence[int]) -> list[JSONObject]:  # noqa: ARG002
        """The observations, which are the JSON of their fields already."""
        return list(observations)

    def parts(self, observations: Sequence[Any], count: int, ids: Sequence[int]) -> list[Part]:
        """Refused: these have no Spaces that both ends know."""
        raise NotImplementedError("no binary frame is taken, so none is answered")

    def tool_timeout_s(self, actions: Sequence[JSONObject]) -> float | None:
        """Seconds that all of the tools which the actions call may take together; None for ever."""
        first = self._first
        called = [action for action in actions if action.get("type") != "list_tools"]
        names = [name for action in called if (name := first.called_tool(action)) is not None]
        limits = [limit for name in names if (limit := first.tool_timeout_s(name)) is not None]
        # Beside a tool without a limit, or what is no tool, a limit of the others' says nothing.
        return float(self._together(limits)) if limits and len(limits) == len(called) else None
