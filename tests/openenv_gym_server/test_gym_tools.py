"""The tools of a Gymnasium environment, called as actions of its step."""

import base64
import io
import math
import re
from typing import ClassVar

import gymnasium
import jsonschema
import numpy as np
import pytest
from gymnasium import spaces
from PIL import Image

from openenv_gym.errors import SettingsError
from openenv_gym.tools import CallToolAction, ListToolsAction, ToolErrorType
from openenv_gym_server.gym_environment import GymEnvironment
from openenv_gym_server.gym_tools import MAX_FRAMES
from openenv_gym_server.tool_results import RAISED
from tests.exactness.synthetic import SPACES, EverySpace, Synthetic


class Scripted(Synthetic):
    """Gives what it is told."""

    def __init__(self, obs=0.5, reward=1.0, flags=(False, False), info=None, error=None):
        self.given = np.full(2, obs, np.float32) if isinstance(obs, float) else obs
        self.rest = reward, *flags, info or {}
        self.error = error

    def step(self, action):
        if self.error is not None:
            raise self.error
        return self.given, *self.rest


class Drawing(Synthetic):
    """Renders what it is told."""

    metadata: ClassVar[dict] = {"render_modes": ["rgb_array", "ansi", "human", "rgb_array_list"]}

    def __init__(self, render_mode=None, drawn=None):
        self.render_mode, self.drawn = render_mode, drawn

    def render(self):
        if isinstance(self.drawn, Exception):
            raise self.drawn
        return self.drawn


class Camera(Synthetic):
    """Its observations are pictures."""

    observation_space = spaces.Box(0, 255, (8, 9, 3), np.uint8)

    def observe(self):
        return self.np_random.integers(0, 256, (8, 9, 3), np.uint8)


@pytest.fixture
def make():
    made = []

    def begun(source, *, named=None, reset=True, **kwargs):
        environment = GymEnvironment(source, **kwargs)
        made.append(environment)
        environment.name_actions(named or {})
        if reset:
            environment.reset(seed=3)
        return environment

    yield begun
    for environment in made:
        environment.close()


def call(environment, name, **arguments):
    return environment.step(CallToolAction(tool_name=name, arguments=arguments))


def tools_of(environment):
    return {tool.name: tool for tool in environment.step(ListToolsAction()).tools}


def pixels_of(item):
    assert (item["type"], item["mimeType"]) == ("image", "image/png")
    with Image.open(io.BytesIO(base64.b64decode(item["data"], validate=True))) as image:
        return np.asarray(image)


# ------------------------------------------------------------------------------------------------------- what there is


def test_an_environment_without_pictures_has_two_tools(make):
    assert list(tools_of(make("CartPole-v1"))) == ["act", "observe"]


@pytest.mark.parametrize(("mode", "there"), [("rgb_array", True), ("ansi", True), ("human", False), (None, False)])
def test_render_is_there_where_there_is_something_to_send(make, mode, there):
    assert ("render" in tools_of(make(Drawing, render_mode=mode))) is there


def test_named_actions_are_tools_without_arguments(make):
    tools = tools_of(make("FrozenLake-v1", named={"left": 0, "up": np.int64(3)}))
    assert list(tools) == ["act", "left", "up", "observe"]
    assert tools["up"].input_schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert "(3)" in tools["up"].description


def test_tools_say_whether_they_play_or_look(make):
    tools = tools_of(make("FrozenLake-v1", named={"left": 0}, render_mode="ansi"))
    assert {name: tool.annotations["readOnlyHint"] for name, tool in tools.items()} == {
        "act": False,
        "left": False,
        "observe": True,
        "render": True,
    }
    assert {name: tool.title for name, tool in tools.items()}["act"] == "Act"


@pytest.mark.parametrize("name", SPACES)
def test_arguments_and_results_are_as_the_schemas_have_them(make, name):
    environment = make(EverySpace, space=name)
    tool = tools_of(environment)["act"]
    action = environment.codec._action.encode(environment.gymnasium_env.action_space.sample())
    jsonschema.validate({"action": action}, tool.input_schema)
    observation = call(environment, "act", action=action)
    assert observation.error is None
    jsonschema.validate(observation.result["structured_content"], tool.output_schema)


# ------------------------------------------------------------------------------------------------------------- calls


