"""What a production server says of an error: that there was one, and nothing of how the environment is made.

Not for what is closed there (``parsing.py``, ``app.py``) nor for what a tool's own failure says (``rpc_tools.py``).
"""

from __future__ import annotations

from openenv_gym.errors import (
    EnvironmentExecutionError,
    EnvironmentFactoryError,
    InvalidActionError,
    OpenEnvGymError,
)
from openenv_gym_server.errors import VALIDATION_RAISED, UnsendableError, text_of

__all__ = ["FAILED", "REJECTED", "told"]

FAILED = "the environment failed; its operator finds the reason in the server's log"
REJECTED = "the environment's own check of the message failed; its operator finds the reason in the server's log"


def told(error: BaseException, *, production: bool) -> OpenEnvGymError:
    """The error as a peer is told of it: in production without the text of what the environment or its factory raised.

    What is none of ours, the environment has raised.

    Example:
        >>> secret = EnvironmentExecutionError("no such file: /srv/answers.json")
        >>> str(told(secret, production=True))
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
    if isinstance(error, InvalidActionError) and any(each["type"] == VALIDATION_RAISED for each in error.errors or ()):
        return InvalidActionError(REJECTED, code="VALIDATION_ERROR")
    return error
