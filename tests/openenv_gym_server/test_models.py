"""Tests of ``openenv_gym_server.models``; ``test_hosting.py`` has what becomes of the classes."""

from __future__ import annotations

from openenv_gym.tools import CallToolAction, CallToolObservation
from openenv_gym_server.codec import ModelCodec
from openenv_gym_server.models import Models, codec_by_models
from openenv_gym_server.tool_codec import ToolCodec
from tests.openenv_gym_server.climbing import Climb
from tests.text_envs import Echo, Heard, Say


def test_objects_of_plain_classes_are_their_fields() -> None:
    codec = codec_by_models(Echo(), Models(Say, Heard))
    assert type(codec) is ModelCodec
    assert isinstance(codec.decode_action({"message": "hello"}), Say)


def test_an_environment_with_tools_and_a_class_of_calls_have_the_codec_of_calls() -> None:
    for env, models in ((Climb(), Models(Say, Heard)), (Echo(), Models(CallToolAction, CallToolObservation))):
        assert type(codec_by_models(env, models)) is ToolCodec