def test_act_steps_and_gives_the_next_observation(make):
    environment = make("CartPole-v1")
    local = gymnasium.make("CartPole-v1")
    local.reset(seed=3)
    expected = local.step(1)[0].tolist()
    local.close()
    observation = call(environment, "act", action=1)
    assert observation.result["data"] == expected
    assert observation.result["structured_content"] == {"result": expected}
    assert (observation.reward, observation.done) == (1.0, False)
    assert observation.metadata == {"terminated": False, "truncated": False, "info": {}}
    assert environment.state["step_count"] == 1


def test_a_named_action_is_that_action(make):
    environment = make("FrozenLake-v1", named={"right": 2}, is_slippery=False)
    assert call(environment, "right").result["data"] == 1
    assert call(environment, "act", action=2).result["data"] == 2


def test_observe_gives_the_last_observation_and_takes_no_step(make):
    environment = make("FrozenLake-v1", is_slippery=False)
    assert call(environment, "observe").result["data"] == 0
    call(environment, "act", action=2)
    again = call(environment, "observe")
    assert (again.result["data"], again.reward) == (1, None)
    assert environment.state["step_count"] == 1
    assert again.metadata["info"] == {"prob": 1}


def test_what_an_action_of_the_space_gave_is_observed_too(make):
    environment = make("CartPole-v1")
    obs = environment.step(1).obs
    assert call(environment, "observe").result["data"] == obs.tolist()


@pytest.mark.parametrize("flags", [(True, False), (False, True), (True, True)])
def test_the_end_of_the_episode_is_told_by_every_call_from_then_on(make, flags):
    environment = make(lambda: Scripted(flags=flags, info={"why": "it ended"}))
    expected = {"terminated": flags[0], "truncated": flags[1]}
    ending = call(environment, "act", action=0)
    assert (ending.done, ending.metadata) == (True, {**expected, "info": {"why": "it ended"}})
    for later in (call(environment, "observe"), call(environment, "act", action=9), call(environment, "nothing")):
        assert later.done
        assert later.metadata | expected == later.metadata
    environment.reset()
    assert not call(environment, "observe").done


@pytest.mark.parametrize(("reward", "spelled"), [(math.nan, "NaN"), (-math.inf, "-Infinity")])
def test_a_reward_that_is_not_finite_is_a_word_in_the_metadata(make, reward, spelled):
    observation = call(make(lambda: Scripted(reward=reward)), "act", action=0)
    assert (observation.reward, observation.metadata["reward"]) == (None, spelled)


def test_a_subclass_sees_the_reward_of_a_call(make):
    class Shaped(GymEnvironment):
        def step(self, action, timeout_s=None, **kwargs):
            observation = super().step(action, timeout_s, **kwargs)
            if not isinstance(action, ListToolsAction):
                observation.reward *= 10
            return observation

    environment = Shaped("CartPole-v1")
    environment.reset(seed=0)
    observation = call(environment, "act", action=1)
    assert (observation.reward, environment.codec.encode_observation(observation).reward) == (10.0, 10.0)
    environment.close()


# ---------------------------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("act", {}, "action: Field required"),
        ("act", {"action": 2}, "action: "),
        ("act", {"action": "1"}, "expected an integer"),
        ("act", {"action": 1, "speed": 2}, "speed: Extra inputs"),
        ("act", {"action": 1, "metadata": {}}, 'the argument "action" alone'),
        ("left", {"action": 1}, r"expected no arguments, got \['action'\]"),
        ("observe", {"closely": True}, "expected no arguments"),
    ],
)
def test_bad_arguments_are_told_and_nothing_is_played(make, name, arguments, message):
    environment = make("CartPole-v1", named={"left": 0})
    observation = call(environment, name, **arguments)
    assert observation.error.error_type is ToolErrorType.INVALID_ARGS
    assert re.search(message, observation.error.message)
    assert (observation.result, observation.reward, observation.done) == (None, None, False)
    assert environment.state["step_count"] == 0


def test_an_unknown_tool_is_told_with_those_there_are(make):
    error = call(make("CartPole-v1", named={"left": 0}), "right").error
    assert error.error_type is ToolErrorType.TOOL_NOT_FOUND
    assert "['act', 'left', 'observe']" in error.message


def test_a_rendering_that_is_not_there_is_told_with_how_to_have_it(make):
    error = call(make("CartPole-v1"), "render").error
    assert error.error_type is ToolErrorType.TOOL_NOT_FOUND
    assert "--env-kwarg render_mode=rgb_array" in error.message


