"""The making of a vector session's environments, whatever its factory makes.

Not for who gets a session (``sessions.py``), nor for the ways that Gymnasium's environments have of their own
(``vector_making.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from openenv_gym.errors import InvalidActionError
from openenv_gym.json_text import JSON
from openenv_gym.messages import OpenSettings
from openenv_gym_server.crews import Crew, InTurn, OnThreads, close_all
from openenv_gym_server.errors import factory_calls, fault, invalid_message
from openenv_gym_server.factories import EnvironmentFactory
from openenv_gym_server.gym_environment import GymEnvironment
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.lane_vector import ModelLanes
from openenv_gym_server.lanes import LaneSettings
from openenv_gym_server.models import Models
from openenv_gym_server.parsing import exact
from openenv_gym_server.players import ModelPlayer
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.thread_lanes import made_on_threads, started
from openenv_gym_server.vector_hosting import HostedVector
from openenv_gym_server.vector_making import VectorSettings
from openenv_gym_server.worker import Worker
from openenv_gym_server.workers import Workers

__all__ = ["VectorMaker", "check_opening", "exact_keyword"]

Host: TypeAlias = "Callable[[Worker, OpenSettings], HostedEnvironment]"
"""Makes one environment, on the thread that calls it, and what its server knows of it."""


def exact_keyword(name: str, value: JSON) -> object:
    """The value of a keyword for the factory, which a client sent in the exact form of ``openenv_gym.info``.

    Raises:
        InvalidActionError: it is not in that form.
    """
    return exact(value, "data", "env_kwargs", name)


def check_opening(opening: OpenSettings, factory: EnvironmentFactory) -> None:
    """Refuse an opening that this server cannot meet, before anything is made for it.

    Raises:
        InvalidActionError: a number is out of its range, or belongs to sessions of several environments; or the factory
            makes no environments that are vectors by themselves.
    """
    VectorSettings.of(opening)
    if opening.max_episode_steps is not None and not opening.vector:
        message = "belongs to sessions of several environments; give autoreset_mode too, or num_envs"
        raise invalid_message(fault("not_supported", ["data", "max_episode_steps"], message, opening.max_episode_steps))
    if opening.vectorization == "vector_entry_point" and factory.make_vector is None:
        message = "only an environment of Gymnasium's registry may have a vector_entry_point"
        raise invalid_message(fault("not_supported", ["data", "vectorization"], message, opening.vectorization))


class VectorMaker:
    """Makes the environments of vector sessions.

    Args:
        factory: makes environments.
        settings: the operator's settings.
        workers: gives threads.
        host: makes one environment.
    """

    def __init__(self, factory: EnvironmentFactory, settings: ServerSettings, workers: Workers, host: Host) -> None:
        self._factory = factory
        self._settings = settings
        self._workers = workers
        self._host = host

    def make(self, worker: Worker, opening: OpenSettings) -> HostedVector:
        """The environments of a session; called on its thread.

        Args:
            worker: the session's thread.
            opening: what the client asked for.

        Raises:
            InvalidActionError: the environments do not offer what was asked for.
            EnvironmentFactoryError: one could not be made.
        """
        settings = VectorSettings.of(opening)
        if self._factory.make_vector is not None:
            return self._made_by_factory(self._factory.make_vector, settings, worker, opening)
        in_turn = settings.vectorization == "sync"
        hosted, workers = self._in_turn(worker, opening) if in_turn else self._on_threads(worker, opening)
        players = [ModelPlayer(each) for each in hosted]
        lanes = LaneSettings(settings.mode, settings.max_episode_steps)
        crew: Crew = InTurn(players, lanes) if in_turn else OnThreads(players, lanes, workers)
        return ModelLanes(hosted, crew, settings.mode, together=sum if in_turn else max)

    def _made_by_factory(
        self, make: Callable[..., HostedVector], settings: VectorSettings, worker: Worker, opening: OpenSettings
    ) -> HostedVector:
        keywords = self._factory.keywords(
            opening.env_kwargs, self._settings.allowed_env_kwargs, opening.render_mode, exact_keyword
        )

        def host(env: GymEnvironment) -> HostedEnvironment:
            return HostedEnvironment(env, Models(dict, dict), worker.wait_for)

        with factory_calls(self._factory.name):
            made = make(settings, host, **keywords)
        worker.drop_loop()
        return made

    def _in_turn(self, worker: Worker, opening: OpenSettings) -> tuple[list[HostedEnvironment], list[Worker]]:
        hosted: list[HostedEnvironment] = []
        try:
            for _ in range(opening.num_envs):
                hosted.append(self._host(worker, opening))  # noqa: PERF401 - those that were made are closed then
        except BaseException:
            close_all([each.close for each in hosted])
            raise
        return hosted, []

    def _on_threads(self, session: Worker, opening: OpenSettings) -> tuple[list[HostedEnvironment], list[Worker]]:
        """Each environment made on a thread of its own, all at the same time.

        Raises:
            InvalidActionError: all environments of this kind live on one thread.
        """
        if not self._workers.decided:
            self._host(session, opening).close()  # which tells what kind of thread it wants
        workers = started(opening.num_envs, lambda index: self._thread(index, opening))
        return made_on_threads(workers, lambda worker: self._host(worker, opening)), workers

    def _thread(self, index: int, opening: OpenSettings) -> Worker:
        worker = self._workers.take(f"openenv-lane-{index}")
        if worker is None or self._workers.is_shared(worker):
            raise _take_turns(opening.vectorization)
        return worker


def _take_turns(vectorization: str | None) -> InvalidActionError:
    message = 'environments of this kind share one thread, so they take turns; ask for vectorization "sync"'
    return invalid_message(fault("not_supported", ["data", "vectorization"], message, vectorization))
