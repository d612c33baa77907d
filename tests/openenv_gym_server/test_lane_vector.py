"""Tests of ``openenv_gym_server.lane_vector``: whole sessions, beside what Gymnasium gives for the same."""

from __future__ import annotations

import multiprocessing
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from openenv_gym.exact import Opaque
from openenv_gym.frames import Kind
from openenv_gym_server.settings import ServerSettings
from tests.exactness.compare import as_the_space_holds_it, assert_same_value
from tests.openenv_gym_server.vectors import wire
from tests.sockets import until

ENVS: dict[str, tuple[str, dict[str, Any]]] = {
    "CartPole-v1": ("CartPole-v1", {}),
    "FrozenLake-v1, slippery": ("FrozenLake-v1", {"is_slippery": True}),
    "Blackjack-v1, whose observations are tuples": ("Blackjack-v1", {}),
    "one of Dicts and infos": ("served/Moody-v0", {}),
}
STEPS = 40


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("name", ENVS)
def test_every_step_is_what_gymnasium_gives(name: str, mode: AutoresetMode, binary: bool) -> None:
    env_id, kwargs = ENVS[name]
    local = gymnasium.make_vec(
        env_id, 4, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, disable_env_checker=True, **kwargs
    )
    local.action_space.seed(5)
    ended = 0
    with wire(env_id, binary=binary, num_envs=4, autoreset_mode=mode.value, env_kwargs=kwargs) as served:
        assert_same_value(local.reset(seed=11), served.reset(seed=11), "reset")
        for step in range(STEPS):
            actions = local.action_space.sample() % 4  # an action of 4 has one of the environments raise
            expected, found = local.step(actions), served.step(actions)
            assert_same_value(as_sent(expected, local.single_observation_space), found, f"step {step}")
            over = expected[2] | expected[3]
            ended += int(over.sum())
            if mode is AutoresetMode.DISABLED and over.any():
                rows = np.flatnonzero(over)
                begun, _ = local.reset(options={"reset_mask": over})
                came, _ = served.begin({"options": {}}, rows.tolist())
                assert_same_value(taken(begun, rows), came, f"reset after step {step}")
    local.close()
    assert ended > 0


def as_sent(step: Any, space: gymnasium.Space[Any]) -> Any:
    """A local step with last observations of the Space's own types, and with what stands for objects in infos."""
    *values, infos = step
    last = infos.get("final_obs")
    if last is not None:
        held = [None if each is None else as_the_space_holds_it(space, each) for each in last]
        infos = {**infos, "final_obs": np.array([*held, None], object)[:-1]}
    return (*values, without_objects(infos))


