"""The making of what a session has, on the session's thread: its environment, or its environments.

Not for who gets a session (``sessions.py``), nor for which keywords a factory is called with (``factories.py``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from openenv_gym.errors import OpenEnvGymError
from openenv_gym.messages import OpenSettings
from openenv_gym_server.dispatch import Hosted
from openenv_gym_server.errors import factory_calls
from openenv_gym_server.factories import EnvironmentFactory
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.models import Models
from openenv_gym_server.session import Serving
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.vector_sessions import VectorMaker, exact_keyword
from openenv_gym_server.worker import Worker
from openenv_gym_server.workers import Workers, close_unused

__all__ = ["EnvironmentMaker", "close_hosted"]

T = TypeVar("T")

logger = logging.getLogger("openenv_gym_server")


class EnvironmentMaker:
    """Makes the environments of one application's sessions.

    Args:
        factory: makes environments.
        models: the classes of their objects.
        settings: the operator's settings.
        workers: the application's threads, which learn from what is made.
    """

    def __init__(self, factory: EnvironmentFactory, models: Models, settings: ServerSettings, workers: Workers) -> None:
        self._factory = factory
        self._models = models
        self._settings = settings
        self._workers = workers
        self._last: HostedEnvironment | None = None

    def make(self, worker: Worker, opening: OpenSettings, serving: Serving) -> Hosted:
        """What a session has; called on its thread.

        A lent instance goes on with the episode in which the last session left it, except in production.

        Raises:
            InvalidActionError: the client asked for what the operator or the factory does not allow.
            EnvironmentFactoryError: an environment could not be made.
        """

        def make(worker: Worker, opening: OpenSettings) -> HostedEnvironment:
            return self._made(worker, opening, serving)

        if opening.vector:
            return VectorMaker(self._factory, self._settings, self._workers, make).make(worker, opening)
        hosted = make(worker, opening)
        if self._factory.instance is not None:
            if self._last is not None and not serving.production:
                hosted.go_on(self._last)
            self._last = hosted
        return hosted

    def use_once(self, worker: Worker, job: Callable[[HostedEnvironment], T], serving: Serving) -> T:
        """What the job gives on an environment that is made for it, and closed after it unless it is lent."""
        hosted = self._made(worker, OpenSettings(), serving)
        try:
            return job(hosted)
        finally:
            if self._factory.instance is None:
                close_hosted(hosted)

    def _made(self, worker: Worker, opening: OpenSettings, serving: Serving) -> HostedEnvironment:
        try:
            env = self._factory.make(
                opening.env_kwargs, self._settings.allowed_env_kwargs, opening.render_mode, exact_keyword
            )
        except BaseException:
            self._workers.learn_from(None)
            raise
        self._workers.learn_from(env)
        with factory_calls(self._factory.name):
            try:
                hosted = HostedEnvironment(env, self._models, worker.wait_for, serving.mode)
            except BaseException:
                if self._factory.instance is None:
                    close_unused(env, worker)
                raise
        if not hosted.asynchronous and not self._workers.is_shared(worker):
            worker.drop_loop()
        if self._settings.allow_code and isinstance(env, MCPEnvironment):
            env.tool_caller.allow_code()
        if serving.begins or serving.production:
            hosted.opening = {} if self._settings.seed is None else {"seed": self._settings.seed}
        return hosted


def close_hosted(hosted: Hosted) -> None:
    """Close what a session had."""
    try:
        hosted.close()
    except OpenEnvGymError:
        # Nobody is left to be told, and the slot must be freed whatever an environment's close() does.
        logger.warning("an environment raised in close()", exc_info=True)
