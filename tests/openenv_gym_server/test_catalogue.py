"""Tests of ``openenv_gym_server.catalogue``."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from openenv_gym.errors import EnvironmentFactoryError
from openenv_gym_server import catalogue as module
from openenv_gym_server.catalogue import Catalogue
from openenv_gym_server.factories import EnvironmentFactory
from openenv_gym_server.hosting import Models
from openenv_gym_server.sessions import Sessions
from openenv_gym_server.settings import ServerSettings
from tests.text_envs import Echo, Heard, Say


def catalogue_of(env: Any) -> Catalogue:
    return Catalogue(Sessions(EnvironmentFactory(env), Models(Say, Heard), ServerSettings()))


def test_a_failure_is_not_kept() -> None:
    attempts: list[int] = []

    def factory() -> Echo:
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError("not yet")
        return Echo()

    async def main() -> None:
        catalogue = catalogue_of(factory)
        with pytest.raises(EnvironmentFactoryError):
            await catalogue.metadata()
        assert (await catalogue.metadata())["name"] == "Echo"
        await catalogue.schema()

    asyncio.run(main())
    assert len(attempts) == 2


def test_readiness_is_tried_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[int] = []

    def factory() -> Echo:
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError("not yet")
        return Echo()

    async def main() -> None:
        catalogue = catalogue_of(factory)
        assert not (await catalogue.readiness()).ready
        assert not (await catalogue.readiness()).ready
        monkeypatch.setattr(module, "READY_FOR_S", 0.0)
        catalogue._readiness_until = 0.0
        assert (await catalogue.readiness()).ready

    asyncio.run(main())
    assert len(attempts) == 2


def test_a_lent_instance_is_described_but_not_reset() -> None:
    env = Echo()

    async def main() -> None:
        catalogue = catalogue_of(env)
        assert (await catalogue.readiness()).ready
        assert (await catalogue.metadata())["name"] == "Echo"

    asyncio.run(main())
    assert env.calls == []
    assert env.closed == 0
