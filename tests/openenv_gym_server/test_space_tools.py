"""Spaces as an agent reads them."""

import gymnasium
import jsonschema
import numpy as np
import pytest
from gymnasium import spaces

from openenv_gym.spaces import UnicodeText, codec_for, schema_from_space
from openenv_gym_server.output_schemas import wrapped_schema
from openenv_gym_server.space_tools import arguments_schema, is_picture, words_for
from tests.exactness.synthetic import SPACES

WORDS = [
    (spaces.Discrete(4), "an integer from 0 to 3"),
    (spaces.Discrete(3, start=-1), "an integer from -1 to 1"),
    (spaces.Box(-1, 1, (3,), np.float32), "an array of 3 numbers from -1.0 to 1.0"),
    (spaces.Box(-2, 2, (1,), np.float32), "an array of 1 number from -2.0 to 2.0"),
    (spaces.Box(0, 255, (4, 5), np.uint8), "a nested array of shape (4, 5) of integers from 0 to 255"),
    (spaces.Box(-np.inf, np.inf, (2,), np.float64), "an array of 2 numbers"),
    (spaces.Box(0, np.inf, (), np.float32), "a number of at least 0.0"),
    (spaces.Box(-np.inf, 1, (), np.float32), "a number of at most 1.0"),
    (spaces.Box(0, 9, (), np.int64), "an integer from 0 to 9"),
    (
        spaces.Box(np.array([-np.inf, 0], np.float32), np.array([0.1, 1], np.float32)),
        "an array of 2 numbers, at least [-inf, 0.0] and at most [0.1, 1.0]",
    ),
    (
        spaces.Box(np.arange(17), np.full(17, 99), dtype=np.int64),
        "an array of 17 integers from 0 to 99",
    ),
    (spaces.Box(0, 1, (3,), np.bool_), "an array of 3 booleans"),
    (spaces.Box(-1, 1, (0,), np.float32), "an array of shape (0,), which is empty"),
    (spaces.MultiBinary(4), "an array of 4 integers, each 0 or 1"),
    (spaces.MultiDiscrete([2, 3]), "an array of 2 integers, at least [0, 0] and at most [1, 2]"),
    (UnicodeText(9), "a text of 0 to 9 characters"),
    (
        spaces.Dict(aim=spaces.Discrete(2), fire=spaces.MultiBinary(1)),
        'an object of "aim": an integer from 0 to 1; and "fire": an array of 1 integer, each 0 or 1',
    ),
    (spaces.Tuple([spaces.Discrete(2)]), "an array of 1 in order: an integer from 0 to 1"),
    (
        spaces.OneOf([spaces.Discrete(2), spaces.Discrete(3)]),
        "one of these arrays: [0, value] with an integer from 0 to 1; or [1, value] with an integer from 0 to 2",
    ),
    (spaces.Sequence(spaces.Discrete(2)), "an array of any length, each element an integer from 0 to 1"),
    (
        spaces.Graph(spaces.Discrete(2), None),
        (
            'an object of "nodes": an array, each node an integer from 0 to 1; "edges": null; and "edge_links": an '
            "array of [from, to], the numbers of two nodes, or null"
        ),
    ),
]


@pytest.mark.parametrize(("space", "words"), WORDS, ids=[type(space).__name__ for space, _ in WORDS])
def test_a_space_is_part_of_a_sentence(space, words):
    assert words_for(space) == words


@pytest.mark.parametrize("name", SPACES)
def test_every_space_has_words(name):
    words = words_for(SPACES[name]())
    assert words
    assert words != "a value"


def test_a_space_that_nobody_knows_has_a_word_too():
    assert words_for(gymnasium.Space()) == "a value"


def test_many_words_end_where_the_schema_goes_on():
    words = words_for(spaces.Dict({f"part {number}": spaces.Discrete(2) for number in range(200)}))
    assert words.endswith("… (the JSON Schema has the rest)")
    assert len(words) < 2_100


@pytest.mark.parametrize(
    ("space", "picture"),
    [
        (spaces.Box(0, 255, (210, 160, 3), np.uint8), True),
        (spaces.Box(0, 255, (84, 84), np.uint8), True),
        (spaces.Box(0, 255, (84, 84, 1), np.uint8), True),
        (spaces.Box(0, 255, (84, 84, 2), np.uint8), False),
        (spaces.Box(0, 255, (128,), np.uint8), False),
        (spaces.Box(0, 255, (4, 5, 3), np.uint8), False),
        (spaces.Box(0, 1, (84, 84), np.float32), False),
        (spaces.Discrete(2), False),
    ],
    ids=str,
)
def test_a_picture_is_told_from_numbers(space, picture):
    assert is_picture(space) is picture


@pytest.mark.parametrize("name", SPACES)
def test_what_a_tool_takes_and_gives_validates(name):
    space = SPACES[name]()
    space.seed(0)
    value = codec_for(space).encode(space.sample())
    jsonschema.validate({"action": value}, arguments_schema("action", schema_from_space(space), "An action."))
    jsonschema.validate({"result": value}, wrapped_schema(schema_from_space(space)))
