"""Wiring: from an environment's class to a FastAPI application. Nothing here decides anything about a message.

Signatures are those of ``openenv`` 0.10.0, with ``settings`` added at the end.
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
from fastapi import FastAPI
from starlette.routing import WebSocketRoute

from openenv_gym.errors import SettingsError
from openenv_gym.json_text import JSONObject
from openenv_gym.types import ConcurrencyConfig, ServerCapacityStatus, SessionInfo, State
from openenv_gym_server.catalogue import Catalogue
from openenv_gym_server.codec import ModelCodec
from openenv_gym_server.errors import ConcurrencyConfigurationError
from openenv_gym_server.factories import EnvironmentFactory
from openenv_gym_server.models import Models
from openenv_gym_server.precedence import current, hold
from openenv_gym_server.protection import Gate, page_refusal, token_refusal
from openenv_gym_server.routes import description, episode, health, home, mcp, tasks
from openenv_gym_server.routes.served import Served
from openenv_gym_server.routes.ws import WebSocketApp
from openenv_gym_server.rpc_methods import RpcMethods
from openenv_gym_server.sessions import Sessions
from openenv_gym_server.settings import CAPACITY_VARIABLE, ServerSettings

__all__ = ["HTTPEnvServer", "create_app", "create_fastapi_app"]


def create_app(  # noqa: PLR0917 - the signature is OpenEnv's
    env: Callable[..., Any] | object,
    action_cls: type[Any],
    observation_cls: type[Any],
    env_name: str | None = None,
    max_concurrent_envs: int | None = None,
    concurrency_config: ConcurrencyConfig | None = None,
    gradio_builder: Callable[..., Any] | None = None,
    custom_tab_name: str = "Custom",  # noqa: ARG001 - the signature is OpenEnv's
    custom_tab_primary: bool = False,  # noqa: ARG001 - the signature is OpenEnv's
    show_default_tab: bool = True,  # noqa: ARG001 - the signature is OpenEnv's
    title_override: str | None = None,
    state_cls: type[Any] = State,
    *,
    mode: str | None = None,
    reset_observation_cls: type[Any] | None = None,
    settings: ServerSettings | None = None,
) -> FastAPI:
    """An application that serves an environment.

    Args:
        env: the environment's class, a callable that makes one, or one instance. An instance is lent to one session
            at a time and never closed; whoever else comes is told that the server is full (HTTP 503,
            ``CAPACITY_REACHED``). Single HTTP requests play one episode of it, one after another.
        action_cls: class of its actions, a pydantic model or a dataclass.
        observation_cls: class of its observations, which ``/schema`` describes. A model, dataclass or dict of another
            kind is sent as it is; anything else that reset or step returns is an error.
        env_name: its public name; else its class's.
        max_concurrent_envs: sessions at a time; see ``ServerSettings``.
        concurrency_config: the same with an idle timeout, instead of ``max_concurrent_envs``.
        gradio_builder: the interface of a web page, which this server does not have; a warning says so.
        custom_tab_name: as ``gradio_builder``, without effect.
        custom_tab_primary: as ``gradio_builder``, without effect.
        show_default_tab: as ``gradio_builder``, without effect.
        title_override: title of the application.
        state_cls: class of its state, where the environment does not declare it itself.
        mode: ``"simulation"`` or ``"production"``; else the settings'.
        reset_observation_cls: class of reset's observations, where it is another.
        settings: the operator's settings. Without them the options of ``openenv-gym serve module:app`` hold where it
            imports the module, and in any case those that it was given go over these and the arguments above.

    Raises:
        TypeError: ``env`` is nothing that makes environments.
        SettingsError: two settings contradict each other.
        ConcurrencyConfigurationError: several sessions for an environment that does not declare
            ``SUPPORTS_CONCURRENT_SESSIONS``.

    Example:
        >>> from openenv_gym.types import Action, Observation
        >>> class Idle:
        ...     def reset(self):
        ...         return Observation()
        ...     def step(self, action):
        ...         return Observation(reward=0.0)
        >>> app = create_app(Idle, Action, Observation)
        >>> app.title
        'OpenEnv Environment HTTP API'
    """
    if gradio_builder is not None:
        warnings.warn("gradio_builder has no effect: this server has no web interface", UserWarning, stacklevel=2)
    app = create_fastapi_app(
        env,
        action_cls,
        observation_cls,
        max_concurrent_envs,
        concurrency_config,
        env_name,
        state_cls,
        mode=mode,
        reset_observation_cls=reset_observation_cls,
        settings=settings,
    )
    if title_override is not None:
        app.title = title_override
    return app


def create_fastapi_app(  # noqa: PLR0917 - the signature is OpenEnv's
    env: Callable[..., Any] | object,
    action_cls: type[Any],
    observation_cls: type[Any],
    max_concurrent_envs: int | None = None,
    concurrency_config: ConcurrencyConfig | None = None,
    env_name: str | None = None,
    state_cls: type[Any] = State,
    *,
    mode: str | None = None,
    reset_observation_cls: type[Any] | None = None,
    settings: ServerSettings | None = None,
) -> FastAPI:
    """As ``create_app``, with the order of arguments that OpenEnv gave this one."""
    app = FastAPI(
        title="OpenEnv Environment HTTP API",
        version="1.0.0",
        description="Reset, step and inspect an environment over HTTP; clients that play episodes connect to `/ws`.",
        license_info={"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
    )
    server = HTTPEnvServer(
        env,
        action_cls,
        observation_cls,
        max_concurrent_envs,
        concurrency_config,
        env_name,
        state_cls,
        reset_observation_cls=reset_observation_cls,
        settings=settings,
    )
    server.register_routes(app, mode)
    return app


class HTTPEnvServer:
    """An environment with its sessions, to be put into an application of your own.

    Args:
        env: the environment's class, a callable that makes one, or one instance.
        action_cls: class of its actions.
        observation_cls: class of its observations.
        max_concurrent_envs: sessions at a time; see ``ServerSettings``.
        concurrency_config: the same with an idle timeout, instead of ``max_concurrent_envs``.
        env_name: its public name; else its class's.
        state_cls: class of its state, where the environment does not declare it itself.
        reset_observation_cls: class of reset's observations, where it is another.
        settings: the operator's settings; as in ``create_app``, options of ``openenv-gym serve`` go before them.

    Raises:
        TypeError: ``env`` is nothing that makes environments.
        SettingsError: two settings contradict each other.
        ConcurrencyConfigurationError: several sessions for an environment that does not declare
            ``SUPPORTS_CONCURRENT_SESSIONS``.

    Example:
        >>> from openenv_gym.types import Action, Observation
        >>> class Idle:
        ...     SUPPORTS_CONCURRENT_SESSIONS = True
        ...     def reset(self):
        ...         return Observation()
        ...     def step(self, action):
        ...         return Observation(reward=0.0)
        >>> server = HTTPEnvServer(Idle, Action, Observation, max_concurrent_envs=8)
        >>> server.register_routes(FastAPI())
        >>> server.get_capacity_status().available_slots
        8
    """

    def __init__(  # noqa: PLR0917 - the signature is OpenEnv's
        self,
        env: Callable[..., Any] | object,
        action_cls: type[Any],
        observation_cls: type[Any],
        max_concurrent_envs: int | None = None,
        concurrency_config: ConcurrencyConfig | None = None,
        env_name: str | None = None,
        state_cls: type[Any] = State,
        *,
        reset_observation_cls: type[Any] | None = None,
        settings: ServerSettings | None = None,
    ) -> None:
        self.action_cls = action_cls
        self.observation_cls = observation_cls
        self.reset_observation_cls = reset_observation_cls or observation_cls
        self.state_cls = state_cls
        factory = EnvironmentFactory(env)
        self.env_name = env_name or factory.name
        self._operator = current()
        self.settings = self._operator.merged(settings, max_concurrent_envs, concurrency_config)
        self._models = Models(action_cls, observation_cls, state_cls, reset_observation_cls)
        self._codec = ModelCodec(action_cls, observation_cls, state_cls, reset_observation_cls)
        self._sessions = Sessions(factory, self._models, self.settings)
        _check_concurrency(self._sessions)
        if self.settings.max_concurrent_envs == "unlimited":
            # Asked now: later, it would be a session that waits for the answer.
            _ = self._sessions.supports_concurrency

    def register_routes(self, app: FastAPI, mode: str | None = None) -> None:
        """Add the routes to an application; its end ends the sessions.

        Where the settings have a token, everything in the application asks for it, routes of your own included.

        Args:
            app: the application.
            mode: ``"simulation"`` or ``"production"``; else the settings'.

        Raises:
            SettingsError: there is no such mode.
        """
        wanted = self.settings if mode is None else dataclasses.replace(self.settings, mode=mode)
        settings = self._operator.over(wanted)
        sessions = self._sessions
        catalogue, methods = Catalogue(sessions, settings.mode), RpcMethods(sessions, settings)
        served = Served(self.env_name, sessions, catalogue, settings, methods)
        for module in (home, health, description, *(() if settings.production else (episode,)), tasks):
            app.include_router(module.router(served))
        if settings.token is not None:
            app.add_middleware(Gate, check=functools.partial(token_refusal, token=settings.token))
        guarded = Gate(WebSocketApp(served), check=functools.partial(page_refusal, settings=settings))
        standard = mcp.mcp(served)
        app.router.routes += [WebSocketRoute("/ws", guarded), *standard.routes]
        _end_with(app, standard.aclose, sessions.shutdown)
        hold(app, settings, self._operator)

    @property
    def active_sessions(self) -> int:
        """Sessions in use."""
        return len(self._sessions)

    @property
    def max_concurrent_envs(self) -> int:
        """Sessions at most; ``sys.maxsize`` where there is no limit."""
        return self._sessions.limit

    @property
    def is_concurrency_safe(self) -> bool:
        """Whether the environments are known not to disturb one another."""
        return bool(self._sessions.supports_concurrency)

    @property
    def concurrency_config(self) -> ConcurrencyConfig:
        """Capacity and idle timeout as they are in force."""
        return ConcurrencyConfig(
            max_concurrent_envs=self.max_concurrent_envs, session_timeout=self.settings.session_timeout_s
        )

    def get_capacity_status(self) -> ServerCapacityStatus:
        """How full the server is."""
        limit = self.max_concurrent_envs
        return ServerCapacityStatus.from_counts(active=min(self.active_sessions, limit), max_sessions=limit)

    def get_session_info(self, session_id: str) -> SessionInfo | None:
        """What is known of a session; None if there is none of that id."""
        session = self._sessions.get(session_id)
        return None if session is None else session.info()

    def _deserialize_action(self, data: JSONObject) -> object:
        """The action in plain JSON; kept under this name for environments written against OpenEnv."""
        return self._codec.decode_action(data)

    def _serialize_observation(self, observation: object) -> JSONObject:
        """The observation in OpenEnv's envelope; kept under this name for environments written against OpenEnv."""
        return cast("JSONObject", msgspec.to_builtins(self._codec.encode_observation(observation)))


