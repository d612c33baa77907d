"""What crosses the wire of a game of Blackjack, for both of its ends. Not the game (``environment.py``)."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import field_validator

from openenv_gym.types import Action

__all__ = ["HIT", "STAND", "BlackjackAction", "BlackjackObservation"]

HIT = "hit"
STAND = "stand"


class BlackjackAction(Action):
    """``hit`` takes a card, ``stand`` ends the game; letter case and space around the word do not matter.

    Raises:
        pydantic.ValidationError: the move is another word.

    Example:
        >>> BlackjackAction(move=" Stand ").move
        'stand'
    """

    move: str

    @field_validator("move")
    @classmethod
    def _is_one_of_two(cls, move: str) -> str:
        word = move.strip().lower()
        if word not in {HIT, STAND}:
            shown = repr(move) if len(move) <= 100 else f"{move[:100]!r} and more"
            raise ValueError(f"expected {HIT!r} or {STAND!r}, got {shown}; the game has not moved")
        return word


@dataclass
class BlackjackObservation:
    """What a player sees, in words; reward and done travel beside it.

    Example:
        >>> BlackjackObservation("Your hand: 14, no usable ace; dealer shows: 10. Reply hit or stand.").done
        False
    """

    text: str
    reward: float | None = None
    done: bool = False
