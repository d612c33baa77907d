"""Gymnasium environments behind OpenEnv's reset, step and state."""

import math
from decimal import Decimal

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError, SettingsError, SpaceMappingError
from openenv_gym.tools import CallToolAction, ListToolsAction
from openenv_gym_server.gym_environment import GymEnvironment, GymObservation, InlineGymEnvironment
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.models import Models
from tests.exactness.synthetic import OldestApi, SeedlessApi, Synthetic


class Scripted(Synthetic):
    """Gives one reward, flags and info as it is told."""

    def __init__(self, reward=1.0, flags=(False, False), info=None):
        self.given = reward, *flags, {} if info is None else info

    def step(self, action):
        return self.observation_space.sample(), *self.given


@pytest.fixture
def cartpole():
    environment = GymEnvironment("CartPole-v1")
    yield environment
    environment.close()


def test_reset_names_the_episode_and_counts_from_zero(cartpole):
    cartpole.reset(seed=0, episode_id="one")
    assert cartpole.state == {"episode_id": "one", "step_count": 0, "env_id": "CartPole-v1"}
    cartpole.step(1)
    cartpole.step(0)
    assert cartpole.state["step_count"] == 2
    cartpole.reset()
    assert cartpole.state["step_count"] == 0
    assert isinstance(cartpole.state["episode_id"], str)
    assert cartpole.state["episode_id"] != "one"


def test_before_the_first_reset_there_is_no_episode(cartpole):
    assert cartpole.state == {"episode_id": None, "step_count": 0, "env_id": "CartPole-v1"}


def test_reset_has_no_reward_and_step_has_one(cartpole):
    first = cartpole.reset(seed=0)
    assert isinstance(first, GymObservation)
    assert (first.reward, first.terminated, first.truncated, first.info) == (None, False, False, {})
    assert cartpole.step(1).reward == 1.0


def test_seed_and_options_reach_the_environment(cartpole):
    again = cartpole.reset(seed=7, options={"low": -0.1, "high": 0.1}).obs
    local = gymnasium.make("CartPole-v1")
    expected, _ = local.reset(seed=7, options={"low": -0.1, "high": 0.1})
    assert again.tolist() == expected.tolist()
    local.close()


def test_keywords_gymnasium_does_not_have_are_named_once(cartpole):
    (warning,) = cartpole.reset(split="train").warnings
    assert "'split'" in warning
    assert cartpole.reset(split="train").warnings == ()


def test_a_time_limit_truncates():
    environment = GymEnvironment("MountainCar-v0", max_episode_steps=2)
    environment.reset(seed=0)
    assert not environment.step(0).truncated
    last = environment.step(0)
    assert (last.terminated, last.truncated) == (False, True)
    environment.close()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (2, 2.0),
        (True, 1.0),
        (None, 0.0),
        (np.float64(0.1), 0.1),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.array(0.5), 0.5),
        (np.array([0.5], np.float16), 0.5),
        (np.array([7]), 7.0),
        (np.bool_(True), 1.0),
        (Decimal("0.25"), 0.25),
        (math.inf, math.inf),
    ],
)
def test_every_scalar_reward_becomes_a_float(given, expected):
    reward = GymEnvironment(Scripted, reward=given).step(0).reward
    assert type(reward) is float
    assert reward == expected


@pytest.mark.parametrize(
    "given", ["1.0", b"1", [1.0], np.array([1.0, 2.0]), np.array([[1.0]]), np.array(["1"]), 1j, {}, 10**400]
)
def test_any_other_reward_is_an_error_that_names_its_type(given):
    environment = GymEnvironment(Scripted, reward=given)
    with pytest.raises(EnvironmentExecutionError, match=type(given).__name__) as caught:
        environment.step(0)
    assert caught.value.code == "EXECUTION_ERROR"
    assert "already advanced" in caught.value.message


def test_numpy_flags_become_bools():
    observation = GymEnvironment(Scripted, flags=(np.bool_(True), np.array(False))).step(0)
    assert observation.terminated is True
    assert observation.truncated is False


