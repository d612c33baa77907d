"""Tests of ``openenv_gym_server.signatures``."""

from __future__ import annotations

import pytest

from openenv_gym_server.signatures import keywords_of


def test_a_keyword_is_taken_by_name_or_by_a_catch_all() -> None:
    def narrow(first: int, /, second: int, *rest: int, third: int) -> None: ...

    def wide(**anything: int) -> None: ...

    assert [keywords_of(narrow).takes(name) for name in ("first", "second", "rest", "third")] == [
        False,
        True,
        False,
        True,
    ]
    assert keywords_of(wide).takes("first")


@pytest.mark.parametrize("unknown", [False, True])
def test_a_callable_that_says_nothing_of_itself_is_taken_as_the_caller_wants(unknown: bool) -> None:
    class Opaque:
        __signature__ = 5

        def __call__(self) -> None: ...

    assert keywords_of(Opaque(), unknown=unknown).takes("anything") is unknown
