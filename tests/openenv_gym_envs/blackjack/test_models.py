"""What crosses the wire of a game."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from openenv_gym_envs.blackjack.models import BlackjackAction


@pytest.mark.parametrize(
    ("said", "move"), [("hit", "hit"), (" Stand\n", "stand"), ("HIT", "hit"), ("\tsTaNd ", "stand")]
)
def test_letter_case_and_space_around_a_word_are_forgiven(said: str, move: str) -> None:
    assert BlackjackAction(move=said).move == move


@pytest.mark.parametrize("said", ["", "stick", "hit me", "hitstand", "hi t", "\u0130t", "1", "x" * 1_000_000])
def test_another_word_is_refused_with_the_two_that_are_not(said: str) -> None:
    with pytest.raises(ValidationError, match="expected 'hit' or 'stand'") as caught:
        BlackjackAction(move=said)
    assert len(caught.value.errors()[0]["msg"]) < 300


@pytest.mark.parametrize("fields", [{}, {"move": 1}, {"move": None}, {"move": "hit", "more": 1}])
def test_an_action_is_one_text(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        BlackjackAction.model_validate(fields)
