"""Every error this project raises, as one small tree.

Not for mapping foreign exceptions: the transports and the server's ``errors.py`` do that, and only they.

Each class also inherits the builtin a caller would catch. The first positional argument is the message; everything
else is a keyword and becomes an attribute, so ``cls("text")`` works for every class and every instance survives
pickling.

::

    OpenEnvGymError
    ├── SpaceMappingError (ValueError)          a schema or Space that has no counterpart        .path
    ├── ValueMappingError (ValueError)          a value that does not fit its Space               .path
    ├── SettingsError (ValueError)              a setting, or two together, that cannot be         .setting
    ├── ModeError (RuntimeError)                a call the chosen mode does not have               .mode
    ├── MissingExtraError (ImportError)         an optional dependency that is not installed       .extra
    ├── ProviderError (RuntimeError)            a server could not be started or kept              .output
    ├── UnreachableError (ConnectionError)      no OpenEnv server answered at the address          .url .status .body
    ├── ProtocolError (ConnectionError)         the peer said what the wire does not allow         .received
    ├── MessageTooLargeError (ValueError)       a message above a limit                            .size .limit .setting
    ├── RequestTimeoutError (TimeoutError)      no answer in time; the session is lost             .timeout_s
    │   └── VectorTimeoutError (TimeoutError)   not all environments of a vector answered in time
    ├── SessionLostError (ConnectionError)      the session is gone; reset() opens another         .reason
    ├── SessionStateError (RuntimeError)        a call out of order                                .expected .state
    └── ServerError (RuntimeError)              an error frame of the server                       .code .data
        ├── InvalidActionError (ValueError)     the server refused a message; the env is untouched .errors
        ├── EnvironmentExecutionError           the environment itself raised                       .env_index
        │   └── ToolCallError                   a call of a tool gave no result                .error_type .tool_name
        ├── CapacityError (ConnectionError)     the server is full                .active_sessions .max_sessions
        └── EnvironmentFactoryError             the environment could not be made                  .factory_name
"""

from __future__ import annotations

import multiprocessing
from typing import Any

__all__ = [
    "CapacityError",
    "EnvironmentExecutionError",
    "EnvironmentFactoryError",
    "InvalidActionError",
    "MessageTooLargeError",
    "MissingExtraError",
    "ModeError",
    "OpenEnvGymError",
    "OpenEnvGymWarning",
    "ProtocolError",
    "ProviderError",
    "RequestTimeoutError",
    "ServerError",
    "SessionLostError",
    "SessionStateError",
    "SettingsError",
    "SpaceMappingError",
    "ToolCallError",
    "UnreachableError",
    "ValueMappingError",
    "VectorTimeoutError",
]


class OpenEnvGymWarning(UserWarning):
    """Something the server said, or that its answers show, which a user should know; nothing failed."""


class OpenEnvGymError(Exception):
    """The root of the tree.

    Args:
        message: what was expected, what came, and what to do.
        **attributes: the facts behind the message; a name the class does not know is a ``TypeError``.
    """

    attributes: tuple[str, ...] = ()

    def __init__(self, message: str = "", **attributes: Any) -> None:
        super().__init__(message)
        unknown = sorted(attributes.keys() - set(self.attributes))
        if unknown:
            raise TypeError(f"{type(self).__name__} has no attribute {unknown[0]!r}; it has {list(self.attributes)}")
        for name in self.attributes:
            setattr(self, name, attributes.get(name))

    @property
    def message(self) -> str:
        """The text alone."""
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from the message, then restore the attributes."""
        return type(self), self.args, dict(self.__dict__)


class SpaceMappingError(OpenEnvGymError, ValueError):
    """A schema has no Space, or a Space no JSON form; ``path`` is the JSON path of the fault."""

    attributes = ("path",)
    path: str | None


class ValueMappingError(OpenEnvGymError, ValueError):
    """A value does not fit its Space; ``path`` is the JSON path of the fault."""

    attributes = ("path",)
    path: str | None


class SettingsError(OpenEnvGymError, ValueError):
    """A setting has a value it cannot have, or contradicts another; ``setting`` names it."""

    attributes = ("setting",)
    setting: str | None


class ModeError(OpenEnvGymError, RuntimeError):
    """The call does not exist in the session's mode; ``mode`` is that mode."""

    attributes = ("mode",)
    mode: str | None


