"""Whatever a client sends: a typed answer, an environment that has not seen it, others undisturbed."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from pydantic import BaseModel, model_validator
from pydantic_core import PydanticCustomError
from starlette.testclient import TestClient

from openenv_gym.types import Action
from openenv_gym_server import create_app
from tests.openenv_gym_server.misbehaving import (
    KINDS,
    RAISED,
    Kind,
    Text,
    TextAction,
    TextObservation,
    Wire,
    assert_plays,
    wire_of,
)

TRAPS: dict[str, BaseException] = {
    **{name: error for name, error in RAISED.items() if name != "interrupt"},
    "assertion": AssertionError({"a": 1}),
    "custom": PydanticCustomError("mine", "no {thing}", {"thing": "castling", "of": object()}),
    "type": TypeError(),
    "division": ZeroDivisionError("by zero"),
}


def spring(trick: str) -> None:
    if trick in TRAPS:
        raise TRAPS[trick]


class TrappedAction(TextAction):
    @model_validator(mode="after")
    def _trapped(self) -> TrappedAction:
        spring(self.trick)
        return self


@dataclasses.dataclass
class TrappedDataAction:
    trick: str = ""

    def __post_init__(self) -> None:
        spring(self.trick)


class TrappedPiece(BaseModel):
    trick: str = ""

    @model_validator(mode="before")
    @classmethod
    def _trapped(cls, data: dict[str, Any]) -> dict[str, Any]:
        spring(data.get("trick", ""))
        return data


class TrappedBoardAction(Action):
    trick: str = ""
    pieces: list[TrappedPiece] = []


class Watchful(Text):
    """Remembers how often it was stepped."""

    stepped = 0

    def step(self, action: Any) -> Any:
        type(self).stepped += 1
        return TextObservation(reward=1.0)


@pytest.mark.parametrize("action_cls", [TrappedAction, TrappedDataAction, TrappedBoardAction])
def test_whatever_a_validator_raises_is_a_refusal_of_the_action(transport: str, action_cls: type[Any]) -> None:
    class Untouched(Watchful):
        stepped = 0

    kind = Kind("text", lambda: create_app(Untouched, action_cls, TextObservation))
    with TestClient(kind.make_app()) as client, wire_of(kind, transport, client) as wire:
        wire.reset({})
        for trick in TRAPS:
            data = {"pieces": [{}, {"trick": trick}]} if action_cls is TrappedBoardAction else {"trick": trick}
            code, text = wire.step(data)
            assert (trick, code) == (trick, "VALIDATION_ERROR")
            (fault,) = json.loads(text)["errors" if transport == "socket" else "detail"]
            assert fault.keys() >= {"type", "loc", "msg", "input"}
            assert fault["msg"]
            assert len(text) < 50_000
        assert Untouched.stepped == 0
        assert_plays(wire)


def test_a_seed_that_is_none_is_refused(wire: Wire) -> None:
    for seed in ('"7"', "1.5", "1.0", "true", "-1", "[]", "{}", "[1]", '""', "-1e2"):
        code, text = wire.raw("reset", f'{{"seed": {seed}}}')
        assert (seed, code) == (seed, "VALIDATION_ERROR")
        assert '"seed"' in text


def test_a_seed_of_any_size_is_a_seed(wire: Wire) -> None:
    for seed in ("0", "null", "9223372036854775808", "9" * 400):
        assert (seed, wire.raw("reset", f'{{"seed": {seed}}}')[0]) == (seed, "OK")


def test_a_name_of_an_episode_that_is_none_is_refused(wire: Wire) -> None:
    for name in ("7", "true", "[]", "{}", f'"{"x" * 256}"'):
        assert (name, wire.raw("reset", f'{{"episode_id": {name}}}')[0]) == (name, "VALIDATION_ERROR")


DEPTH = 500_000


def nested(opening: str, inner: str, closing: str, depth: int) -> str:
    return opening * depth + inner + closing * depth


def field(content: str) -> str:
    return f'{{"trick": {content}}}'


HUGE = {
    "lists": nested("[", "", "]", DEPTH),
    "lists in a field": field(nested("[", "", "]", DEPTH)),
    "objects": nested('{"a":', "1", "}", DEPTH // 3),
    "objects unclosed": '{"a":' * (DEPTH // 3),
    "a wide list": field(f"[{','.join(['1'] * DEPTH)}]"),
    "a wide object": json.dumps({f"k{number}": 1 for number in range(DEPTH // 8)}),
    "a long string": field(f'["{"x" * 2 * DEPTH}"]'),
    "a long key": json.dumps({"k" * 2 * DEPTH: 1}),
    "a long number": field("9" * 2 * DEPTH),
    "not finite": '{"trick": NaN}',
    "too large a number": '{"trick": 1e999}',
    "half a character": '{"trick": "\\ud800", "more": 1}',
    "null": "null",
    "nothing": "",
}


def test_a_megabyte_of_any_json_as_action_is_refused_briefly(wire: Wire) -> None:
    for name, content in HUGE.items():
        code, text = wire.raw("step", content)
        assert (name, code in {"VALIDATION_ERROR", "INVALID_JSON"}) == (name, True)
        assert len(text) < 25_000
    assert wire.steps() == 0


def test_a_megabyte_of_any_json_as_keywords_is_answered_briefly(wire: Wire) -> None:
    for content in HUGE.values():
        _, text = wire.raw("reset", content)
        assert len(text) < 25_000


def test_a_megabyte_that_fits_is_taken() -> None:
    kind = next(kind for kind in KINDS if kind.name == "numeric")
    with TestClient(kind.make_app()) as client, wire_of(kind, "socket", client) as wire:
        code, text = wire.step({"force": [0.125] * 150_000})
        assert code == "OK"
        assert json.loads(text)["observation"]["position"] == [0.125] * 150_000
