"""An environment's methods and attributes that a client names, as far as the operator allows it.

Which names those are says ``remote_names.py``. Not for a Gymnasium environment of a vector, whose wrappers are asked in
turn (``players.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from openenv_gym_server.errors import fault, invalid_message, user_code
from openenv_gym_server.remote_names import check_name, check_settable, missing_attribute
from openenv_gym_server.settings import Names

__all__ = ["RemoteTarget"]


class RemoteTarget(NamedTuple):
    """An environment by the names of what it has: of what its ``remote_target`` has, where there is one.

    Attributes:
        env: the environment.
        settled: gives a value, awaited where it can be.

    Example:
        >>> class Room:
        ...     def look(self, direction):
        ...         return f"a door to the {direction}"
        >>> RemoteTarget(Room(), lambda value: value).call("look", ["north"], {}, allowed={"look"})
        'a door to the north'
    """

    env: Any
    settled: Callable[[Any], Any]

    def call(self, name: str, args: list[Any], keywords: dict[str, Any], allowed: Names) -> object:
        """What the method of that name returns.

        Raises:
            InvalidActionError: the name is not allowed, or is no method.
        """
        method = self.attribute(name, allowed)
        if not callable(method):
            message = f"{name!r} is an attribute, not a method; read it with x-get_attr"
            raise invalid_message(fault("not_callable", ["data", "name"], message, name))
        with user_code:
            return self.settled(method(*args, **keywords))

    def attribute(self, name: str, allowed: Names) -> object:
        """The attribute of that name.

        Raises:
            InvalidActionError: the name is not allowed, or there is none.
        """
        check_name(name, allowed)
        with user_code:
            target = getattr(self.env, "remote_target", self.env)
            found = getattr(target, name, _MISSING)
            names = dir(target) if found is _MISSING else []
        if found is _MISSING:
            owner = getattr(self.env, "env_id", None) or type(self.env).__name__
            raise missing_attribute(owner, name, names, allowed)
        return found

    def set_attribute(self, name: str, value: object, allowed: Names) -> None:
        """Set the attribute of that name, new ones too.

        Raises:
            InvalidActionError: the name is not allowed, or is one that is never set.
        """
        check_settable(name, allowed)
        with user_code:
            setattr(getattr(self.env, "remote_target", self.env), name, value)


_MISSING = object()
