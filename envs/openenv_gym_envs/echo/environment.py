"""The echo environment: it says what it is told, when its tools are called.

For trying a connection, and as the shortest example of an environment with tools.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import uuid4

from openenv_gym.json_text import JSONObject
from openenv_gym.tools import CallToolAction, CallToolObservation
from openenv_gym.types import Action, State
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.tool_codec import ToolCodec
from openenv_gym_server.tool_functions import tool

__all__ = ["EchoAction", "EchoEnvironment", "EchoObservation", "EchoedObservation"]

GREETING = "Echo environment ready!"
REWARD_PER_CHARACTER = 0.1


class EchoAction(Action):
    """What to say, as clients said it before the environment had tools; still understood.

    Example:
        >>> EchoAction(message="Hello, World!").message
        'Hello, World!'
    """

    message: str


@dataclass
class EchoObservation:
    """The greeting: ``echoed_message`` is the observation's only field, reward and done travel beside it.

    Example:
        >>> EchoObservation("Echo environment ready!", reward=0.0).done
        False
    """

    echoed_message: str
    reward: float | None = None
    done: bool = False


@dataclass
class EchoedObservation(EchoObservation):
    """The answer to an ``EchoAction``.

    Example:
        >>> EchoedObservation("Hello, World!", message_length=13).echoed_message
        'Hello, World!'
    """

    message_length: int = 0


class EchoCodec(ToolCodec):
    """Calls of tools, and actions of a bare ``message``.

    Example:
        >>> EchoCodec(CallToolAction, CallToolObservation).decode_action({"message": "Hello"}).message
        'Hello'
    """

    _older = ToolCodec(EchoAction, EchoedObservation)

    def decode_action(self, data: JSONObject) -> object:
        """The action.

        Raises:
            InvalidActionError: it is neither.
        """
        if "message" in data and "type" not in data:
            return self._older.decode_action(data)
        return super().decode_action(data)


_codec = EchoCodec(CallToolAction, CallToolObservation, State, EchoObservation)


class EchoEnvironment(MCPEnvironment):
    """Repeats each message; the reward is a tenth of its length.

    An episode never ends. The observation of reset is a greeting.

    Example:
        >>> environment = EchoEnvironment()
        >>> environment.reset().echoed_message
        'Echo environment ready!'
        >>> said = CallToolAction(tool_name="echo_message", arguments={"message": "Hello, World!"})
        >>> environment.step(said).result["data"]
        'Hello, World!'
    """

    SUPPORTS_CONCURRENT_SESSIONS: ClassVar[bool] = True
    INLINE: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self._state = State()

    @tool
    def echo_message(self, message: str) -> str:
        """Echo a message.

        Args:
            message: What to echo
        """
        return message

    @tool
    def echo_with_length(self, message: str) -> dict[str, str | int]:
        """Echo a message together with its length.

        Args:
            message: What to echo
        """
        return {"message": message, "length": len(message)}

    def reset(self, seed: int | None = None, episode_id: str | None = None) -> EchoObservation:  # type: ignore[override]
        """Begin an episode; there is nothing that a seed could change."""
        del seed
        self._state = State(episode_id=uuid4().hex if episode_id is None else episode_id)
        return EchoObservation(GREETING, reward=0.0)

    def after_tool(self, action: CallToolAction, observation: CallToolObservation) -> CallToolObservation:
        """Count the call, and reward what was echoed; a call that failed has echoed nothing."""
        self._state.step_count += 1
        said = "" if observation.error else str(action.arguments.get("message", ""))
        observation.reward = REWARD_PER_CHARACTER * len(said)
        return observation

    def _step_impl(self, action: Action, timeout_s: float | None = None, **kwargs: Any) -> Any:
        if not isinstance(action, EchoAction):
            return super()._step_impl(action, timeout_s, **kwargs)
        self._state.step_count += 1
        length = len(action.message)
        return EchoedObservation(action.message, reward=REWARD_PER_CHARACTER * length, message_length=length)

    @property
    def state(self) -> State:
        """The episode's name and the number of messages in it."""
        return self._state

    @property
    def codec(self) -> EchoCodec:
        """The tools' codec, which knows the older action too."""
        return _codec
