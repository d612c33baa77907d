"""What the tools of a served environment give equals what the local one gives, bit for bit, in both modes."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

import gymnasium
import pytest
from fastapi.testclient import TestClient

from openenv_gym.info import decode_info
from openenv_gym.json_text import decode_json, encode_json
from openenv_gym.spaces import codec_for
from openenv_gym_server import ServerSettings, create_gym_app
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.models import Models
from tests.exactness.compare import (
    as_the_space_holds_it,
    assert_same_reset,
    assert_same_transition,
    assert_same_value,
)
from tests.exactness.in_process import InProcessEnv
from tests.exactness.synthetic import SPACE_IDS, VALUE_IDS

GYMNASIUM_IDS = ["CartPole-v1", "Pendulum-v1", "Blackjack-v1", "FrozenLake-v1", "Taxi-v4", "LunarLander-v3"]
STEPS = 60


def no_wait(awaitable: Any) -> Any:
    raise AssertionError("nothing here is asynchronous")


class ByTools(InProcessEnv):
    """Steps that are calls of ``act``, and one of ``observe`` after each; resets as ever."""

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self.hosted = HostedEnvironment(self.environment, Models(dict, dict), no_wait)

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        obs, info = super().reset(**kwargs)
        assert_same_value(obs, self.call("observe")[0], "observe after reset")
        return obs, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        given = self.call("act", action=self._actions.encode(action))
        seen = self.call("observe")
        assert_same_value((given[0], *given[2:]), (seen[0], *seen[2:]), "observe")
        assert seen[1] is None
        return given

    def call(self, name: str, **arguments: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        sent: Any = decode_json(encode_json({"type": "call_tool", "tool_name": name, "arguments": arguments}))
        data: Any = decode_json(encode_json(self.hosted.step(sent)))
        assert data["observation"]["error"] is None
        result, metadata = data["observation"]["result"], data["metadata"]
        assert result["structured_content"] == {"result": result["data"]}
        assert data["done"] is (metadata["terminated"] or metadata["truncated"])
        reward = metadata.get("reward", data["reward"])
        return (
            self._observations.decode(result["data"]),
            None if reward is None else float(reward),
            metadata["terminated"],
            metadata["truncated"],
            decode_info(metadata["info"], metadata.get("x-gymnasium-info")),
        )


@pytest.mark.parametrize("env_id", GYMNASIUM_IDS + SPACE_IDS + VALUE_IDS)
def test_a_step_by_a_tool_equals_the_local_step(env_id: str) -> None:
    local, served = gymnasium.make(env_id, disable_env_checker=True), ByTools(env_id)
    space = local.observation_space
    local.action_space.seed(0)
    assert_same_reset(local.reset(seed=0), served.reset(seed=0), space, "reset")
    for step in range(STEPS):
        action = local.action_space.sample()
        transition = local.step(action)
        assert_same_transition(transition, served.step(action), space, f"step {step}")
        if transition[2] or transition[3]:
            assert_same_reset(local.reset(), served.reset(), space, f"reset after step {step}")
    local.close()
    served.close()


def test_steps_by_tools_and_by_actions_are_of_one_episode() -> None:
    mixed, plain = ByTools("CartPole-v1"), InProcessEnv("CartPole-v1")
    mixed.reset(seed=0)
    plain.reset(seed=0)
    for step in range(8):
        assert_same_value(mixed.step(0), plain.step(0), f"step {step} to the left")
        assert_same_value(InProcessEnv.step(mixed, 1), plain.step(1), f"step {step} to the right")
    assert mixed.environment.state["step_count"] == 16
    mixed.close()
    plain.close()


# ------------------------------------------------------------------------------------------------------- over /mcp


class Agent:
    """A session over POST /mcp, by OpenEnv's dialect."""

    def __init__(self, client: TestClient) -> None:
        self._client = client
        self._ids = itertools.count()
        self._session_id = self._asked("openenv/session/create", {})["session_id"]

    def tools(self) -> list[str]:
        return [tool["name"] for tool in self._asked("tools/list", {"session_id": self._session_id})["tools"]]

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        params = {"name": name, "arguments": arguments, "session_id": self._session_id}
        return dict(self._asked("tools/call", params))

    def failure_of(self, name: str, **arguments: Any) -> str:
        params = {"name": name, "arguments": arguments, "session_id": self._session_id}
        return str(self._answer("tools/call", params))

    def close(self) -> None:
        self._asked("openenv/session/close", {"session_id": self._session_id})

    def _asked(self, method: str, params: dict[str, Any]) -> Any:
        answer = self._answer(method, params)
        assert "result" in answer, answer
        return answer["result"]

    def _answer(self, method: str, params: dict[str, Any]) -> Any:
        request = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        return self._client.post("/mcp", json=request).json()


@contextlib.contextmanager
def agent_of(env_id: str, mode: str, **kwargs: Any) -> Iterator[Agent]:
    app = create_gym_app(env_id, settings=ServerSettings(mode=mode, seed=7), **kwargs)
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        agent = Agent(client)
        yield agent
        agent.close()


@pytest.mark.parametrize("mode", ["simulation", "production"])
@pytest.mark.parametrize("env_id", [*GYMNASIUM_IDS, "synthetic/DictNested-v0"])
def test_an_episode_of_an_agent_equals_the_local_one(env_id: str, mode: str) -> None:
    local = gymnasium.make(env_id, disable_env_checker=True)
    space, actions = codec_for(local.observation_space), codec_for(local.action_space)
    local.action_space.seed(0)
    expected: Any = local.reset(seed=7)[0]
    with agent_of(env_id, mode) as agent:
        for step in range(STEPS):
            found = space.decode(agent.call("observe")["data"])
            assert_same_value(as_the_space_holds_it(local.observation_space, expected), found, f"step {step}")
            action = local.action_space.sample()
            expected, _, terminated, truncated, _ = local.step(action)
            found = space.decode(agent.call("act", action=actions.encode(action))["data"])
            assert_same_value(as_the_space_holds_it(local.observation_space, expected), found, f"step {step}")
            if terminated or truncated:
                break
    local.close()


@pytest.mark.parametrize("mode", ["simulation", "production"])
def test_an_agent_plays_named_actions_and_sees_the_game_in_production(mode: str) -> None:
    named = {"left": 0, "down": 1, "right": 2, "up": 3}
    with agent_of("FrozenLake-v1", mode, named_actions=named, env_kwargs={"is_slippery": False}) as agent:
        looks = ["observe", "render"] if mode == "production" else ["observe"]
        assert agent.tools() == ["act", *named, *looks]
        assert [agent.call(name)["data"] for name in ("right", "right", "down", "left")] == [1, 2, 6, 5]
        if mode == "production":
            assert "the episode is over" in agent.failure_of("observe")


def test_production_says_nothing_of_reward_and_end() -> None:
    with agent_of("FrozenLake-v1", "production", env_kwargs={"is_slippery": False, "desc": ["SG", "HF"]}) as agent:
        text = str(agent.call("act", action=2))
        assert not [word for word in ("reward", "terminated", "truncated", "done", "info") if word in text]
