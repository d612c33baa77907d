"""The base class of environments: what an author writes.

Not for serving one (``hosting.py`` makes the calls, ``app.py`` the application). A class with ``reset`` and ``step``
that does not inherit from ``Environment`` can be served too; the base only gives the defaults and the documentation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from openenv_gym.errors import EnvironmentExecutionError
from openenv_gym.types import EnvironmentMetadata

if TYPE_CHECKING:
    from openenv_gym_server.codec import Codec

__all__ = ["Environment", "default_metadata", "not_an_override"]

ActT = TypeVar("ActT")
ObsT = TypeVar("ObsT")
StateT = TypeVar("StateT")
MethodT = TypeVar("MethodT", bound=Callable[..., Any])


def not_an_override(method: MethodT) -> MethodT:
    """Mark a base class's asynchronous twin (``step_async`` …) as no reason to call it instead of the plain method."""
    method.not_an_override = True  # type: ignore[attr-defined]
    return method


class Environment(ABC, Generic[ActT, ObsT, StateT]):
    """An environment that a server can host; one instance is one session's.

    ``reset`` and ``step`` may be ``async def``; so may ``close``. One instance is made, reset, stepped and closed on
    one and the same thread, never on the network's event loop (see ``INLINE``). ``reset`` may take fewer parameters
    than shown, down to ``reset(self)``: the server passes what the signature has, counts steps and names episodes
    where ``state`` does not.

    Attributes:
        SUPPORTS_CONCURRENT_SESSIONS: instances do not disturb one another, so that a server may hold many.
        REQUIRES_SINGLE_THREAD_EXECUTOR: all instances must live on one thread.
        INLINE: steps are shorter than a thread change (some 100 µs) and may run on the network's event loop, as long
            as they stay below 5 ms; resets and renderings still run on the session's thread, so the environment must
            not be bound to one.
        render_mode: what ``render`` gives; None where it gives nothing.
        transform: a callable that is applied by ``_apply_transform``.
        rubric: a callable of action and observation that is applied by ``_apply_rubric``.

    Example:
        >>> from openenv_gym.types import Action, Observation, State
        >>> class Say(Action):
        ...     message: str
        >>> class Heard(Observation):
        ...     echo: str = ""
        >>> class Echo(Environment[Say, Heard, State]):
        ...     def reset(self):
        ...         return Heard(echo="ready")
        ...     def step(self, action):
        ...         return Heard(echo=action.message, reward=1.0)
        >>> Echo().step(Say(message="hello")).echo
        'hello'
    """

    SUPPORTS_CONCURRENT_SESSIONS: ClassVar[bool] = False
    REQUIRES_SINGLE_THREAD_EXECUTOR: ClassVar[bool] = False
    INLINE: ClassVar[bool] = False

    render_mode: str | None = None
    transform: Callable[[Any], Any] | None = None
    rubric: Callable[[Any, Any], Any] | None = None

    def __init__(
        self,
        transform: Callable[[ObsT], ObsT] | None = None,
        rubric: Callable[[ActT, ObsT], Any] | None = None,
    ) -> None:
        self.transform = transform
        self.rubric = rubric

    @abstractmethod
    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> ObsT:
        """Begin an episode and return its first observation.

        Args:
            seed: makes the episode reproducible; not negative.
            episode_id: the client's name for the episode.
            **kwargs: whatever else the client sent.
        """

    @abstractmethod
    def step(self, action: ActT, timeout_s: float | None = None, **kwargs: Any) -> ObsT:
        """Take one action and return the observation, its ``reward`` and ``done`` included.

        Args:
            action: the decoded action.
            timeout_s: how long the client is willing to wait, where it said so. The server ends a session whose step
                takes longer; an environment that knows the time can give up earlier.
            **kwargs: whatever else the client sent.
        """

    @not_an_override
    async def reset_async(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> ObsT:
        """What the server calls instead of ``reset`` where a subclass overrides it."""
        result = self.reset(seed=seed, episode_id=episode_id, **kwargs)
        return await result if isawaitable(result) else result

    @not_an_override
    async def step_async(self, action: ActT, timeout_s: float | None = None, **kwargs: Any) -> ObsT:
        """What the server calls instead of ``step`` where a subclass overrides it."""
        result = self.step(action, timeout_s=timeout_s, **kwargs)
        return await result if isawaitable(result) else result

    @property
    def state(self) -> StateT | None:
        """Where the episode is; None leaves counting steps and naming episodes to the server."""
        return None

    def get_metadata(self) -> EnvironmentMetadata:
        """What the environment says about itself."""
        return default_metadata(self)

    @property
    def codec(self) -> Codec | None:
        """The codec of an environment that speaks its own shapes; None leaves it to the server's models."""
        return None

    @property
    def remote_target(self) -> object:
        """The object whose methods and attributes a client may use, as far as the operator allows their names."""
        return self

    def render(self) -> object:
        """The current rendering: an array, a string, or a list of them.

        Raises:
            EnvironmentExecutionError: the environment does not render.
        """
        raise EnvironmentExecutionError(f"{type(self).__name__} does not render", code="EXECUTION_ERROR")

    def close(self) -> None:
        """Free what the environment holds; called once, at the end of its session."""
        return

    def _apply_transform(self, observation: ObsT) -> ObsT:
        """The observation after ``transform``, if there is one."""
        return observation if self.transform is None else self.transform(observation)

    def _apply_rubric(self, action: ActT, observation: ObsT) -> Any:
        """The rubric's reward; 0.0 without a rubric. An asynchronous rubric gives an awaitable."""
        return 0.0 if self.rubric is None else self.rubric(action, observation)

    async def _apply_rubric_async(self, action: ActT, observation: ObsT) -> Any:
        """The rubric's reward, awaited where the rubric is asynchronous."""
        result = self._apply_rubric(action, observation)
        return await result if isawaitable(result) else result

    def _reset_rubric(self) -> None:
        """Begin a new episode in the rubric, if it has episodes."""
        reset = getattr(self.rubric, "reset", None)
        if reset is not None:
            reset()

    async def _reset_rubric_async(self) -> None:
        """The same with ``reset_async``, where the rubric has one."""
        reset = getattr(self.rubric, "reset_async", None)
        if reset is None:
            self._reset_rubric()
            return
        result = reset()
        if isawaitable(result):
            await result


def default_metadata(env: object) -> EnvironmentMetadata:
    """What is said of an environment that says nothing about itself."""
    name = type(env).__name__
    return EnvironmentMetadata(name=name, description=f"{name} environment", version="1.0.0")