def test_what_the_environment_raises_is_the_failure_of_the_tool(make):
    error = call(make(lambda: Scripted(error=OSError("no arm"))), "act", action=0).error
    assert error.error_type is ToolErrorType.EXECUTION_ERROR
    assert error.message == "Error calling tool 'act': no arm"


def test_a_failure_says_whether_it_was_the_environment_that_raised(make):
    environment = make(lambda: Scripted(error=OSError("no arm")))
    assert call(environment, "act", action=0).metadata[RAISED] is True
    for observation in (
        call(environment, "act", action=9),
        call(environment, "nothing"),
        call(make(lambda: Scripted(reward="much")), "act", action=0),
    ):
        assert observation.error is not None
        assert RAISED not in observation.metadata


def test_before_an_episode_there_is_nothing_to_observe_and_nothing_to_play(make):
    environment = make("CartPole-v1", reset=False)
    for observation in (call(environment, "observe"), call(environment, "act", action=1)):
        assert observation.error.error_type is ToolErrorType.EXECUTION_ERROR
        assert "reset" in observation.error.message
        assert observation.metadata | {"terminated": False, "truncated": False, "info": {}} == observation.metadata


def test_an_observation_that_cannot_be_sent_is_lost_but_not_its_reward(make):
    environment = make(lambda: Scripted(obs=np.zeros(3, np.float32), reward=2.0, flags=(True, False)))
    observation = call(environment, "act", action=0)
    assert observation.error.error_type is ToolErrorType.EXECUTION_ERROR
    assert "has run" in observation.error.message
    assert (observation.reward, observation.done) == (2.0, True)
    assert observation.metadata["terminated"] is True


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"reset": 0}, "reset"),
        ({"two words": 0}, "two words"),
        ({"act": 0}, "which is a tool"),
        ({"left": 2}, "left"),
        ({"left": "0"}, "left"),
        ({0: 0}, "name"),
    ],
)
def test_a_name_or_action_that_cannot_be_is_refused(make, named, said):
    with pytest.raises(SettingsError, match=said) as caught:
        make("CartPole-v1", named=named)
    assert caught.value.setting == "named_actions"


# ----------------------------------------------------------------------------------------------------------- pictures


def test_a_frame_is_an_image(make):
    frame = np.random.default_rng(0).integers(0, 256, (6, 5, 3), np.uint8)
    result = call(make(Drawing, render_mode="rgb_array", drawn=frame), "render").result
    assert np.array_equal(pixels_of(result["content"][0]), frame)
    assert (result["structured_content"], result["data"]) == (None, result["content"][0])


def test_a_real_environment_is_drawn(make):
    environment = make("FrozenLake-v1", render_mode="rgb_array")
    item = call(environment, "render").result["content"][0]
    assert np.array_equal(pixels_of(item), environment.render())


def test_of_many_frames_the_last_are_shown(make):
    frames = [np.full((2, 2, 3), number, np.uint8) for number in range(MAX_FRAMES + 3)]
    result = call(make(lambda render_mode: Drawing("rgb_array_list", frames), render_mode="rgb_array_list"), "render")
    shown = result.result["content"]
    assert [int(pixels_of(item)[0, 0, 0]) for item in shown] == list(range(3, MAX_FRAMES + 3))
    assert result.result["data"] == shown


def test_a_drawing_of_letters_is_a_text(make):
    result = call(make("FrozenLake-v1", render_mode="ansi"), "render").result
    assert result["content"][0]["text"] == result["data"]
    assert "F" in result["data"]


def test_a_rendering_that_is_no_picture_is_its_json(make):
    assert call(make(Drawing, render_mode="rgb_array", drawn=np.zeros(2)), "render").result["data"] == [0.0, 0.0]


def test_a_rendering_that_fails_is_the_failure_of_the_tool(make):
    error = call(make(Drawing, render_mode="rgb_array", drawn=RuntimeError("no light")), "render").error
    assert error.error_type is ToolErrorType.EXECUTION_ERROR
    assert "no light" in error.message


def test_an_observation_that_is_a_picture_is_shown_as_one_and_told_in_numbers(make):
    environment = make(Camera)
    result = call(environment, "act", action=0).result
    assert np.array_equal(pixels_of(result["content"][0]), environment.last.obs)
    assert result["structured_content"]["result"] == environment.last.obs.tolist()