@pytest.mark.parametrize("flag", [1, None, "yes", np.array([True])])
@pytest.mark.parametrize("place", [0, 1])
def test_a_flag_that_is_no_bool_is_an_error(flag, place):
    flags = (flag, False) if place == 0 else (False, flag)
    with pytest.raises(EnvironmentExecutionError, match=("terminated", "truncated")[place]):
        GymEnvironment(Scripted, flags=flags).step(0)


def test_an_info_that_is_no_dict_is_an_error():
    with pytest.raises(EnvironmentExecutionError, match="info"):
        GymEnvironment(Scripted, info=[1]).step(0)


def test_old_environments_are_served_as_they_are():
    environment = GymEnvironment(OldestApi, limit=1)
    assert environment.env_id == "OldestApi"
    first = environment.reset(seed=3)
    assert (first.obs.shape, first.info) == ((2,), {})
    last = environment.step(0)
    assert (last.terminated, last.truncated) == (False, True)
    assert last.info == {"action": 0, "TimeLimit.truncated": True}


def test_a_seed_that_is_not_taken_is_said_once():
    environment = GymEnvironment(SeedlessApi)
    assert len(environment.reset(seed=3).warnings) == 1
    assert environment.reset(seed=4).warnings == ()


def test_a_modern_class_with_old_results_is_understood():
    class FourValues(Synthetic):
        def reset(self, *, seed=None, options=None):
            return self.observation_space.sample()

        def step(self, action):
            return self.observation_space.sample(), 1.0, True, {"TimeLimit.truncated": True}

    environment = GymEnvironment(FourValues)
    assert environment.reset(seed=0).info == {}
    assert environment.step(0).truncated is True


def test_a_cast_of_the_observation_is_noted_once_whether_reset_or_step_shows_it():
    class WideSteps(Synthetic):
        def step(self, action):
            return np.zeros(2, np.float64), 0.0, False, False, {}

    environment = GymEnvironment(WideSteps)

    def warnings_of(observation):
        return environment.codec.encode_observation(observation).metadata.get("x-warnings", [])

    assert warnings_of(environment.reset()) == []
    (warning,) = warnings_of(environment.step(0))
    assert "float64" in warning
    environment.reset()
    assert warnings_of(environment.step(0)) == []


def test_metadata_has_what_the_registry_knows():
    environment = GymEnvironment("CartPole-v1", render_mode="rgb_array")
    metadata = environment.get_metadata()
    assert metadata.name == "CartPole-v1"
    assert metadata.description
    assert metadata.gymnasium == {
        "env_id": "CartPole-v1",
        "render_modes": ["human", "rgb_array"],
        "render_fps": 50,
        "reward_threshold": 475.0,
        "nondeterministic": False,
        "max_episode_steps": 500,
        "autoreset_modes": ["NextStep", "SameStep", "Disabled"],
        "shards": None,
    }
    assert environment.render_mode == "rgb_array"
    environment.close()


def test_the_time_limit_is_found_under_other_wrappers():
    environment = GymEnvironment("CartPole-v1", render_mode="rgb_array_list", max_episode_steps=9)
    assert environment.get_metadata().gymnasium["max_episode_steps"] == 9
    environment.close()


def test_metadata_of_a_factory_is_named_by_its_class():
    block = GymEnvironment(Synthetic).get_metadata().gymnasium
    assert (block["env_id"], block["max_episode_steps"], block["render_modes"]) == ("Synthetic", None, [])


def test_arguments_that_cannot_be_copied_do_not_hide_the_spec():
    import threading

    class Locked(Synthetic):
        def __init__(self, lock):
            self.lock = lock

    spec = gymnasium.envs.registration.EnvSpec("synthetic/Locked-v0", entry_point=Locked, max_episode_steps=5)
    environment = GymEnvironment(spec, lock=threading.Lock())
    assert environment.env_id == "synthetic/Locked-v0"
    assert environment.get_metadata().gymnasium["max_episode_steps"] == 5


def test_render_gives_what_the_environment_gives():
    environment = GymEnvironment("FrozenLake-v1", render_mode="ansi", is_slippery=False)
    environment.reset(seed=0)
    assert isinstance(environment.render(), str)
    environment.close()


def test_attributes_are_found_through_the_wrappers(cartpole):
    assert cartpole.remote_target.gravity == 9.8
    with pytest.raises(AttributeError):
        _ = cartpole.remote_target.nothing
    assert {"gravity", "spec"} <= set(dir(cartpole.remote_target))


