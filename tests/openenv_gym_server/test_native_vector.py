"""Tests of ``openenv_gym_server.native_vector``: sessions on an environment's own vector entry point."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
import pytest

from openenv_gym.frames import Kind
from tests.exactness.compare import assert_same_value
from tests.openenv_gym_server.vectors import Wire, wire

NATIVE = {"vectorization": "vector_entry_point"}


def pair(binary: bool = False, **kwargs: Any) -> Any:
    return wire("served/Moody-v0", binary=binary, env_kwargs=kwargs, max_episode_steps=3, **NATIVE)


def begun(served: Wire, seed: int | None = None, ids: list[int] | None = None) -> Any:
    seeds = None if seed is None else [seed + index for index in range(3 if ids is None else len(ids))]
    return served.begin({} if seeds is None else {"seeds": seeds}, ids)[0]


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_it_is_what_the_entry_point_gives(binary: bool) -> None:
    local = gymnasium.make_vec("CartPole-v1", 5, vectorization_mode="vector_entry_point")
    with wire("CartPole-v1", binary=binary, num_envs=5, **NATIVE) as served:
        assert (served.opened["partial"], served.opened["binary"]) == (False, True)
        assert served.opened["autoreset_mode"] == "NextStep"
        assert_same_value(local.reset(seed=3), served.reset(seed=3), "reset")
        for step in range(60):
            actions = np.array([step % 2, 1, 0, 1, 0])
            observations, rewards, *flags, infos = local.step(actions)
            expected = (observations, rewards.astype(np.float64), *flags, infos)
            assert_same_value(expected, served.step(actions), f"step {step}")
    local.close()


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_some_are_reset_by_their_mask_and_told_alone(binary: bool) -> None:
    with pair(binary) as served:
        assert begun(served)[1] == ("0", "0", "0")
        served.step(np.array([1, 2, 0]))
        boxes, texts = begun(served, ids=[2, 0])
        assert (boxes.tolist(), texts) == ([[0, 0], [0, 0]], ("0", "0"))
        infos = served.begin_infos
        assert infos["mask"].tolist() == [True, True]
        assert infos["deep"]["counts"].tolist() == [0, 0]
        assert infos["pair"] == ("a", 1)
        boxes, texts = begun(served, ids=[1])
        state = served.ask("state")
        assert (state["num_envs"], state["step_counts"]) == (3, [0, 0, 0])
        assert [name.rpartition("-")[2] for name in state["episode_ids"]] == ["2", "2", "2"]


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_environments_may_be_named_in_any_order(binary: bool) -> None:
    with pair(binary) as served:
        begun(served)
        (boxes, texts), rewards, terminations, _, infos = served.step(np.array([2, 1, 0]), [1, 0, 2])
        assert boxes[:, 0].tolist() == [2, 1, 0]
        assert texts == ("2", "1", "0")
        assert rewards.tolist() == [2, 1, 0]
        assert infos["counts"].tolist() == [2, 1, 0]
        assert served.step(np.array([1, 0, 0]), [1, 0, 2])[2].tolist() == [True, False, False]
        assert not terminations.any()


def test_seeds_that_were_one_number_are_one_again() -> None:
    with pair() as served:
        for data, seen in (
            ({}, None),
            ({"seeds": [4, 5, 6]}, 4),
            ({"seeds": [4, 6, 5]}, [4, 6, 5]),
            ({"seeds": [None, 6, None]}, [None, 6, None]),
        ):
            served.ask("x-vector_reset", **data)
            assert served.ask("x-call", name="seeds")["value"]["items"] == [seen]


def test_a_step_of_some_is_refused_and_nothing_has_moved() -> None:
    with pair() as served:
        early = served.ask("x-vector_step", actions=[{"action": 1}] * 3)
        assert early["errors"][0]["type"] == "not_reset"
        early = served.ask("x-vector_reset", env_ids=[1])
        assert early["errors"][0]["type"] == "not_reset"
        begun(served)
        for data in ({"actions": [{"action": 1}], "env_ids": [1]}, {"actions": [{"action": 1}] * 2}):
            refused = served.ask("x-vector_step", **data)
            assert refused["code"] == "VALIDATION_ERROR"
        refused = served.ask("x-vector_step", actions=[{"action": 1}, {"action": 9}, {"action": 1}])
        assert refused["errors"][0]["loc"] == ["data", "actions", 1, "action"]
        assert served.ask("state")["step_counts"] == [0, 0, 0]
        served.step(np.array([2, 2, 2]))
        served.step(np.array([2, 0, 0]))
        over = served.ask("x-vector_step", actions=[{"action": 0}] * 3)
        assert over["errors"][0]["type"] == "episode_over"
        assert "environment 0" in over["message"]


def test_episodes_are_counted_as_its_mode_has_them() -> None:
    with pair(mode="SameStep") as served:
        begun(served)
        served.step(np.array([2, 2, 0]))
        served.step(np.array([2, 0, 0]))
        assert served.ask("state")["step_counts"] == [0, 2, 2]
    with pair(mode="NextStep") as served:
        begun(served)
        served.step(np.array([2, 2, 0]))
        served.step(np.array([2, 0, 0]))
        assert served.ask("state")["step_counts"] == [2, 2, 2]
        served.step(np.array([0, 0, 0]))
        assert served.ask("state")["step_counts"] == [0, 3, 3]


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize("odd", ["step", "observation", "reset"])
def test_what_it_raises_ends_the_session_without_naming_one(odd: str, binary: bool) -> None:
    with pair(binary, **{odd: True}) as served:
        failed = served.send(Kind.RESET, [b""]) if binary else served.ask("x-vector_reset")
        if odd == "step":
            failed = served.ask("x-vector_step", actions=[{"action": 1}] * 3)
        assert failed["code"] == "EXECUTION_ERROR"
        assert "env_index" not in failed
        assert served.socket.receive()["type"] == "websocket.close"


def test_its_own_methods_take_calls_and_attributes() -> None:
    with pair() as served:
        called = served.ask("x-call", name="greet", args=[1], kwargs={"a": 2})["value"]["items"]
        assert called[1]["items"][0] == "greet"
        assert served.ask("x-set_attr", name="mood", values=[1, 2, 3]) == {}
        assert served.ask("x-set_attr", name="mood", values=[1])["errors"][0]["loc"] == ["data", "values"]
    with wire("CartPole-v1", **NATIVE) as served:
        assert "has no call()" in served.ask("x-call", name="gravity")["message"]
        assert "has no set_attr()" in served.ask("x-set_attr", name="gravity", values=[1, 2, 3])["message"]


def test_it_renders_as_it_does() -> None:
    with wire("CartPole-v1", render_mode="rgb_array", **NATIVE) as served:
        served.reset(seed=1)
        rendered = served.ask("x-render")["value"]
        assert [frame["shape"] for frame in rendered] == [[400, 600, 3]] * 3
        assert served.opened["render_mode"] == "rgb_array"


def test_what_is_told_of_it_is_told_of_one() -> None:
    with wire("CartPole-v1", max_episode_steps=7, **NATIVE) as served:
        known = served.opened["metadata"]["gymnasium"]
        assert (known["env_id"], known["max_episode_steps"]) == ("CartPole-v1", 7)
        assert json.dumps(served.opened["schema"])
