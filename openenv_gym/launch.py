"""Clients of servers that are yet to be started: nothing happens before somebody awaits them, or asks for ``sync()``.

Source of the names and arguments: ``openenv`` 0.10.0.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine, Generator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from openenv_gym import providers
from openenv_gym.errors import SessionStateError, SettingsError
from openenv_gym.loopless import drive, off_the_loop
from openenv_gym.providers.foreign import AnyProvider, ContainerProvider, started_container, started_runtime, stopping
from openenv_gym.sync_client import SyncEnvClient

if TYPE_CHECKING:
    from openenv_gym.client import EnvClient

__all__ = ["Launch", "launch_container", "launch_environment"]

ClientT = TypeVar("ClientT", bound="EnvClient[Any, Any, Any]")
ActT = TypeVar("ActT")
ObsT = TypeVar("ObsT")
StateT = TypeVar("StateT")

Start = Callable[[Any], str]
"""Starts a provider's server and returns its address when that is ready."""


class Launch(Coroutine[Any, Any, ClientT], Generic[ClientT, ActT, ObsT, StateT]):
    """A client to come, for one use: ``await`` it for the client, or call ``sync()`` for one that is not awaited.

    It is a coroutine, so ``asyncio.run()`` and ``asyncio.create_task()`` take it too.

    Args:
        kind: the class of the client.
        choose: gives the provider.
        start: starts the server with it.

    Example:
        >>> client = await GenericEnvClient.from_docker_image("echo-env:latest", provider)  # doctest: +SKIP
        >>> client = GenericEnvClient.from_docker_image("echo-env:latest", provider).sync() # doctest: +SKIP
    """

    def __init__(self, kind: type[ClientT], choose: Callable[[], AnyProvider], start: Start) -> None:
        self._kind = kind
        self._choose = choose
        self._start = start
        self._coroutine: Coroutine[Any, Any, ClientT] | None = None

    def sync(self) -> SyncEnvClient[ActT, ObsT, StateT]:
        """Start the server on this thread, connect, and give the client for code that does not await.

        Raises:
            SessionStateError: it was used already.
        """
        return drive(self._begun()).sync()

    def __await__(self) -> Generator[Any, Any, ClientT]:
        return self._begun().__await__()

    def send(self, value: Any, /) -> Any:
        """As any coroutine."""
        return self._current().send(value)

    def throw(self, *error: Any) -> Any:
        """As any coroutine."""
        return self._current().throw(*error)

    def close(self) -> None:
        """Do not start anything, or end what is under way."""
        if self._coroutine is not None:
            self._coroutine.close()

    def _current(self) -> Coroutine[Any, Any, ClientT]:
        return self._coroutine or self._begun()

    def _begun(self) -> Coroutine[Any, Any, ClientT]:
        if self._coroutine is not None:
            raise SessionStateError(
                "expected a launch that was not used, but this one was awaited or made synchronous already: call "
                "from_docker_image() or from_env() again for another server",
                expected="unused",
                state="used",
            )
        self._coroutine = self._launched()
        return self._coroutine

    async def _launched(self) -> ClientT:
        provider = self._choose()
        stop = stopping(provider)
        client = await off_the_loop(lambda: self._made(provider, stop), discard=lambda _: stop())
        try:
            await client.connect()
        except BaseException:
            with contextlib.suppress(Exception):  # why it did not connect says more
                await client.close()
            raise
        return client

    def _made(self, provider: AnyProvider, stop: Callable[[], None]) -> ClientT:
        try:
            return self._kind(base_url=self._start(provider), provider=provider)
        except BaseException:
            with contextlib.suppress(Exception):  # the first failure says what is wrong
                stop()
            raise


def launch_container(
    kind: type[ClientT], image: str, provider: ContainerProvider | None, keywords: Mapping[str, Any]
) -> Launch[ClientT, ActT, ObsT, StateT]:
    """A client of a container of the image."""
    return Launch(
        kind,
        lambda: providers.default_container_provider() if provider is None else provider,
        lambda container: started_container(container, image, **keywords),
    )


def launch_environment(
    kind: type[ClientT],
    repo_id: str,
    provider: AnyProvider | None,
    keywords: Mapping[str, Any],
    *,
    use_docker: bool,
) -> Launch[ClientT, ActT, ObsT, StateT]:
    """A client of a Hugging Face Space, run here."""
    left = dict(keywords)
    if use_docker:
        owner, slash, name = repo_id.partition("/")
        if not (owner and slash and name) or "/" in name:
            raise SettingsError(f"expected repo_id to be 'owner/name', got {repo_id!r}", setting="repo_id")
        image = f"registry.hf.space/{_subdomain(owner, name)}:{left.pop('tag', 'latest')}"
        return launch_container(kind, image, provider, left)  # type: ignore[arg-type]  # it is asked for containers
    begin = {name: left.pop(name) for name in ("port", "env_vars", "workers") if name in left}
    if provider is not None and left:
        raise SettingsError(
            f"expected no further keywords beside a provider, got {sorted(left)}: give them to the provider itself",
            setting=min(left),
        )

    def choose() -> AnyProvider:
        path = left.pop("project_path", None) or f"git+https://huggingface.co/spaces/{repo_id}"
        return providers.default_runtime_provider(path, **left) if provider is None else provider

    return Launch(kind, choose, lambda runtime: started_runtime(runtime, **begin))


def _subdomain(owner: str, name: str) -> str:
    """The host name of a Space, as Hugging Face makes it."""
    return "".join(letter if letter.isalnum() else "-" for letter in f"{owner}-{name}".lower())
