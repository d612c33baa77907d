"""Tests of ``openenv_gym_server.remote_names``."""

from __future__ import annotations

import pytest

from openenv_gym.errors import InvalidActionError
from openenv_gym_server.remote_names import (
    FIXED,
    UNREACHABLE,
    check_name,
    check_settable,
    missing_attribute,
    suggestion,
)
from openenv_gym_server.settings import Names


@pytest.mark.parametrize("name", [*sorted(UNREACHABLE), "_secret", "__class__", "env.secret"])
@pytest.mark.parametrize("allowed", ["all", frozenset({"reset", "_secret", "env.secret"})])
def test_some_names_are_never_reachable(name: str, allowed: Names) -> None:
    for check in (check_name, check_settable):
        with pytest.raises(InvalidActionError, match="never reachable"):
            check(name, allowed)


def test_a_name_that_the_operator_does_not_allow_is_told_with_the_nearest() -> None:
    check_name("gravity", frozenset({"gravity"}))
    check_name("gravity", "all")
    with pytest.raises(InvalidActionError, match=r"--allow-remote gravty") as caught:
        check_name("gravty", frozenset({"gravity", "length"}))
    assert "did you mean gravity?" in str(caught.value)
    assert caught.value.errors is not None
    assert caught.value.errors[0]["loc"] == ["data", "name"]


@pytest.mark.parametrize("name", sorted(FIXED))
def test_what_a_client_was_told_may_be_read_and_not_set(name: str) -> None:
    check_name(name, "all")
    with pytest.raises(InvalidActionError, match="read and not set"):
        check_settable(name, "all")


def test_a_missing_attribute_is_told_with_the_nearest_that_may_be_used() -> None:
    error = missing_attribute("Demo-v0", "masscat", ["masscart", "_masscat", "reset"], "all")
    assert str(error).endswith("Demo-v0 has no attribute 'masscat'; did you mean masscart?")
    assert suggestion("zzz", ["masscart"], "all") == ""
    assert suggestion("masscat", ["masscart"], frozenset({"other"})) == ""
