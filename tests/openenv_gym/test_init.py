"""The public names of the package."""

import pytest

import openenv_gym


def test_every_public_name_loads():
    for name in openenv_gym.__all__:
        assert getattr(openenv_gym, name) is not None
    assert set(openenv_gym.__all__) <= set(dir(openenv_gym))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = openenv_gym.nonsense
