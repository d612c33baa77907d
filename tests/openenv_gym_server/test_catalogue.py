"""Tests of ``openenv_gym_server.catalogue``."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from openenv_gym.errors import EnvironmentFactoryError
from openenv_gym_server import catalogue as module
from openenv_gym_server.catalogue import Catalogue
from openenv_gym_server.factories import EnvironmentFactory
from openenv_gym_server.models import Models
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


def test_whoever_asks_at_the_same_time_gets_the_answer_of_one_environment() -> None:
    leave = threading.Event()
    made: list[Echo] = []

    class Slow(Echo):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)
            assert leave.wait(10)

    async def main() -> None:
        catalogue = catalogue_of(Slow)
        asking = [asyncio.ensure_future(catalogue.schema()) for _ in range(20)]
        asking += [asyncio.ensure_future(catalogue.metadata()) for _ in range(20)]
        await asyncio.sleep(0)
        leave.set()
        await asyncio.gather(*asking)
        await asyncio.gather(*(catalogue.readiness() for _ in range(20)))

    asyncio.run(main())
    assert len(made) == 2
    assert [env.calls for env in made] == [[], ["reset None"]]


def test_whoever_asks_at_the_same_time_hears_of_the_same_failure() -> None:
    attempts: list[int] = []

    def factory() -> Echo:
        attempts.append(1)
        raise OSError("not today")

    async def main() -> None:
        catalogue = catalogue_of(factory)
        answers = await asyncio.gather(*(catalogue.schema() for _ in range(20)), return_exceptions=True)
        assert {type(answer) for answer in answers} == {EnvironmentFactoryError}

    asyncio.run(main())
    assert len(attempts) == 1


def test_a_question_goes_on_where_whoever_asked_first_has_left() -> None:
    leave = threading.Event()

    class Slow(Echo):
        def __init__(self) -> None:
            super().__init__()
            assert leave.wait(10)

    async def main() -> None:
        catalogue = catalogue_of(Slow)
        first = asyncio.ensure_future(catalogue.metadata())
        second = asyncio.ensure_future(catalogue.metadata())
        third = asyncio.ensure_future(catalogue.metadata())
        for _ in range(3):
            await asyncio.sleep(0)
        first.cancel()
        third.cancel()
        leave.set()
        assert (await second)["name"] == "Slow"

    asyncio.run(main())
