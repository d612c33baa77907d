"""The codecs of single numbers and text."""

from __future__ import annotations

import pytest
from gymnasium.spaces import Discrete

from openenv_gym.errors import ValueMappingError
from openenv_gym.spaces import codec_for


def test_a_float_beyond_exact_integers_is_no_integer() -> None:
    codec = codec_for(Discrete(2))
    assert codec.decode(2.0**53) == 2**53
    with pytest.raises(ValueMappingError):
        codec.decode(2.0**54)