class MissingExtraError(OpenEnvGymError, ImportError):
    """An optional dependency is not installed; ``extra`` is the extra that brings it."""

    attributes = ("extra",)
    extra: str | None


class ProviderError(OpenEnvGymError, RuntimeError):
    """A provider could not start or keep its server; ``output`` is what the server itself printed."""

    attributes = ("output",)
    output: str | None


class UnreachableError(OpenEnvGymError, ConnectionError):
    """No OpenEnv server answered at ``url``; ``status`` is the HTTP status, ``body`` its JSON, where there was one."""

    attributes = ("body", "status", "url")
    body: Any
    status: int | None
    url: str | None


class ProtocolError(OpenEnvGymError, ConnectionError):
    """The peer sent what the wire does not allow; ``received`` is the start of it."""

    attributes = ("received",)
    received: str | None


class MessageTooLargeError(OpenEnvGymError, ValueError):
    """A message is above a limit: ``size`` and ``limit`` in bytes, ``setting`` is the setting that raises it."""

    attributes = ("limit", "setting", "size")
    limit: int | None
    setting: str | None
    size: int | None


class RequestTimeoutError(OpenEnvGymError, TimeoutError):
    """No answer came within ``timeout_s`` seconds; the session is lost until ``reset()``."""

    attributes = ("timeout_s",)
    timeout_s: float | None


class VectorTimeoutError(RequestTimeoutError, multiprocessing.TimeoutError):
    """Not all environments answered in time; also the error that Gymnasium's own vector environments raise then."""


class SessionLostError(OpenEnvGymError, ConnectionError):
    """The session is gone and with it the episode; ``reset()`` opens another. ``reason`` says what happened."""

    attributes = ("reason",)
    reason: str | None


class SessionStateError(OpenEnvGymError, RuntimeError):
    """A call came out of order: ``expected`` names the states it is allowed in, ``state`` the one it met."""

    attributes = ("expected", "state")
    expected: str | None
    state: str | None


class ServerError(OpenEnvGymError, RuntimeError):
    """The server answered with an error frame: ``code`` and ``data`` are the frame's own; the session goes on."""

    attributes: tuple[str, ...] = ("code", "data")
    code: str | None
    data: dict[str, Any] | None


class InvalidActionError(ServerError, ValueError):
    """The server refused the message before the environment saw it; ``errors`` lists each fault with its path."""

    attributes = ("code", "data", "errors")
    errors: list[dict[str, Any]] | None


class EnvironmentExecutionError(ServerError):
    """The environment raised in reset, step, state or render; the message is the environment's own.

    ``env_index`` is which environment of several it was; None where there is one.
    """

    attributes: tuple[str, ...] = ("code", "data", "env_index")
    env_index: int | None


class ToolCallError(EnvironmentExecutionError):
    """A call of the tool ``tool_name`` gave no result; ``error_type`` is why, as ``tools.ToolErrorType`` names it."""

    attributes = ("code", "data", "env_index", "error_type", "tool_name")
    error_type: str | None
    tool_name: str | None


class CapacityError(ServerError, ConnectionError):
    """The server is full: ``active_sessions`` of ``max_sessions`` are in use."""

    attributes = ("active_sessions", "code", "data", "max_sessions")
    active_sessions: int | None
    max_sessions: int | None


class EnvironmentFactoryError(ServerError):
    """The server could not make the environment; ``factory_name`` is the factory that failed."""

    attributes = ("code", "data", "factory_name")
    factory_name: str | None
