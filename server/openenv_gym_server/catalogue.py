"""What a server says of its environment outside any session: metadata, schema, readiness.

Each needs an environment; one is made for it, asked and closed, and the answer kept. Not for a session's own
environment, which a client's keywords may have made different (``dispatch.open_``).
"""

from __future__ import annotations

import time
from typing import NamedTuple

from openenv_gym.errors import OpenEnvGymError
from openenv_gym.messages import JSONObject
from openenv_gym_server.errors import text_of
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.sessions import Sessions

__all__ = ["Catalogue", "Readiness"]

READY_FOR_S = 5.0
"""How long an answer about readiness holds."""


class Readiness(NamedTuple):
    """Whether an environment can be made and reset, and the reason where it cannot."""

    ready: bool
    reason: str | None = None


class _Entry(NamedTuple):
    metadata: JSONObject
    schema: JSONObject


class Catalogue:
    """The kept answers of one application.

    Args:
        sessions: the application's sessions, which lend an environment.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._entry: _Entry | None = None
        self._readiness = Readiness(False, "nothing was tried yet")
        self._readiness_until = 0.0

    async def metadata(self) -> JSONObject:
        """The ``/metadata`` document.

        Raises:
            EnvironmentFactoryError: no environment can be made.
        """
        return (await self._described()).metadata

    async def schema(self) -> JSONObject:
        """The ``/schema`` document.

        Raises:
            EnvironmentFactoryError: no environment can be made.
        """
        return (await self._described()).schema

    async def readiness(self) -> Readiness:
        """Whether a client would get an environment that resets; tried for real, every ``READY_FOR_S`` seconds."""
        if self._sessions.factory.instance is not None or self._sessions.any_made():
            return Readiness(True)
        if time.monotonic() >= self._readiness_until:
            self._readiness = await self._try()
            self._readiness_until = time.monotonic() + READY_FOR_S
        return self._readiness

    async def _try(self) -> Readiness:
        try:
            await self._sessions.borrow(_reset)
        except OpenEnvGymError as error:
            return Readiness(False, text_of(error))
        return Readiness(True)

    async def _described(self) -> _Entry:
        if self._entry is None:
            self._entry = await self._sessions.borrow(_describe, reads_only=True)
        return self._entry


def _describe(hosted: HostedEnvironment) -> _Entry:
    return _Entry(hosted.metadata(), hosted.schema())


def _reset(hosted: HostedEnvironment) -> None:
    hosted.reset({})