def _check_concurrency(sessions: Sessions) -> None:
    """Refuse several sessions for an environment that is not known to bear them."""
    factory, wanted = sessions.factory, sessions.settings.max_concurrent_envs
    if wanted in {None, "unlimited", 1}:
        return
    if factory.instance is not None:
        raise SettingsError(
            f"expected the class of {factory.name} for max_concurrent_envs={wanted}, got one instance, "
            f"which is one session's at a time; leave max_concurrent_envs and {CAPACITY_VARIABLE} out for it",
            setting="max_concurrent_envs",
        )
    # None: none could be made. The server still starts: every session will be told, and /ready says so.
    if sessions.supports_concurrency is False:
        raise ConcurrencyConfigurationError(
            f"expected an environment whose instances may live side by side for max_concurrent_envs={wanted}, but "
            f"{factory.name} does not declare it; if they share nothing (files, ports, globals), set "
            "SUPPORTS_CONCURRENT_SESSIONS = True on its class, else leave max_concurrent_envs and "
            f"{CAPACITY_VARIABLE} out",
            setting="max_concurrent_envs",
            environment_name=factory.name,
            max_concurrent_envs=wanted,
        )


def _end_with(app: FastAPI, *ends: Callable[[], Awaitable[None]]) -> None:
    """Let the application's end be these ends, one after another, whatever lifespan it has of its own."""
    own = cast("Callable[[FastAPI], Any]", app.router.lifespan_context)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[Any]:
        async with own(app) as state:
            try:
                yield state
            finally:
                for end in ends:
                    await end()

    app.router.lifespan_context = lifespan