def without_objects(value: Any) -> Any:
    """The value with what stands for objects that cannot travel."""
    if isinstance(value, dict):
        return {key: without_objects(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(without_objects, value))
    if isinstance(value, np.ndarray) and value.dtype == object:
        return np.array([*map(without_objects, value), None], object)[:-1]
    return Opaque("builtins.type", "<class 'object'>") if value is object else value


def taken(batch: Any, rows: np.ndarray) -> Any:
    """These rows of a batch of observations."""
    if isinstance(batch, dict):
        return {key: taken(part, rows) for key, part in batch.items()}
    if isinstance(batch, np.ndarray):
        return batch[rows]
    if isinstance(batch[0], np.ndarray):
        return tuple(taken(part, rows) for part in batch)
    return tuple(batch[row] for row in rows)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_further_limit_of_steps_truncates_as_gymnasiums_own_does(mode: AutoresetMode) -> None:
    keywords: dict[str, Any] = {"vectorization_mode": "sync", "vector_kwargs": {"autoreset_mode": mode}}
    local = gymnasium.make_vec("CartPole-v1", 3, max_episode_steps=3, **keywords)
    with wire(autoreset_mode=mode.value, max_episode_steps=3) as served:
        assert_same_value(local.reset(seed=1), served.reset(seed=1), "reset")
        for step in range(3 if mode is AutoresetMode.DISABLED else 12):
            actions = np.array([step % 2, 1, 0])
            expected, found = local.step(actions), served.step(actions)
            assert_same_value(expected, found, f"step {step}")
    local.close()


@pytest.mark.parametrize("vectorization", ["sync", "async"])
@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_some_environments_are_stepped_while_the_others_stand_still(vectorization: str, binary: bool) -> None:
    single = [gymnasium.make("CartPole-v1") for _ in range(3)]
    with wire(binary=binary, vectorization=vectorization) as served:
        observations, _ = served.reset(seed=4)
        for index, env in enumerate(single):
            assert_same_value(env.reset(seed=4 + index)[0], observations[index])
        for ids in ([2], [0, 2], [2, 1, 0], [1]):
            came, *_ = served.step(np.ones(len(ids), np.int64), ids)
            for row, index in enumerate(ids):
                assert_same_value(single[index].step(np.int64(1))[0], came[row], f"environment {index}")
        state = served.ask("state")
        assert (state["num_envs"], state["step_counts"]) == (3, [2, 2, 3])
        assert len(set(state["episode_ids"])) == 3
        came, _ = served.begin({"seeds": [9]}, [1])
        assert_same_value(single[1].reset(seed=9)[0], came[0])
        assert served.ask("state")["step_counts"] == [2, 0, 3]
    for env in single:
        env.close()


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_one_that_raises_is_named_and_ends_the_session_of_all(vectorization: str) -> None:
    with wire("served/Moody-v0", vectorization=vectorization) as served:
        served.reset(seed=1)
        failed = served.ask("x-vector_step", actions=[{"action": 0}, {"action": 0}, {"action": 4}])
        assert failed["code"] == "EXECUTION_ERROR"
        assert failed["env_index"] == 2
        assert failed["message"] == "after 1 steps"
        assert failed["exception_type"] == "LocalError"
        assert served.socket.receive()["type"] == "websocket.close"


@pytest.mark.parametrize("vectorization", ["sync", "async"])
@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_one_that_cannot_begin_is_named_too(vectorization: str, binary: bool) -> None:
    with wire("served/Moody-v0", vectorization=vectorization, binary=binary) as served:
        served.reset(seed=1)
        if binary:
            failed = served.send(Kind.RESET, [b'{"options":{"fail":true}}'], [1])
        else:
            failed = served.ask("x-vector_reset", env_ids=[1], options={"fail": True})
        assert (failed["code"], failed["env_index"]) == ("EXECUTION_ERROR", 1)
        assert (failed["message"], failed["exception_type"]) == ("it cannot begin", "OSError")
        assert served.socket.receive()["type"] == "websocket.close"


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_methods_and_attributes_are_one_an_environment(vectorization: str) -> None:
    with wire("served/Moody-v0", vectorization=vectorization, render_mode="ansi") as served:
        served.reset(seed=1)

        def value(kind: str, **data: Any) -> Any:
            answer = served.ask(kind, **data)
            return answer["value"]["items"] if "value" in answer else answer

        assert value("x-get_attr", name="mood") == ["calm"] * 3
        assert served.ask("x-set_attr", name="mood", values=["glad", "sad", "calm"]) == {}
        assert value("x-call", name="greet", args=["you"], kwargs={"loud": True}) == [
            f"YOU, {mood}" for mood in ("glad", "sad", "calm")
        ]
        assert value("x-call", name="mood") == ["glad", "sad", "calm"]
        assert value("x-render") == ["step 0"] * 3
        failed = value("x-call", name="greet", args=["nobody"])
        assert (failed["code"], failed["exception_type"]) == ("EXECUTION_ERROR", "LookupError")
        assert "env_index" not in failed
        assert value("x-get_attr", name="moon")["code"] == "VALIDATION_ERROR"
        assert value("x-get_attr", name="_secret")["code"] == "VALIDATION_ERROR"
        assert value("x-set_attr", name="observation_space", values=[1, 2, 3])["code"] == "VALIDATION_ERROR"
        wrong = value("x-set_attr", name="mood", values=["glad"])
        assert wrong["errors"][0]["loc"] == ["data", "values"]
        assert value("x-get_attr", name="mood") == ["glad", "sad", "calm"]


def test_the_action_of_an_environment_that_begins_anew_is_ignored() -> None:
    with wire(max_episode_steps=1) as served:
        first, _ = served.reset(seed=3)
        served.step(np.array([0, 1, 0]))
        again, rewards, terminations, truncations, _ = served.step(np.array([1, 1, 1]))
        assert rewards.tolist() == [0.0] * 3
        assert not (terminations | truncations).any()
        assert not np.array_equal(first, again)
        assert served.ask("state")["step_counts"] == [0, 0, 0]


def test_an_observation_that_does_not_fit_names_its_environment_and_ends_the_session() -> None:
    made: list[Any] = []

    class Odd(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            made.append(self)
            return np.zeros(2), {}

        def step(self, action: Any) -> Any:
            return np.zeros(3 if action else 2), None, False, False, None

    for binary in (False, True):
        with wire(Odd, binary=binary) as served:
            observations, _ = served.reset(seed=1)
            assert observations.dtype == np.float32
            assert served.step(np.array([0, 0, 0]))[1].tolist() == [0.0] * 3
            failed = served.ask("x-vector_step", actions=[{"action": 0}, {"action": 1}, {"action": 0}])
            assert (failed["code"], failed["env_index"]) == ("EXECUTION_ERROR", 1)
            assert "already advanced" in failed["message"]
            assert served.socket.receive()["type"] == "websocket.close"


def test_a_cast_is_noted_once() -> None:
    class Wide(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return np.zeros(2), {}

        def step(self, action: Any) -> Any:
            return np.ones(2), 1.0, False, False, {}

    with wire(Wide) as served:
        notes = served.ask("x-vector_reset")["notes"]
        assert len(notes) == 1
        assert "was cast" in notes[0]
        assert "notes" not in served.ask("x-vector_step", actions=[{"action": 0}] * 3)


def test_infos_that_gymnasium_cannot_join_are_the_second_environments_failure() -> None:
    class Changing(gymnasium.Env[Any, Any]):
        observation_space = action_space = gymnasium.spaces.Discrete(3)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return 0, {}

        def step(self, action: Any) -> Any:
            return 0, 1.0, False, False, {"key": "text" if action == 0 else {"a": 1}}

    with wire(Changing) as served:
        served.reset()
        failed = served.ask("x-vector_step", env_ids=[2, 1], actions=[{"action": 0}, {"action": 1}])
        assert (failed["code"], failed["env_index"]) == ("EXECUTION_ERROR", 1)


def test_an_info_that_has_its_own_final_obs_keeps_it_beside_gymnasiums() -> None:
    class Final(gymnasium.Env[Any, Any]):
        observation_space = action_space = gymnasium.spaces.Discrete(3)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return 0, {}

        def step(self, action: Any) -> Any:
            return action, 1.0, bool(action == 1), False, {"final_obs": "mine"}

    with wire(Final, autoreset_mode="SameStep") as served:
        served.reset()
        answer = served.ask("x-vector_step", actions=[{"action": 0}, {"action": 1}, {"action": 2}])
        assert "final" not in answer
        assert answer["infos"]["final_obs"]["items"][0] == "mine"


def test_an_environment_in_a_process_that_hangs_leaves_no_slot_and_no_process_behind() -> None:
    settings = ServerSettings(remote_names="all", step_timeout_s=0.5, close_timeout_s=0.2)
    before = set(multiprocessing.active_children())
    with wire("served/Moody-v0", settings=settings, vectorization="async") as served:
        served.reset(seed=1)
        assert len(set(multiprocessing.active_children()) - before) == 3
        served.socket.send_json({"type": "x-call", "data": {"name": "greet", "args": ["forever"]}})
        ended = served.socket.receive_json()["data"]
        assert (ended["code"], "step_timeout_s=0.5" in ended["message"]) == ("SESSION_ERROR", True)
        until(lambda: set(multiprocessing.active_children()) <= before)
        until(lambda: served.client.get("/ready").json()["capacity"]["active_sessions"] == 0)


def test_a_server_that_stops_ends_an_environment_in_a_process_that_hangs() -> None:
    settings = ServerSettings(remote_names="all", close_timeout_s=0.1, shutdown_timeout_s=2)
    before = set(multiprocessing.active_children())
    with wire("served/Moody-v0", settings=settings, vectorization="async") as served:
        served.reset(seed=1)
        served.socket.send_json({"type": "x-call", "data": {"name": "greet", "args": ["forever"]}})
    until(lambda: set(multiprocessing.active_children()) <= before)


def test_calls_of_tools_are_for_a_session_of_one_environment() -> None:
    spoken = [{"type": "call_tool", "tool_name": "act", "arguments": {"action": 0}}, {"type": "list_tools"}]
    with wire("CartPole-v1", num_envs=2) as served:
        served.reset(seed=0)
        for action in spoken:
            refused = served.ask("x-vector_step", actions=[{"action": 0}, action])
            assert refused["code"] == "VALIDATION_ERROR"
            assert refused["errors"][0]["loc"][-1] == "action"
