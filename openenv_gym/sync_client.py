"""``SyncEnvClient``: a client without ``await``, on the very session of the asynchronous one.

The calling thread itself writes and reads the socket: no event loop, no change of threads. So it works everywhere, in a
notebook's running loop too. Where a subclass has put a coroutine of its own in a method's place, that one runs in an
event loop on a private thread (``loop_thread.py``). What a call means is the client's alone (``client.py``).
"""

from __future__ import annotations

import copy
import functools
import inspect
import types
import weakref
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from openenv_gym.loop_thread import LoopThread
from openenv_gym.loopless import drive, loopless_names
from openenv_gym.types import StepResult

if TYPE_CHECKING:
    from openenv_gym.client import EnvClient

__all__ = ["SyncEnvClient"]

ActT = TypeVar("ActT")
ObsT = TypeVar("ObsT")
StateT = TypeVar("StateT")
T = TypeVar("T")


class SyncEnvClient(Generic[ActT, ObsT, StateT]):
    """A client whose calls return values. ``EnvClient.sync()`` makes it.

    Every method and attribute of the asynchronous client is here too, coroutines as plain calls. Calls of several
    threads are served one after another.

    Args:
        async_client: the client it is a face of.

    Example:
        >>> with GenericEnvClient("http://127.0.0.1:8000").sync() as client:    # doctest: +SKIP
        ...     client.reset(seed=7)
        ...     result = client.step({"message": "hello"})
    """

    def __init__(self, async_client: EnvClient[ActT, ObsT, StateT]) -> None:
        self._client = async_client
        self._loopless = loopless_names(type(async_client))
        self._thread = LoopThread()
        # At the interpreter's exit too, where a thread that still runs its loop would be cut off in the middle.
        weakref.finalize(self, self._thread.stop)

    @property
    def async_client(self) -> EnvClient[ActT, ObsT, StateT]:
        """The client whose calls are awaited."""
        return self._client

    @property
    def base_url(self) -> str | None:
        """The server's address; None as long as a provider has not started it."""
        return self._client.base_url

    def connect(self) -> Self:
        """Start the provider, where there is one, and open a session; see ``EnvClient.connect``."""
        self._run("connect", self._client.connect)
        return self

    def reset(self, **kwargs: Any) -> StepResult[ObsT]:
        """Begin an episode; see ``EnvClient.reset``."""
        return self._run("reset", lambda: self._client.reset(**kwargs))

    def step(self, action: ActT, **kwargs: Any) -> StepResult[ObsT]:
        """Take one action; see ``EnvClient.step``."""
        return self._run("step", lambda: self._client.step(action, **kwargs))

    def state(self) -> StateT:
        """The state of the session's environment; see ``EnvClient.state``."""
        return self._run("state", self._client.state)

    def new_session(self) -> SyncEnvClient[ActT, ObsT, StateT]:
        """Another client on the same server; see ``EnvClient.new_session``."""
        return self._run("new_session", self._client.new_session).sync()

    def disconnect(self) -> None:
        """End the session; see ``EnvClient.disconnect``."""
        self._run("disconnect", self._client.disconnect)

    def close(self) -> None:
        """End the session and stop what a provider started; see ``EnvClient.close``. May be called again."""
        try:
            self._run("close", self._client.close)
        finally:
            self._thread.stop()

    def __enter__(self) -> Self:
        return self.connect()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        """What the asynchronous client has beyond the methods above; its coroutines become plain calls."""
        if name.startswith("__") or name == "_client":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        found = getattr(self._client, name)
        awaited = inspect.iscoroutinefunction(found)
        if not (awaited or inspect.ismethod(found)):
            return found

        @functools.wraps(found)
        def call(*args: Any, **kwargs: Any) -> Any:
            if awaited:
                return self._run(name, lambda: found(*args, **kwargs))
            result = found(*args, **kwargs)
            # Asked of the result, for a decorator may have made a plain function of a coroutine's.
            return self._run(name, lambda: result) if inspect.iscoroutine(result) else result

        return call

    def __setattr__(self, name: str, value: object) -> None:
        """What can be set on the asynchronous client is set there."""
        client = vars(self).get("_client")
        of_class = isinstance(inspect.getattr_static(type(client), name, None), property)
        if client is not None and not name.startswith("_") and (of_class or name in vars(client)):
            setattr(client, name, value)
        else:
            object.__setattr__(self, name, value)

    def _run(self, name: str, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return drive(make()) if name in self._loopless else self._thread.run(lambda: _coroutine(name, make()))

    def __copy__(self) -> SyncEnvClient[ActT, ObsT, StateT]:
        return copy.copy(self._client).sync()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[EnvClient[ActT, ObsT, StateT]]]:
        """As the asynchronous client: what was asked for, and nothing that is alive."""
        return _face, (self._client,)


def _face(client: EnvClient[ActT, ObsT, StateT]) -> SyncEnvClient[ActT, ObsT, StateT]:
    return client.sync()


def _coroutine(name: str, made: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
    if not inspect.isawaitable(made):
        raise TypeError(
            f"expected {name}() to be a coroutine, as EnvClient's is, but it returned {type(made).__name__}: write "
            f"`async def {name}`"
        )
    return made
