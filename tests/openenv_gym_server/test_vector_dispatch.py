"""Tests of ``openenv_gym_server.vector_dispatch``: what is refused, and that the rest goes on."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
import pytest

from openenv_gym.frames import Kind
from openenv_gym.messages import REQUEST_TYPES, Close, Mcp, Open
from openenv_gym_server.vector_dispatch import VECTOR_HANDLERS
from tests.openenv_gym_server.vectors import Wire, wire


def test_every_message_has_one_function() -> None:
    assert VECTOR_HANDLERS.keys() == {*REQUEST_TYPES.values()} - {Close, Mcp, Open}


@pytest.mark.parametrize(
    ("kind", "data", "loc"),
    [
        ("reset", {}, ["type"]),
        ("step", {"action": 1}, ["type"]),
        ("x-vector_reset", {"seeds": [1]}, ["data", "seeds"]),
        ("x-vector_reset", {"seeds": [1, -1, 2]}, ["data", "seeds", 1]),
        ("x-vector_reset", {"seeds": [1, 2], "env_ids": [1]}, ["data", "seeds"]),
        ("x-vector_reset", {"env_ids": [3]}, ["data", "env_ids", 0]),
        ("x-vector_reset", {"env_ids": []}, ["data", "env_ids"]),
        ("x-vector_reset", {"options": {"a": {"$": "odd"}}}, ["data", "options", "a"]),
        ("x-vector_step", {"actions": [{"action": 1}]}, ["data", "actions"]),
        ("x-vector_step", {"actions": [{"action": 1}] * 2, "env_ids": [0, 0]}, ["data", "env_ids", 1]),
        ("x-vector_step", {"actions": [{"action": 1}, {}, {"action": 1}]}, ["data", "actions", 1, "action"]),
        ("x-vector_step", {"actions": [{"action": 1}, {"action": 1}, {"action": 2}]}, ["data", "actions", 2, "action"]),
        ("x-open", {}, ["type"]),
    ],
)
def test_what_a_session_of_several_does_not_take_is_refused_at_its_place(kind: str, data: Any, loc: list[Any]) -> None:
    with wire() as served:
        served.reset(seed=1)
        refused = served.ask(kind, **data)
        assert refused["code"] == "VALIDATION_ERROR"
        assert refused["errors"][0]["loc"] == loc
        assert served.ask("state")["step_counts"] == [0, 0, 0]


def test_a_session_of_one_does_not_take_what_is_for_several() -> None:
    with wire(num_envs=1, autoreset_mode="NextStep") as served:
        assert served.reset(seed=1)[0].shape == (1, 4)


@pytest.mark.parametrize(
    ("kind", "content", "ids", "count"),
    [
        (Kind.RESET, b"{", None, None),
        (Kind.RESET, b"[]", None, None),
        (Kind.RESET, b'{"seed":1}', None, None),
        (Kind.RESET, b'{"seeds":[1]}', None, None),
        (Kind.RESET, b"{}", None, 2),
        (Kind.RESET, b"{}", [5], None),
        (Kind.STEP, b"", None, None),
        (Kind.STEP, b"\0" * 24, None, 4),
        (Kind.STEP, b"\0" * 25, None, None),
        (Kind.STEP, b"\0" * 16, [1, 1], None),
        (Kind.STEP, b"\0" * 16 + b"\2" + b"\0" * 7, None, None),
        (Kind.STEP, b"", None, 2**32 - 1),
    ],
)
def test_a_binary_frame_that_is_wrong_is_refused_and_the_session_goes_on(
    kind: Kind, content: bytes, ids: list[int] | None, count: int | None
) -> None:
    with wire(binary=True) as served:
        served.reset(seed=1)
        refused = served.send(kind, [content], ids, count)
        assert refused["code"] == "VALIDATION_ERROR"
        assert served.step(np.array([0, 1, 0]))[1].tolist() == [1.0] * 3


def test_text_and_binary_messages_may_take_turns() -> None:
    with wire(binary=True) as served:
        served.reset(seed=1)
        binary = served.step(np.array([0, 1, 0]))
        served.binary = False
        served.reset(seed=1)
        text = served.step(np.array([0, 1, 0]))
        assert np.array_equal(binary[0], text[0])


def test_rewards_that_are_not_finite_are_spelled_in_text() -> None:
    class Endless(gymnasium.Env[Any, Any]):
        observation_space = action_space = gymnasium.spaces.Discrete(3)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return 0, {}

        def step(self, action: Any) -> Any:
            return 0, (float("nan"), float("inf"), -float("inf"))[action], False, False, {}

    with wire(Endless) as served:
        served.reset()
        actions = [{"action": action} for action in range(3)]
        assert served.ask("x-vector_step", actions=actions)["rewards"] == ["NaN", "Infinity", "-Infinity"]
        served.binary = True
        rewards = served.step(np.arange(3))[1]
        assert np.isnan(rewards[0])
        assert rewards[1:].tolist() == [float("inf"), -float("inf")]


def test_notes_travel_with_either_form() -> None:
    class Old:
        observation_space = action_space = gymnasium.spaces.Discrete(3)

        def reset(self) -> int:
            return 0

        def step(self, action: Any) -> Any:
            return action, 1, False, {}

    def notes(served: Wire, binary: bool) -> list[str]:
        content = {"seeds": [1, 2, 3]}
        if binary:
            return list(served.send(Kind.RESET, [json.dumps(content).encode()]).notes)
        return list(served.ask("x-vector_reset", **content).get("notes", []))

    for binary in (False, True):
        with wire(Old) as served:
            assert len(notes(served, binary)) == 1
            assert notes(served, binary) == []
