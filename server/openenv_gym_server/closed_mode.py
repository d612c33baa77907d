"""What a production server says of an error: that there was one, and nothing of how the environment is made.

An exception is told with its text only where it was raised to be read: FastMCP's ``ToolError`` and an
``InvalidActionError``. Of any other the caller hears its type at most, and the server's log has the rest. Not for what
is closed there (``parsing.py``, ``app.py``) nor for the text of a failure that is told (``tool_results.py``).
"""

from __future__ import annotations

from openenv_gym.errors import (
    EnvironmentExecutionError,
    EnvironmentFactoryError,
    InvalidActionError,
    OpenEnvGymError,
)
from openenv_gym_server.errors import VALIDATION_RAISED, UnsendableError, text_of
from openenv_gym_server.reports import cause_of, report

__all__ = ["FAILED", "REJECTED", "as_told", "is_wrapped", "reason_of", "undisclosed"]

FAILED = "the environment failed; its operator finds the reason in the server's log"
REJECTED = "the environment's own check of the message failed; its operator finds the reason in the server's log"

_TOOL_ERRORS = frozenset({"fastmcp.exceptions.ToolError", "mcp.server.fastmcp.exceptions.ToolError"})
"""What authors raise so that agents read it; by name, since neither package need be installed."""

_WRAPPED = ("Error calling tool ", "Error executing tool ")
"""How a ``ToolError`` begins that FastMCP, or the SDK's own, has made of an exception of any kind."""


def as_told(error: BaseException, *, production: bool) -> OpenEnvGymError:
    """The error as a peer is told of it: in production without the text of what the environment or its factory raised.

    What is none of ours, the environment has raised.

    Example:
        >>> secret = EnvironmentExecutionError("no such file: /srv/answers.json")
        >>> str(as_told(secret, production=True))
        "the environment failed; its operator finds the reason in the server's log"
    """
    if not isinstance(error, OpenEnvGymError):
        message = FAILED if production else text_of(error)
        return EnvironmentExecutionError(message, code="EXECUTION_ERROR")
    if not production or isinstance(error, UnsendableError):
        return error
    if isinstance(error, EnvironmentFactoryError):
        name = error.factory_name
        message = f"Environment factory '{name}' failed to create instance."
        return EnvironmentFactoryError(message, code="FACTORY_ERROR", factory_name=name)
    if isinstance(error, EnvironmentExecutionError):
        return EnvironmentExecutionError(FAILED, code="EXECUTION_ERROR")
    if _validation_raised(error):
        return InvalidActionError(REJECTED, code="VALIDATION_ERROR")
    return error


def reason_of(error: BaseException, tool_name: str, *, production: bool) -> str:
    """Why a tool gave no result, by what it raised; what production keeps back is logged.

    Example:
        >>> reason_of(FileNotFoundError("/srv/answers.json"), "look", production=False)
        '/srv/answers.json'
        >>> reason_of(FileNotFoundError("/srv/answers.json"), "look", production=True)
        "it raised FileNotFoundError; its operator finds the reason in the server's log"
    """
    if not production or _is_to_be_read(error):
        return text_of(error)
    report(error, None, f"the tool {tool_name!r}")
    return f"it raised {type(cause_of(error)).__name__:.100}; its operator finds the reason in the server's log"


def _is_to_be_read(error: BaseException) -> bool:
    if isinstance(error, InvalidActionError):
        return not _validation_raised(error)
    kinds = {f"{each.__module__}.{each.__qualname__}" for each in type(error).__mro__}
    return not kinds.isdisjoint(_TOOL_ERRORS) and not is_wrapped(text_of(error))


def _validation_raised(error: OpenEnvGymError) -> bool:
    faults = (error.errors or ()) if isinstance(error, InvalidActionError) else ()
    return any(each.get("type") == VALIDATION_RAISED for each in faults)


def is_wrapped(text: str) -> bool:
    """Whether FastMCP has made the text of a tool's failure of an exception that was not raised to be read."""
    return text.startswith(_WRAPPED)


def undisclosed(tool_name: str) -> str:
    """What is said of the failure of a tool whose exception nothing is known of."""
    return f"Error calling tool {tool_name!r}: it failed; its operator finds the reason in the server's log"
