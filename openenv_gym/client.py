"""``EnvClient``: an OpenEnv server as an object whose methods are awaited.

A subclass says how its actions are written and its observations read; all else is here: reset, step, state, sessions,
the server's life. ``.sync()`` gives the same client without ``await`` (``sync_client.py``). What lies between client
and server is ``link.py``. Not a Gymnasium environment: that is ``env.py``.

Source of the methods, the hooks and the constructor's arguments: ``openenv`` 0.10.0.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import types
import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, NoReturn, Self, TypeVar

from openenv_gym import messages
from openenv_gym.client_settings import connection_settings
from openenv_gym.errors import SettingsError, ValueMappingError
from openenv_gym.info import encode_exact
from openenv_gym.launch import Launch, launch_container, launch_environment
from openenv_gym.link import Link
from openenv_gym.loopless import blocking, loopless
from openenv_gym.modes import Mode, read_mode, require_simulation
from openenv_gym.providers.embedded import EmbeddedProvider
from openenv_gym.providers.foreign import AnyProvider, ContainerProvider, stopping
from openenv_gym.sync_client import SyncEnvClient
from openenv_gym.transition import NOTES_KEY, metadata_of, own_reward, read_notes, warn_caller
from openenv_gym.transports.base import ConnectionSettings, websocket_url
from openenv_gym.types import StepResult

__all__ = ["EnvClient"]

ActT = TypeVar("ActT")
ObsT = TypeVar("ObsT")
StateT = TypeVar("StateT")


class EnvClient(ABC, Generic[ActT, ObsT, StateT]):
    """A client of one OpenEnv server, with one session there.

    Its calls may come from several tasks, threads and event loops, one loop after another included: they are served
    one after another. A call that times out, is cancelled, or loses its connection ends the session; every further one
    raises ``SessionLostError`` until ``reset()``, which opens a new session.

    Args:
        base_url: the server's address, e.g. ``"https://host/prefix"``. None: ``provider`` gives it, or an embedded
            server of the class's ``target``.
        connect_timeout_s: seconds for opening a connection.
        message_timeout_s: seconds for any answer; None or 0: no limit.
        max_message_size_mb: limit of one message in MiB, each way.
        websocket_ping_interval_s: seconds of silence after which TCP asks for the peer. (Pings of the server are always
            answered; this side sends none.) None, 0 or "none": it does not ask.
        websocket_ping_timeout_s: seconds without an answer to that after which the session is lost.
        provider: what starts the server where there is no ``base_url``: ours, or any object with OpenEnv's
            ``start_container`` and ``stop_container``, or ``start`` and ``stop``. ``close()`` stops it in either case.
        mode: "simulation" or "production" in any letter case; None: OPENENV_CLIENT_MODE, else simulation.
        headers: sent with every request, a token for example.
        settings: everything else about the connection; arguments that are not at their default go before it.
        session_id: attach to this session, which the server keeps already, instead of opening one.

    Raises:
        SettingsError: the arguments name no server, or one cannot be.

    Example:
        >>> class EchoClient(EnvClient[dict[str, str], str, dict[str, object]]):
        ...     def _step_payload(self, action):
        ...         return action
        ...     def _parse_result(self, payload):
        ...         return StepResult(payload["observation"]["text"], payload["reward"], payload["done"])
        ...     def _parse_state(self, payload):
        ...         return payload
        >>> async with EchoClient("http://127.0.0.1:8000") as client:                   # doctest: +SKIP
        ...     await client.reset(seed=7)
        ...     result = await client.step({"message": "hello"})
    """

    target: ClassVar[str | None] = None
    """What an embedded server serves where neither ``base_url`` nor ``provider`` is given."""

    def __init__(  # noqa: PLR0917 - openenv 0.10.0: clients written for it are made so
        self,
        base_url: str | None = None,
        connect_timeout_s: float = 10.0,
        message_timeout_s: float | None = 60.0,
        max_message_size_mb: float = 100.0,
        websocket_ping_interval_s: float | str | None = 20.0,
        websocket_ping_timeout_s: float | str | None = 20.0,
        provider: AnyProvider | None = None,
        mode: str | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        settings: ConnectionSettings | None = None,
        session_id: str | None = None,
    ) -> None:
        self._mode: Mode = read_mode(mode)
        given = {
            "connect_timeout_s": connect_timeout_s,
            "message_timeout_s": message_timeout_s,
            "max_message_size_mb": max_message_size_mb,
            "websocket_ping_interval_s": websocket_ping_interval_s,
            "websocket_ping_timeout_s": websocket_ping_timeout_s,
        }
        self._settings = connection_settings(given, headers, settings)
        if base_url is None and provider is None and self.target is not None:
            provider = EmbeddedProvider(self.target)
        if base_url is None and provider is None:
            raise SettingsError(
                f"expected a server: give {type(self).__name__} a base_url such as http://host:8000, or a provider",
                setting="base_url",
            )
        if session_id is not None and not isinstance(session_id, str):
            raise SettingsError(f"expected session_id to be a string, got {session_id!r}", setting="session_id")
        if base_url is not None:
            websocket_url(base_url)
            base_url = base_url.rstrip("/")
        if provider is not None:
            stopping(provider)
        self._given: dict[str, Any] = {"base_url": base_url, "provider": provider, "session_id": session_id}
        self._begin()

    def _begin(self) -> None:
        """Everything that is alive, and so neither copied nor pickled."""
        self._link = Link(settings=self._settings, **self._given)
        self._children: list[Self] = []
        self._sync: weakref.ref[SyncEnvClient[ActT, ObsT, StateT]] | None = None

    @property
    def base_url(self) -> str | None:
        """The server's address; None as long as a provider has not started it."""
        return self._link.base_url

    @property
    def mode(self) -> Mode:
        """What the client is for: "simulation" has reset, step and state, "production" tools alone."""
        return self._mode

    # ------------------------------------------------------------------------------------------------- the hooks

    @abstractmethod
    def _step_payload(self, action: ActT) -> dict[str, Any]:
        """The action's fields, as JSON."""

    @abstractmethod
    def _parse_result(self, payload: dict[str, Any]) -> StepResult[ObsT]:
        """What ``reset`` and ``step`` return.

        Args:
            payload: ``observation`` (the fields the server sent), ``reward``, ``done``, and ``metadata`` where there
                is any.
        """

    @abstractmethod
    def _parse_state(self, payload: dict[str, Any]) -> StateT:
        """What ``state`` returns, from the fields the server sent."""

    # ------------------------------------------------------------------------------------------------- the calls

    @loopless
    async def connect(self) -> Self:
        """Start the provider, where there is one, and open a session, unless there is one that goes on.

        Raises:
            UnreachableError: no OpenEnv server answered.
            ProviderError: the server could not be started; whatever was begun is undone.
            ServerError: the server could not make the environment.
        """
        await self._link.open()
        return self

    @loopless
    async def reset(self, **kwargs: Any) -> StepResult[ObsT]:
        """Begin an episode; connects first where that is needed, and opens a new session where the last one was lost.

        Args:
            **kwargs: what the environment's ``reset`` takes: ``seed``, ``episode_id`` …

        Raises:
            RequestTimeoutError: no answer in time; the session is lost.
            InvalidActionError: the server refused the keywords.
            EnvironmentExecutionError: the environment raised.
            CapacityError: the server is full.
            ModeError: the client is for production.
        """
        require_simulation(self._mode, "reset")
        reply = await self._link.begin_episode(lambda extended: _reset_data(kwargs, extended))
        return self._read(reply)

    @loopless
    async def step(self, action: ActT, **kwargs: Any) -> StepResult[ObsT]:
        """Take one action.

        Args:
            action: the action.
            **kwargs: ``timeout_s``: seconds to wait for this answer, None or 0 without a limit. Others have no place on
                the wire: they are left out, with a warning.

        Raises:
            ValueMappingError: the action has no JSON form; nothing was sent.
            InvalidActionError: the server refused the action; the environment is as it was.
            EnvironmentExecutionError: the environment raised.
            RequestTimeoutError: no answer in time; the session is lost.
            SessionLostError: the session is lost; call ``reset()``.
            SessionStateError: no episode has begun; call ``reset()``.
            ModeError: the client is for production.
        """
        require_simulation(self._mode, "step")
        timeout_s = self._settings.step_timeout_s
        if kwargs:
            timeout_s = kwargs.pop("timeout_s", timeout_s)
            _warn_about(kwargs)
        payload = self._step_payload(action)
        if not isinstance(payload, dict):
            raise ValueMappingError(
                f"expected _step_payload to return the action's fields as a dictionary, got {type(payload).__name__}",
                path="$",
            )
        return self._read(await self._link.ask(messages.Step, timeout_s, data=payload))

    @loopless
    async def state(self) -> StateT:
        """The state of the session's environment; connects first where nobody has yet.

        Raises:
            RequestTimeoutError: no answer in time; the session is lost.
            SessionLostError: the session is lost; call ``reset()``.
            ModeError: the client is for production.
        """
        require_simulation(self._mode, "state")
        reply = await self._link.ask(messages.State, self._settings.step_timeout_s, connect=True)
        assert isinstance(reply, messages.StateReply)
        return self._parse_state(reply.data)

    def forget_episode(self) -> None:
        """Keep the session and not its episode: steps need a ``reset()`` first, as in a new session."""
        self._link.forget_episode()

    @loopless
    async def new_session(self) -> Self:
        """Another client of the same kind on the same server, connected, with a session of its own.

        It is closed with this one. A provider is started first where that is needed, and stays this client's.

        Raises:
            CapacityError: the server is full.
        """
        await self._link.find()
        child = copy.copy(self)
        child._settings = self._link.headers  # noqa: SLF001  (it is one of our own)
        child._given = {"base_url": self.base_url, "provider": None, "session_id": None}  # noqa: SLF001
        child._begin()  # noqa: SLF001
        await child.connect()
        self._children.append(child)
        return child

    @loopless
    async def disconnect(self) -> None:
        """End the session; what a provider started stays. ``connect()`` or ``reset()`` opens another."""
        await self._link.disconnect()

    @loopless
    async def close(self) -> None:
        """End the session, those of ``new_session()`` too, and stop what a provider started. May be called again.

        A call that is under way in another task or thread raises ``SessionLostError``. Where stopping the provider
        fails, its error comes out, and the next ``close()`` tries again.
        """
        try:
            await self._close_children()
        finally:
            await self._link.close()

    async def _close_children(self) -> None:
        children, self._children = self._children, []
        if not blocking():
            await asyncio.gather(*(child.close() for child in children), return_exceptions=True)
            return
        for child in children:
            with contextlib.suppress(Exception):  # the others are to be closed too, and so is this client
                await child.close()

    async def __aenter__(self) -> Self:
        return await self.connect()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        await self.close()

    def __enter__(self) -> NoReturn:
        raise TypeError(
            f"expected `async with`, got `with`: {type(self).__name__} is awaited; use `with client.sync() as env:` "
            "for one that is not"
        )

    def __exit__(self, *_: object) -> None:
        """Nothing: ``with`` ends at its beginning."""

    def sync(self) -> SyncEnvClient[ActT, ObsT, StateT]:
        """This client for code that does not await: the same session, the same one each time."""
        found = None if self._sync is None else self._sync()
        if found is None:
            found = SyncEnvClient(self)
            self._sync = weakref.ref(found)
        return found

    # -------------------------------------------------------------------------------------- servers to be started

    @classmethod
    def from_docker_image(
        cls, image: str, provider: ContainerProvider | None = None, **kwargs: Any
    ) -> Launch[Self, ActT, ObsT, StateT]:
        """A client of a container that is started for it: await what this returns, or call its ``sync()``.

        Args:
            image: the container's image.
            provider: what starts it.
            **kwargs: for the provider's ``start_container``.

        Raises:
            SettingsError: on awaiting: there is no provider.
        """
        return launch_container(cls, image, provider, kwargs)

    @classmethod
    def from_env(
        cls, repo_id: str, *, use_docker: bool = True, provider: AnyProvider | None = None, **provider_kwargs: Any
    ) -> Launch[Self, ActT, ObsT, StateT]:
        """A client of a Hugging Face Space that is run for it here: await what this returns, or call its ``sync()``.

        Args:
            repo_id: the Space, as "owner/name".
            use_docker: run its image (``tag`` among the keywords chooses which); otherwise its project.
            provider: what runs it.
            **provider_kwargs: for the provider.

        Raises:
            SettingsError: on awaiting: there is no provider.
        """
        return launch_environment(cls, repo_id, provider, provider_kwargs, use_docker=use_docker)

    # ------------------------------------------------------------------------------------------ copies and pickles

    def __getstate__(self) -> dict[str, Any]:
        """What was asked for, and nothing that is alive: a copy opens a session of its own."""
        return {name: value for name, value in vars(self).items() if name not in {"_link", "_children", "_sync"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    # -------------------------------------------------------------------------------------------------- the answers

    def _read(self, reply: messages.Reply) -> StepResult[ObsT]:
        assert isinstance(reply, messages.ObservationReply)
        outcome = reply.data
        reward = own_reward(outcome.reward, metadata_of(outcome))
        payload = {"observation": outcome.observation, "reward": reward, "done": outcome.done}
        if outcome.metadata:
            metadata = outcome.metadata
            notes = read_notes(outcome)
            if notes:
                metadata = {key: value for key, value in metadata.items() if key != NOTES_KEY}
                warn_caller(*(f"{self.base_url}: {note}" for note in notes))
            if metadata:
                payload["metadata"] = metadata
        return self._parse_result(payload)


def _reset_data(keywords: Mapping[str, Any], extended: bool) -> dict[str, Any]:
    """Reset's keywords on the wire: in their exact form where the server knows it, else as plain JSON."""
    return {name: encode_exact(value) for name, value in keywords.items()} if extended else dict(keywords)


def _warn_about(keywords: Mapping[str, Any]) -> None:
    if keywords:
        warn_caller(f"step() cannot send its keywords {sorted(keywords)}: an action's fields are all that a step has")
