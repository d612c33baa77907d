"""What one document may ask for."""

from __future__ import annotations

import pytest

from openenv_gym.errors import SpaceMappingError
from openenv_gym.spaces.limits import Budget


def test_a_budget_is_spent_to_its_last_byte_and_no_further() -> None:
    budget = Budget(10)
    budget.take(4, "$.a")
    budget.take(6, "$.b")
    budget.take(0, "$.c")
    with pytest.raises(SpaceMappingError) as caught:
        budget.take(1, "$.d")
    assert caught.value.path == "$.d"
