"""Sessions for the tests of bad input and bad output: every kind of environment over every transport."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.openenv_gym_server.misbehaving import KINDS, Kind, Socket, Wire, assert_plays, wire_of


@pytest.fixture(params=["socket", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=KINDS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    assert isinstance(request.param, Kind)
    return request.param


@pytest.fixture
def wire(kind: Kind, transport: str) -> Iterator[Wire]:
    """A session; after the test it still plays, and so does another that was there all the time."""
    with TestClient(kind.make_app()) as client:
        if not kind.several:
            with wire_of(kind, transport, client) as wire:
                wire.reset({})
                yield wire
                assert_plays(wire)
            return
        with client.websocket_connect("/ws") as socket, wire_of(kind, transport, client) as wire:
            bystander = Socket(kind, socket)
            bystander.reset({})
            bystander.step(kind.action())
            wire.reset({})
            yield wire
            assert bystander.steps() == 1
            assert bystander.step(kind.action())[0] == "OK"
            assert_plays(wire)
