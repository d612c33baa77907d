"""Whatever an environment does wrong: a typed answer that says what is lost, and all sessions go on."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from openenv_gym.types import State
from openenv_gym_server import create_app
from tests.openenv_gym_server.misbehaving import (
    KINDS,
    RAISED,
    RETURNED,
    UNSENDABLE,
    WRONG_REWARDS,
    Data,
    DataAction,
    DataObservation,
    Kind,
    NumericObservation,
    Text,
    TextAction,
    TextObservation,
    Wire,
    assert_plays,
    perform,
    wire_of,
)


def test_whatever_an_environment_raises_is_its_error_with_a_text(wire: Wire) -> None:
    for trick in RAISED:
        for code, text in (wire.step(wire.kind.action(trick)), wire.reset(wire.kind.keywords(trick))):
            assert (trick, code) == (trick, "EXECUTION_ERROR")
            assert len(text) < 25_000


def test_whatever_else_it_returns_is_an_error_that_says_what_came_and_what_is_lost(wire: Wire) -> None:
    for trick, value in RETURNED.items():
        for code, text in (wire.step(wire.kind.action(trick)), wire.reset(wire.kind.keywords(trick))):
            assert (trick, code) == (trick, "EXECUTION_ERROR")
            assert "expected " in text
            assert "the environment has already advanced" in text
            if wire.kind.name != "gymnasium":
                assert f"a pydantic model, a dataclass or a dict, got {type(value).__module__}" in text


def test_an_observation_that_cannot_be_sent_is_an_error_that_says_where_and_what_is_lost(wire: Wire) -> None:
    for trick in UNSENDABLE:
        for code, text in (wire.step(wire.kind.action(trick)), wire.reset(wire.kind.keywords(trick))):
            assert (trick, code) == (trick, "EXECUTION_ERROR")
            assert "cannot be sent as JSON: expected " in text
            assert " at $" in text
            assert "the environment has already advanced" in text


@pytest.mark.parametrize("trick", WRONG_REWARDS)
def test_a_reward_that_is_no_number_is_an_error(transport: str, trick: str) -> None:
    kind = next(kind for kind in KINDS if kind.name == "dataclass")
    with TestClient(kind.make_app()) as client, wire_of(kind, transport, client) as wire:
        code, text = wire.step(kind.action(trick))
        assert code == "EXECUTION_ERROR"
        assert "expected a number or None as reward" in text
        assert_plays(wire)


@pytest.mark.parametrize(
    ("done", "sent"),
    [(1, True), (np.True_, True), (np.array([0.0]), False), (None, False), ("false", None), ([0], None), (2, None)],
)
def test_what_can_be_taken_for_a_flag_is_one_and_nothing_else(transport: str, done: Any, sent: bool | None) -> None:
    class Ending(Data):
        def step(self, action: DataAction) -> Any:
            return DataObservation(done=done)

    kind = Kind("dataclass", lambda: create_app(Ending, DataAction, DataObservation))
    with TestClient(kind.make_app()) as client, wire_of(kind, transport, client) as wire:
        code, text = wire.step({})
    if sent is None:
        assert code == "EXECUTION_ERROR"
        assert "expected true or false at $.done" in text
    else:
        assert code == "OK"
        assert json.loads(text)["done"] is sent


def test_a_class_of_observations_that_was_not_promised_is_sent_as_it_is(transport: str) -> None:
    class Other(Text):
        def step(self, action: TextAction) -> Any:
            return {"anything": 1, "reward": 2.0} if action.trick else NumericObservation(position=[1.0])

    kind = Kind("text", lambda: create_app(Other, TextAction, TextObservation))
    with TestClient(kind.make_app()) as client, wire_of(kind, transport, client) as wire:
        assert json.loads(wire.step({})[1])["observation"]["position"] == [1.0]
        assert json.loads(wire.step({"trick": "dict"})[1])["observation"] == {"anything": 1}


class Stateless(Text):
    """Misbehaves where its state is asked for."""

    trick = ""

    def step(self, action: TextAction) -> Any:
        self.trick = action.trick
        return TextObservation(reward=1.0)

    @property
    def state(self) -> Any:
        return perform(self.trick, lambda value: State.model_validate({"step_count": 1, "value": value}))


def test_a_state_that_cannot_be_told_is_an_error_and_the_session_goes_on() -> None:
    kind = Kind("text", lambda: create_app(Stateless, TextAction, TextObservation))
    with TestClient(kind.make_app()) as client, client.websocket_connect("/ws") as socket:
        for trick in [*RAISED, *UNSENDABLE]:
            socket.send_json({"type": "step", "data": {"trick": trick}})
            assert socket.receive_json()["type"] == "observation"
            socket.send_json({"type": "state"})
            answer = socket.receive_json()["data"]
            assert (trick, answer["code"]) == (trick, "EXECUTION_ERROR")
            assert "advanced" not in answer["message"]
        socket.send_json({"type": "step", "data": {}})
        assert socket.receive_json()["type"] == "observation"
        socket.send_json({"type": "state"})
        assert socket.receive_json()["data"]["step_count"] == 1