def test_a_misspelt_attribute_is_told_by_the_environments_own_name_with_the_nearest(cartpole):
    hosted = HostedEnvironment(cartpole, Models(dict, dict), lambda awaitable: None)
    with pytest.raises(InvalidActionError, match=r"CartPole-v1 has no attribute 'gravty'; did you mean gravity\?"):
        hosted.remote.attribute("gravty", "all")


def test_close_is_called_once():
    closed = []

    class Closing(Synthetic):
        def close(self):
            closed.append(True)

    environment = GymEnvironment(Closing)
    environment.close()
    environment.close()
    assert closed == [True]


def test_a_space_without_a_json_form_is_an_error_and_closes_the_environment():
    closed = []

    class Odd(Synthetic):
        observation_space = type("Private", (spaces.Space,), {})()

        def close(self):
            closed.append(True)

    with pytest.raises(SpaceMappingError, match="Private"):
        GymEnvironment(Odd)
    assert closed == [True]


def test_only_the_inline_class_is_inline():
    assert not GymEnvironment.INLINE
    assert InlineGymEnvironment.INLINE
    assert InlineGymEnvironment.SUPPORTS_CONCURRENT_SESSIONS


@pytest.mark.parametrize(
    ("doc", "said"),
    [
        (
            "\n    ## Description\n    A cart that\n    rolls. It has a pole.\n\n    ## More",
            "A cart that rolls.",
        ),
        ("One line without an end", "One line without an end"),
        ("A first paragraph,\nof two lines\n\nand another", "A first paragraph, of two lines"),
        ("Described e.g. by Barto et al. in 1983. Then more.", "Described e.g. by Barto et al. in 1983."),
        ("# Only a heading", "Told, a Gymnasium environment"),
    ],
)
def test_the_description_is_a_whole_sentence_or_paragraph(doc, said):
    environment = GymEnvironment(type("Told", (Synthetic,), {"__doc__": doc}))
    assert environment.get_metadata().description == said
    environment.close()


def test_an_attribute_of_a_wrapped_environment_is_set_where_it_is() -> None:
    environment = GymEnvironment("CartPole-v1")
    environment.remote_target.gravity = 1.5  # type: ignore[attr-defined]
    assert environment.gymnasium_env.unwrapped.gravity == 1.5  # type: ignore[attr-defined]
    environment.close()


def test_tools_are_listed_and_called_by_step(cartpole):
    cartpole.reset(seed=0)
    assert [tool.name for tool in cartpole.step(ListToolsAction()).tools] == ["act", "observe"]
    assert cartpole.step(CallToolAction(tool_name="act", arguments={"action": 1}), 5.0).reward == 1.0
    assert cartpole.state["step_count"] == 1


def test_the_last_observation_is_that_of_the_gymnasium_environment(cartpole):
    assert cartpole.last is None
    first = cartpole.reset(seed=0)
    assert cartpole.last is first
    stepped = cartpole.step(1)
    cartpole.step(CallToolAction(tool_name="observe"))
    assert cartpole.last is stepped


def test_actions_with_a_name_are_tools(cartpole):
    cartpole.name_actions({"left": 0, "right": np.int64(1)})
    cartpole.reset(seed=0)
    names = [tool.name for tool in cartpole.step(ListToolsAction()).tools]
    assert names == ["act", "left", "right", "observe"]
    with pytest.raises(SettingsError):
        cartpole.name_actions({"up": 2})


def test_the_class_inside_is_told(cartpole):
    assert cartpole.kind is type(cartpole.gymnasium_env.unwrapped)


def test_the_server_knows_that_there_are_tools(cartpole):
    hosted = HostedEnvironment(cartpole, Models(dict, dict), lambda awaitable: awaitable)
    assert hosted.offers_tools
    hosted.reset({"seed": 0})
    assert hosted.step({"type": "list_tools"}).observation["tools"][0]["name"] == "act"
    assert hosted.steps == 0
    outcome = hosted.step({"type": "call_tool", "tool_name": "act", "arguments": {"action": 1}})
    assert (outcome.reward, outcome.done, hosted.steps) == (1.0, False, 1)
