"""The echo environment: it says what it is told.

For trying a connection, and as the shortest example of an environment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import uuid4

from openenv_gym.types import Action, State
from openenv_gym_server.environment import Environment

__all__ = ["EchoAction", "EchoEnvironment", "EchoObservation"]

GREETING = "Echo environment ready!"
REWARD_PER_CHARACTER = 0.1


class EchoAction(Action):
    """What to say.

    Example:
        >>> EchoAction(message="Hello, World!").message
        'Hello, World!'
    """

    message: str


@dataclass
class EchoObservation:
    """What came back: ``echoed_message`` is the observation's only field, reward and done travel beside it.

    Example:
        >>> EchoObservation("Hello, World!", reward=1.3).done
        False
    """

    echoed_message: str
    reward: float | None = None
    done: bool = False


class EchoEnvironment(Environment[EchoAction, EchoObservation, State]):
    """Repeats each message; the reward is a tenth of its length, as in the reference's echo environment.

    An episode never ends. The observation of reset is a greeting.

    Example:
        >>> environment = EchoEnvironment()
        >>> environment.reset().echoed_message
        'Echo environment ready!'
        >>> environment.step(EchoAction(message="Hello, World!")).echoed_message
        'Hello, World!'
    """

    SUPPORTS_CONCURRENT_SESSIONS: ClassVar[bool] = True
    INLINE: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self._state = State()

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> EchoObservation:
        """Begin an episode; there is nothing that a seed or another keyword could change."""
        del seed, kwargs
        self._state = State(episode_id=uuid4().hex if episode_id is None else episode_id)
        return EchoObservation(GREETING, reward=0.0)

    def step(self, action: EchoAction, timeout_s: float | None = None, **kwargs: Any) -> EchoObservation:
        """Repeat the message."""
        del timeout_s, kwargs
        self._state.step_count += 1
        return EchoObservation(action.message, reward=REWARD_PER_CHARACTER * len(action.message))

    @property
    def state(self) -> State:
        """The episode's name and the number of messages in it."""
        return self._state
