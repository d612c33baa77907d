"""Tests of ``openenv_gym_server.environment_making``; ``test_sessions.py`` has what becomes of the sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from openenv_gym.errors import EnvironmentFactoryError
from openenv_gym.messages import OpenSettings
from openenv_gym.tools import CallToolAction, CallToolObservation
from openenv_gym_server.environment_making import EnvironmentMaker, close_hosted
from openenv_gym_server.factories import EnvironmentFactory
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.models import Models
from openenv_gym_server.session import Serving
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.vector_hosting import HostedVector
from openenv_gym_server.worker import Worker
from openenv_gym_server.workers import Workers
from tests.openenv_gym_server.climbing import climber

SIMULATION = Serving("simulation")
PRODUCTION = Serving("production")


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker("test-making")
    yield worker
    worker.stop()


def maker_of(env: Any, **settings: Any) -> EnvironmentMaker:
    factory = EnvironmentFactory(env)
    models = Models(CallToolAction, CallToolObservation)
    return EnvironmentMaker(factory, models, ServerSettings(**settings), Workers(factory))


def made(maker: EnvironmentMaker, worker: Worker, serving: Serving) -> HostedEnvironment:
    hosted = worker.submit(maker.make, worker, OpenSettings(), serving).result(10)
    assert isinstance(hosted, HostedEnvironment)
    return hosted


def test_the_server_begins_the_episode_in_production_and_where_it_is_to(worker: Worker) -> None:
    maker = maker_of(climber(), seed=7)
    assert made(maker, worker, SIMULATION).opening is None
    for serving in (PRODUCTION, Serving("simulation", begins=True)):
        assert made(maker, worker, serving).opening == {"seed": 7}


@pytest.mark.parametrize(("serving", "steps"), [(SIMULATION, 2), (PRODUCTION, 0)])
def test_a_lent_instance_goes_on_with_its_episode_except_in_production(
    worker: Worker, serving: Serving, steps: int
) -> None:
    maker = maker_of(climber()())
    made(maker, worker, SIMULATION).steps = 2
    assert made(maker, worker, serving).steps == steps


def test_an_environment_that_is_made_for_one_job_is_closed_after_it(worker: Worker) -> None:
    env = climber()
    maker = maker_of(env)
    height = worker.submit(maker.use_once, worker, lambda hosted: hosted.env.height, SIMULATION).result(10)
    assert (height, [each.closed for each in env.made]) == (0, [True])


def test_several_environments_are_one_thing_to_the_session(worker: Worker) -> None:
    hosted = worker.submit(
        maker_of(climber()).make, worker, OpenSettings(num_envs=2, vectorization="sync"), SIMULATION
    ).result(10)
    assert isinstance(hosted, HostedVector)
    hosted.close()


def test_a_factory_that_fails_leaves_the_threads_free_for_the_next(worker: Worker) -> None:
    def broken() -> Any:
        raise FileNotFoundError("no map")

    with pytest.raises(EnvironmentFactoryError):
        made(maker_of(broken), worker, SIMULATION)


def test_what_closing_raises_is_logged_and_nobodys(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    class Stuck(climber()):  # type: ignore[misc]
        def close(self) -> None:
            raise OSError("stuck")

    close_hosted(made(maker_of(Stuck), worker, SIMULATION))
    assert "an environment raised in close()" in caplog.text
