"""A ``UnicodeText`` whose samples are listed texts."""

import copy
import json
import pickle

import pytest

from openenv_gym.spaces import UnicodeText, mapping_from_schema, space_from_json, space_to_json


def test_samples_are_out_of_the_listed_texts_and_repeat_by_seed():
    space, twin = UnicodeText.sampling("a", "b"), UnicodeText.sampling("a", "b")
    space.seed(1)
    twin.seed(1)
    samples = [space.sample() for _ in range(50)]
    assert set(samples) == {"a", "b"}
    assert samples == [twin.sample() for _ in range(50)]


def test_it_is_a_space_like_any_other_text():
    space = UnicodeText.sampling("{}")
    assert space == UnicodeText()
    assert "anything" in space
    assert space_from_json(space_to_json(space)) == space
    assert len(space.sample(mask=(3, None))) == 3


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda space: pickle.loads(pickle.dumps(space))])
def test_a_copy_has_the_same_samples(copied):
    assert copied(UnicodeText.sampling("{}")).sample() == "{}"


@pytest.mark.parametrize(
    "schema", [{}, {"type": "object"}, {"type": "object", "additionalProperties": {"type": "null"}}]
)
def test_what_has_to_be_json_is_sampled_as_json(schema):
    mapping = mapping_from_schema({"type": "object", "properties": {"value": schema}})
    mapping.space.seed(2)
    for _ in range(30):
        sample = mapping.space.sample()
        assert mapping.encode(sample) == {"value": json.loads(sample)}
        assert mapping.decode(mapping.encode(sample)) == json.dumps(json.loads(sample), separators=(",", ":"))
