"""What can be asked of a remote environment besides its episodes: its state, its methods, its attributes.

Not for what a server allows of it (its operator decides), nor for many environments at once (``vector_calls.py``).
"""

from __future__ import annotations

import abc
from typing import Any

from openenv_gym import messages
from openenv_gym.exact import exact_call
from openenv_gym.info import decode_exact

__all__ = ["RemoteAccess"]


class RemoteAccess(abc.ABC):
    """The part of ``RemoteEnv`` that reads the server's state, and calls and reads by name.

    Example:
        >>> import gymnasium, openenv_gym
        >>> with gymnasium.make("openenv/gym-v0", env_id="CartPole-v1") as env:
        ...     env.unwrapped.get_attr("gravity")
        9.8
    """

    @abc.abstractmethod
    def _ask(self, kind: type[messages.Message], **fields: Any) -> messages.Reply:
        """One request in the present session, and its answer."""

    def state(self) -> dict[str, Any]:
        """The server's state of this session: ``episode_id``, ``step_count`` and what the environment adds.

        Raises:
            SessionLostError: the session is lost; call ``reset()``.
            ModeError: the environment is played in production.
        """
        reply = self._ask(messages.State)
        assert isinstance(reply, messages.StateReply)
        return reply.data

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the remote environment; the server must allow its name.

        Raises:
            InvalidActionError: the server does not allow the name.
            EnvironmentExecutionError: the method raised.
            ModeError: the environment is played in production.
        """
        reply = self._ask(messages.Call, data=exact_call(name, args, kwargs))
        assert isinstance(reply, messages.CallReply)
        return decode_exact(reply.data.value)

    def get_attr(self, name: str) -> Any:
        """Read an attribute of the remote environment; the server must allow its name.

        Raises:
            InvalidActionError: the server does not allow the name.
            ModeError: the environment is played in production.
        """
        reply = self._ask(messages.GetAttr, data=messages.AttributeSettings(name=name))
        assert isinstance(reply, messages.GetAttrReply)
        return decode_exact(reply.data.value)
