"""Tests of ``openenv_gym_server.vector_making``."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from starlette.testclient import TestClient

from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError
from openenv_gym.messages import SUBPROTOCOL, OpenSettings
from openenv_gym_server.gym_app import GymFactory, create_gym_app
from openenv_gym_server.gym_environment import GymEnvironment
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.models import Models
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.vector_making import MAX_NUM_ENVS, VectorSettings
from tests.openenv_gym_server.rendering import no_wait
from tests.openenv_gym_server.vectors import Moody, wire
from tests.sockets import ask


def host(env: GymEnvironment) -> HostedEnvironment:
    return HostedEnvironment(env, Models(dict, dict), no_wait)


def made(source: Any, vectorization: str = "sync", num_envs: int = 3, **kwargs: Any) -> Any:
    return GymFactory(source, kwargs).make_vector(VectorSettings(num_envs, None, vectorization, None), host)


class Made(Moody):
    """Remembers all that were made; from the third on another, or none."""

    every: ClassVar[list[Made]] = []

    def __init__(self, third: str = "the same") -> None:
        super().__init__()
        self.every.append(self)
        if len(self.every) == 3 and third == "none":
            raise OSError("no more of these")
        if len(self.every) == 3 and third == "another":
            self.action_space = gymnasium.spaces.Discrete(2)


@pytest.fixture(autouse=True)
def none_made() -> None:
    Made.every = []


def test_the_settings_are_those_of_the_opening() -> None:
    opening = OpenSettings(num_envs=4, autoreset_mode="SameStep", vectorization="async", max_episode_steps=9)
    settings = VectorSettings.of(opening)
    assert settings == VectorSettings(4, AutoresetMode.SAME_STEP, "async", 9)
    plain = VectorSettings.of(OpenSettings(num_envs=2))
    assert (plain.autoreset_mode, plain.mode, plain.vectorization) == (None, AutoresetMode.NEXT_STEP, "sync")


@pytest.mark.parametrize(
    ("name", "number"), [("num_envs", 0), ("num_envs", MAX_NUM_ENVS + 1), ("max_episode_steps", 0)]
)
def test_a_number_out_of_its_range_is_named(name: str, number: int) -> None:
    with pytest.raises(InvalidActionError) as caught:
        VectorSettings.of(OpenSettings(**{name: number}))
    assert caught.value.errors is not None
    assert caught.value.errors[0]["loc"] == ["data", name]


def test_as_many_are_made_as_asked_for_and_all_are_closed() -> None:
    vector = made(Made)
    assert (vector.num_envs, len(Made.every), vector.inline) == (3, 3, False)
    vector.close()
    assert [env.closed for env in Made.every] == [1, 1, 1]
    assert made("CartPole-v1").inline
    assert made("CartPole-v1", "vector_entry_point").inline


@pytest.mark.parametrize(("third", "error"), [("none", OSError), ("another", EnvironmentExecutionError)])
def test_those_that_were_made_are_closed_where_one_cannot_be(third: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        made(Made, third=third)
    assert [env.closed for env in Made.every] == [1, 1, 0 if third == "none" else 1]


def test_an_environment_in_a_process_needs_no_registry_of_its_own() -> None:
    name = "ServedHere-v0"
    gymnasium.register(name, Moody)
    try:
        with wire(name, vectorization="async", num_envs=2) as served:
            observations, _ = served.reset(seed=1)
            assert observations["z"].shape == (2, 2)
    finally:
        del gymnasium.registry[name]


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_one_that_cannot_be_made_is_told_as_a_single_one_is(vectorization: str) -> None:
    app = create_gym_app("served/Moody-v0", settings=ServerSettings(allowed_env_kwargs="all"))
    with TestClient(app) as client, client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket:
        data = {"num_envs": 2, "vectorization": vectorization, "env_kwargs": {"broken": True}}
        failed = ask(socket, {"type": "x-open", "data": data})["data"]
        assert failed["code"] == "FACTORY_ERROR"
        assert "no such device" in failed["message"]


def refused(source: Any, asked: AutoresetMode | None = None, **kwargs: Any) -> tuple[str, str]:
    settings = VectorSettings(3, asked, "vector_entry_point", None)
    with pytest.raises(InvalidActionError) as caught:
        GymFactory(source, kwargs).make_vector(settings, host)
    assert caught.value.errors is not None
    return str(caught.value.errors[0]["loc"][-1]), str(caught.value)


def test_an_entry_point_that_there_is_not_is_refused() -> None:
    assert refused("FrozenLake-v1")[0] == "vectorization"
    assert refused(Moody)[0] == "vectorization"
    assert refused("NoSuch-v0")[0] == "vectorization"


def test_an_entry_point_is_refused_a_mode_that_is_not_its_own() -> None:
    for mode in (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED):
        name, message = refused("CartPole-v1", mode)
        assert name == "autoreset_mode"
        assert '"NextStep" alone' in message
    name, message = refused("served/Moody-v0", mode="")
    assert name == "vectorization"
    assert "does not say its autoreset mode" in message


def test_the_lower_of_two_limits_of_steps_is_an_entry_points() -> None:
    for asked, limit in ((None, 50), (9, 9), (99, 50)):
        settings = VectorSettings(2, None, "vector_entry_point", asked)
        vector: Any = GymFactory("served/Moody-v0").make_vector(settings, host)
        assert vector.metadata()["gymnasium"]["max_episode_steps"] == limit
        vector.close()


def test_an_old_environment_makes_a_vector_too() -> None:
    class Old:
        observation_space = action_space = gymnasium.spaces.Discrete(3)

        def reset(self) -> int:
            return 0

        def step(self, action: Any) -> Any:
            return action, 1, action == 2, {}

    with wire(Old) as served:
        observations, _ = served.reset(seed=1)
        assert observations.tolist() == [0, 0, 0]
        assert served.step(np.array([0, 1, 2]))[2].tolist() == [False, False, True]
