"""``openenv/remote-v0`` and the stock package's own servers: what ``test_matrix.py`` does not ask of all pairs."""

from __future__ import annotations

import random
from typing import Any

import gymnasium
import numpy as np
import pytest
from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app

import openenv_gym
from openenv_gym.errors import (
    InvalidActionError,
    OpenEnvGymWarning,
    SettingsError,
    ValueMappingError,
)
from tests.serving import serve


class Say(Action):
    message: str


class Heard(Observation):
    text: str = ""


class Parrot(Environment[Say, Heard, State]):
    """A text environment as one writes it for the stock package: three messages an episode."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._state = State()

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Heard:
        self._state = State(episode_id=episode_id, step_count=0)
        return Heard(text=f"ready {seed} {kwargs.get('split')}", metadata={"hint": "say something"})

    def step(self, action: Say, timeout_s: float | None = None, **kwargs: Any) -> Heard:
        self._state.step_count += 1
        if action.message == "raise":
            raise ArithmeticError("parrots cannot count")
        if action.message == "limit":
            return Heard(text="late", reward=0, done=True, metadata={"truncated": True})
        return Heard(text=action.message, reward=1, done=self._state.step_count == 3, metadata={"n": 1})

    @property
    def state(self) -> State:
        return self._state


class Move(Action):
    direction: int
    speed: float = 1.0


class Place(Observation):
    position: list[float] = []


class Dice(Environment[Move, Place, State]):
    """Drops the seed it is given."""

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Place:
        return Place(position=[random.random()])

    def step(self, action: Move, timeout_s: float | None = None, **kwargs: Any) -> Place:
        return Place(position=[float("nan") if action.direction else 1.0])

    @property
    def state(self) -> State:
        return State()


@pytest.fixture(scope="module")
def parrot():
    with serve(create_fastapi_app(Parrot, Say, Heard, max_concurrent_envs=4)) as url:
        yield url


@pytest.fixture
def env(parrot):
    with gymnasium.make("openenv/remote-v0", base_url=parrot) as env:
        yield env


def test_a_stock_text_server_is_played_to_the_end(env):
    assert env.reset(seed=5) == ("ready 5 None", {"hint": "say something"})
    for last in (False, False, True):
        assert env.step("Hello, Wörld! 🙂") == ("Hello, Wörld! 🙂", 1.0, last, False, {"n": 1})
    assert env.unwrapped.state()["step_count"] == 3
    assert env.unwrapped.last_result.observation["text"] == "Hello, Wörld! 🙂"


def test_spaces_come_from_the_schema_alone(env):
    assert isinstance(env.action_space, openenv_gym.UnicodeText)
    assert isinstance(env.observation_space, openenv_gym.UnicodeText)
    assert "Hello, World!" in env.action_space


def test_options_are_the_keywords_of_a_stock_reset(env):
    assert env.reset(options={"split": "test"})[0] == "ready None test"


def test_an_end_is_truncation_where_the_metadata_says_so(env):
    env.reset()
    assert env.step("limit")[2:4] == (False, True)


def test_a_refused_action_names_the_field(parrot):
    with gymnasium.make("openenv/remote-v0", base_url=parrot, encode_action=lambda action: {"nonsense": action}) as env:
        env.reset()
        with pytest.raises(InvalidActionError) as caught:
            env.step("x")
    assert {error["loc"][-1] for error in caught.value.errors} == {"message", "nonsense"}


def test_flatten_false_keeps_the_fields(parrot):
    with gymnasium.make("openenv/remote-v0", base_url=parrot, flatten=False) as env:
        assert list(env.observation_space.spaces) == ["text"]
        env.reset(seed=1)
        assert env.step({"message": "hi"})[0] == {"text": "hi"}


def test_the_caller_may_say_how_to_read_and_write(parrot):
    with gymnasium.make(
        "openenv/remote-v0",
        base_url=parrot,
        action_space=gymnasium.spaces.Discrete(2),
        encode_action=lambda action: {"message": ["hit", "stand"][action]},
        observation_space=gymnasium.spaces.Discrete(10),
        decode_observation=lambda fields: np.int64(len(fields["text"]) % 10),
    ) as env:
        env.reset()
        assert env.step(1)[0] == 5


@pytest.mark.parametrize(
    ("keywords", "setting"),
    [
        ({"render_mode": "rgb_array"}, "render_mode"),
        ({"env_kwargs": {"size": 3}}, "env_kwargs"),
        ({"env_id": "CartPole-v1"}, "env_id"),
    ],
)
def test_what_a_stock_server_cannot_do_is_refused_by_name(parrot, keywords, setting):
    with pytest.raises(SettingsError) as caught:
        gymnasium.make("openenv/remote-v0", base_url=parrot, **keywords)
    assert caught.value.setting == setting


@pytest.fixture(scope="module")
def dice():
    with serve(create_fastapi_app(Dice, Move, Place)) as url:
        yield url


def test_a_server_that_drops_seeds_is_noticed(dice):
    with gymnasium.make("openenv/remote-v0", base_url=dice) as env:
        env.reset(seed=1)
        with pytest.warns(OpenEnvGymWarning, match="ignore seeds"):
            env.reset(seed=1)


def test_a_null_where_a_number_belongs_is_an_error_with_the_field_and_the_step(dice):
    with gymnasium.make("openenv/remote-v0", base_url=dice) as env:
        env.reset()
        env.step(0)
        with pytest.raises(ValueMappingError) as caught:
            env.step(1)
    assert "step 2" in str(caught.value)
    assert "position" in caught.value.path
