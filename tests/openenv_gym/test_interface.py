"""What a remote environment looks like from here: documents in, Spaces and conversions out."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

from openenv_gym.errors import SettingsError, SpaceMappingError, UnreachableError, ValueMappingError
from openenv_gym.interface import Interface, SpaceOverrides, fetch_documents
from openenv_gym.messages import Opened
from openenv_gym.spaces import UnicodeText, space_to_json
from openenv_gym.transports.base import ConnectionSettings

STRING, NUMBER = {"type": "string"}, {"type": "number"}


def document(*required, **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


def interface(schema, metadata=None, *, extended=False, **overrides):
    return Interface(schema, metadata or {}, SpaceOverrides(**overrides), extended=extended)


def opened(schema, metadata=None):
    return Opened(session_id="s", schema=schema, metadata=metadata or {})


ONE_FIELD = {"action": document("say", say=STRING), "observation": document("text", text=STRING)}
TWO_FIELDS = {
    "action": document("x", "y", x=NUMBER, y=NUMBER),
    "observation": document("a", "b", a=NUMBER, b=NUMBER),
}


def test_a_single_field_is_flattened_both_ways():
    made = interface(ONE_FIELD)
    assert isinstance(made.action_space, UnicodeText)
    assert made.encode_action("hi") == {"say": "hi"}
    assert made.decode_observation({"text": "ho", "metadata": {}}) == "ho"


def test_several_fields_are_a_dict():
    made = interface(TWO_FIELDS)
    assert list(made.action_space.spaces) == ["x", "y"]
    assert made.encode_action({"y": 2.0, "x": np.float64(1)}) == {"x": 1.0, "y": 2.0}


def test_a_space_of_the_callers_replaces_that_of_the_field():
    made = interface(ONE_FIELD, action_space=UnicodeText(5), observation_space=UnicodeText(7))
    assert (made.action_space, made.observation_space) == (UnicodeText(5), UnicodeText(7))
    assert made.encode_action("hi") == {"say": "hi"}
    assert made.decode_observation({"text": "ho", "metadata": {}}) == "ho"


def test_a_dict_of_the_callers_replaces_several_fields():
    space = Dict({"x": Discrete(3), "y": Discrete(3)})
    seen = Dict({"a": Box(0, 1, (), np.float32)})
    made = interface(TWO_FIELDS, action_space=space, observation_space=seen)
    assert made.encode_action({"x": 1, "y": 2}) == {"x": 1, "y": 2}
    assert made.decode_observation({"a": 0.5, "b": 1.0})["a"].dtype == np.float32


@pytest.mark.parametrize("setting", ["action_space", "observation_space"])
def test_a_space_without_a_conversion_for_several_fields_is_refused(setting):
    with pytest.raises(SettingsError) as caught:
        interface(TWO_FIELDS, **{setting: Discrete(2)})
    assert caught.value.setting == setting


def test_the_callers_conversions_are_used_as_they_are():
    made = interface(
        TWO_FIELDS, encode_action=lambda action: {"x": action, "y": 0}, decode_observation=lambda fields: fields["a"]
    )
    assert made.encode_action(3) == {"x": 3, "y": 0}
    assert made.decode_observation({"a": 4}) == 4
    assert isinstance(made.action_space, Dict)


def test_with_space_and_conversion_the_schema_need_not_be_there():
    made = interface(
        {},
        action_space=Discrete(2),
        encode_action=lambda action: {"x": int(action)},
        observation_space=Discrete(3),
        decode_observation=lambda fields: np.int64(fields["n"]),
    )
    assert made.encode_action(1) == {"x": 1}
    assert made.decode_observation({"n": 2}) in made.observation_space


def test_a_schema_that_is_missing_is_an_error_with_its_path():
    with pytest.raises(SpaceMappingError) as caught:
        interface({"action": document(), "observation": None} | {"action": ONE_FIELD["action"]})
    assert caught.value.path == "$.observation"


def test_a_reset_that_answers_as_step_does_is_one_space():
    made = interface(ONE_FIELD | {"reset_observation": ONE_FIELD["observation"]})
    assert isinstance(made.observation_space, UnicodeText)


def test_a_reset_that_answers_otherwise_has_to_be_read_by_the_caller():
    with pytest.raises(SpaceMappingError) as caught:
        interface(ONE_FIELD | {"reset_observation": TWO_FIELDS["observation"]})
    assert caught.value.path == "$.reset_observation"


METADATA = {"name": "Pole", "gymnasium": {"env_id": "Pole-v1", "render_modes": ["rgb_array", "ansi"], "render_fps": 30}}


def test_render_modes_and_the_name_come_from_the_metadata():
    made = interface(ONE_FIELD, METADATA)
    assert made.metadata == {"render_modes": ["rgb_array", "ansi"], "render_fps": 30}
    assert made.name == "Pole"
    assert interface(ONE_FIELD).metadata == {"render_modes": []}


@pytest.mark.parametrize("env_id", [None, "Pole-v1", "Pole", "package:Pole-v1"])
def test_the_served_id_satisfies_every_name_of_it(env_id):
    interface(ONE_FIELD, METADATA).check_env_id(env_id, "http://host")


@pytest.mark.parametrize("metadata", [METADATA, {"name": "parrot"}])
def test_another_id_is_refused(metadata):
    with pytest.raises(SettingsError) as caught:
        interface(ONE_FIELD, metadata).check_env_id("Acrobot-v1", "http://host")
    assert caught.value.setting == "env_id"


@pytest.mark.parametrize("mode", [None, "rgb_array", "ansi", "rgb_array_list", "human"])
def test_modes_the_environment_has_are_accepted(mode):
    interface(ONE_FIELD, METADATA, extended=True).check_render_mode(mode)


@pytest.mark.parametrize(("mode", "extended"), [("depth_array", True), ("rgb_array", False)])
def test_modes_it_lacks_are_refused(mode, extended):
    with pytest.raises(SettingsError) as caught:
        interface(ONE_FIELD, METADATA, extended=extended).check_render_mode(mode)
    assert caught.value.setting == "render_mode"


def test_options_are_nested_for_gymnasium_and_keywords_for_others():
    options = {"low": 1, "pair": (1, 2)}
    exact = {"low": 1, "pair": {"$": "tuple", "items": [1, 2]}}
    assert interface(ONE_FIELD, extended=True).reset_options(options) == exact
    assert interface(ONE_FIELD, METADATA, extended=True).reset_options(options) == {"options": exact}


def test_a_server_that_reads_plain_json_gets_plain_options():
    options = {"pair": (1, 2), "array": np.arange(2)}
    assert interface(ONE_FIELD).reset_options(options) == {"pair": [1, 2], "array": [0, 1]}
    with pytest.raises(ValueMappingError) as caught:
        interface(ONE_FIELD).reset_options({"engine": object()})
    assert caught.value.path == "$.engine"


@pytest.mark.parametrize("gymnasium_block", ["yes", 5, {"render_modes": 5, "render_fps": "fast"}, [], None])
def test_metadata_of_any_shape_is_read_as_far_as_it_makes_sense(gymnasium_block):
    made = interface(ONE_FIELD, {"name": None, "gymnasium": gymnasium_block})
    assert (made.metadata, made.name) == ({"render_modes": []}, "environment")


def test_what_the_server_knows_of_the_spec_is_read():
    known = {"reward_threshold": 475.0, "max_episode_steps": 500, "nondeterministic": False, "render_fps": 50}
    fields = interface(ONE_FIELD, {"gymnasium": known}).spec_fields
    assert fields == {"reward_threshold": 475.0, "max_episode_steps": 500, "nondeterministic": False}
    assert (
        interface(ONE_FIELD, {"gymnasium": {"reward_threshold": "high", "max_episode_steps": None}}).spec_fields == {}
    )


def test_what_a_session_said_when_it_opened_is_enough():
    made = Interface.of(opened(ONE_FIELD, METADATA), "http://127.0.0.1:9", ConnectionSettings(), SpaceOverrides())
    made.check_render_mode("ansi")


def test_a_later_session_is_told_from_one_of_another_environment():
    made = Interface.of(opened(ONE_FIELD), "http://127.0.0.1:9", ConnectionSettings(), SpaceOverrides())
    assert made.describes(opened(ONE_FIELD | {"state": {"type": "object"}}))
    assert not made.describes(opened(TWO_FIELDS))
    assert not made.describes(None)
    assert interface(ONE_FIELD).describes(None)


def test_a_server_that_is_not_there_is_unreachable():
    with pytest.raises(UnreachableError):
        fetch_documents("http://127.0.0.1:9", ConnectionSettings(connect_timeout_s=2))


def test_a_document_that_is_no_object_is_of_no_openenv_server(monkeypatch):
    monkeypatch.setattr("openenv_gym.transports.http.fetch_json", lambda *_: [])
    with pytest.raises(UnreachableError) as caught:
        fetch_documents("http://host", ConnectionSettings())
    assert caught.value.url == "http://host"


def test_documents_are_fetched_and_read_where_the_session_said_nothing(monkeypatch):
    answers = {"/schema": ONE_FIELD, "/metadata": METADATA}
    monkeypatch.setattr("openenv_gym.transports.http.fetch_json", lambda url, path, settings: answers[path])
    made = Interface.of(None, "http://host", ConnectionSettings(), SpaceOverrides())
    assert isinstance(made.observation_space, gymnasium.spaces.Text)


ANNOTATED = {"type": "integer", "minimum": 0, "maximum": 1, "x-gymnasium-space": space_to_json(Discrete(2))}


def test_values_can_be_packed_where_both_spaces_are_the_servers_own():
    found = interface({"action": document(action=ANNOTATED), "observation": document(obs=ANNOTATED)})
    assert found.packed_fields == ("action", "obs")


@pytest.mark.parametrize(
    ("action", "observation", "overrides"),
    [
        (document(action=ANNOTATED), document(obs={"type": "integer"}), {}),
        (document(action={"type": "integer"}), document(obs=ANNOTATED), {}),
        (document(action=ANNOTATED), document(obs=ANNOTATED, more=ANNOTATED), {}),
        (document(action=ANNOTATED), document(obs=ANNOTATED), {"flatten": False}),
        (document(action=ANNOTATED), document(obs=ANNOTATED), {"observation_space": Discrete(2)}),
    ],
)
def test_values_that_are_read_otherwise_cannot_be_packed(action, observation, overrides):
    assert interface({"action": action, "observation": observation}, **overrides).packed_fields is None


def test_without_a_schema_that_is_read_nothing_is_packed():
    conversions = {
        "action_space": Discrete(2),
        "encode_action": lambda action: {"action": int(action)},
        "observation_space": Discrete(2),
        "decode_observation": lambda fields: fields["obs"],
    }
    assert interface({}, **conversions).packed_fields is None
