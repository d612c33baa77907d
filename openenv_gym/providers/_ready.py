"""The one readiness loop of all providers.

Ready means that the server made an environment and reset it (``GET /ready``), or, where a server has no such route,
that ``/health`` answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from openenv_gym.errors import OpenEnvGymError, ProviderError, UnreachableError
from openenv_gym.transports.base import ConnectionSettings

__all__ = ["wait_until_ready"]

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 1.0


def wait_until_ready(
    base_url: str,
    timeout_s: float,
    *,
    settings: ConnectionSettings | None = None,
    ended: Callable[[], str | None] = lambda: None,
) -> None:
    """Ask until the server is ready.

    Args:
        base_url: the server's address.
        timeout_s: seconds to wait at most.
        settings: headers, TLS and proxy for the question.
        ended: says why the server is gone, or None while it runs.

    Raises:
        ProviderError: the server ended, or was not ready in time; the last answer is in the message.
    """
    deadline = time.monotonic() + timeout_s
    pause = _FIRST_PAUSE_S
    last = "no question was asked"
    while True:
        reason = ended()
        if reason is not None:
            raise ProviderError(f"expected a server at {base_url}, but it ended: {reason}", output=reason)
        try:
            _ask(base_url, settings or ConnectionSettings())
        except OpenEnvGymError as error:
            last = str(error)
        else:
            return
        if time.monotonic() + pause > deadline:
            raise ProviderError(
                f"expected {base_url} to be ready within {timeout_s:g} s; the last answer: {last}", output=last
            )
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_S)


def _ask(base_url: str, settings: ConnectionSettings) -> None:
    from openenv_gym.transports.http import fetch_json  # noqa: PLC0415  (httpx is heavy and seldom needed)

    try:
        fetch_json(base_url, "/ready", settings)
    except UnreachableError as error:
        if error.status != 404:
            raise
        fetch_json(base_url, "/health", settings)
