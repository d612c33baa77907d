"""Old Spaces, told by the names and attributes of their classes."""

from collections import OrderedDict

import numpy as np
import pytest
from gymnasium import spaces

from openenv_gym.errors import SpaceMappingError
from openenv_gym_server.legacy_spaces import modern_space


def old(name, **attributes):
    """An instance of a class of that name with these attributes: all that is known of an old Space."""
    instance = type(name, (), {})()
    vars(instance).update(attributes)
    return instance


BOX = old(
    "Box", low=np.array([-1, 0], np.float32), high=np.array([1, 2], np.float32), shape=(2,), dtype=np.dtype("float32")
)

PAIRS = [
    (BOX, spaces.Box(np.array([-1, 0], np.float32), np.array([1, 2], np.float32))),
    (old("Box", low=np.array(0.0), high=np.array(1.0), shape=(), dtype=np.float64), spaces.Box(0, 1, (), np.float64)),
    (old("Discrete", n=3), spaces.Discrete(3)),
    (old("Discrete", n=np.int64(3), start=-2), spaces.Discrete(3, start=-2)),
    (old("MultiDiscrete", nvec=np.array([2, 3])), spaces.MultiDiscrete([2, 3])),
    (old("MultiDiscrete", nvec=np.array([2]), dtype=np.int8), spaces.MultiDiscrete([2], dtype=np.int8)),
    (old("MultiBinary", n=4), spaces.MultiBinary(4)),
    (old("MultiBinary", n=(2, 3)), spaces.MultiBinary([2, 3])),
    (old("Text", min_length=0, max_length=5, character_list=("b", "a")), spaces.Text(5, min_length=0, charset="ba")),
    (old("Tuple", spaces=[old("Discrete", n=2), BOX]), spaces.Tuple([spaces.Discrete(2), modern_space(BOX)])),
    (
        old("Dict", spaces=OrderedDict(z=old("Discrete", n=2), a=old("Discrete", n=3))),
        spaces.Dict([("z", spaces.Discrete(2)), ("a", spaces.Discrete(3))]),
    ),
    (old("Sequence", feature_space=old("Discrete", n=2)), spaces.Sequence(spaces.Discrete(2))),
    (
        old("Graph", node_space=BOX, edge_space=old("Discrete", n=2)),
        spaces.Graph(modern_space(BOX), spaces.Discrete(2)),
    ),
    (old("Graph", node_space=BOX, edge_space=None), spaces.Graph(modern_space(BOX), None)),
]


@pytest.mark.parametrize(("given", "expected"), PAIRS, ids=[type(pair[0]).__name__ for pair in PAIRS])
def test_an_old_space_becomes_its_counterpart(given, expected):
    space = modern_space(given)
    assert space == expected
    assert space.dtype == expected.dtype


def test_a_dict_keeps_its_order():
    given = old("Dict", spaces=OrderedDict(z=old("Discrete", n=2), a=old("Discrete", n=3)))
    assert list(modern_space(given).spaces) == ["z", "a"]


def test_a_subclass_is_known_by_its_base():
    base = type("Discrete", (), {"n": 4})
    assert modern_space(type("Buttons", (base,), {})()) == spaces.Discrete(4)


def test_a_gymnasium_space_is_returned_as_it_is():
    space = spaces.Discrete(2)
    assert modern_space(space) is space


def test_an_unknown_class_is_an_error_with_its_place():
    with pytest.raises(SpaceMappingError, match="Strange") as caught:
        modern_space(old("Tuple", spaces=[old("Discrete", n=2), old("Strange")]), "observation_space")
    assert caught.value.path == "observation_space[1]"


@pytest.mark.parametrize(
    "broken", [old("Discrete"), old("Box", low=0, high=1, shape=(2,), dtype="no"), old("Discrete", n="x")]
)
def test_attributes_that_do_not_fit_are_an_error(broken):
    with pytest.raises(SpaceMappingError) as caught:
        modern_space(broken, "action_space")
    assert caught.value.path == "action_space"
