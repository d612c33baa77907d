"""Blackjack in words: Gymnasium's ``Blackjack-v1``, told to and played by a language model.

Cards, rules and rewards are Gymnasium's own; here they become text, and two words become its actions.
"""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import uuid4

import gymnasium

from openenv_gym.errors import InvalidActionError
from openenv_gym.types import EnvironmentMetadata, State
from openenv_gym_envs.blackjack.models import HIT, STAND, BlackjackAction, BlackjackObservation
from openenv_gym_server.environment import Environment

__all__ = ["BlackjackEnvironment"]

_LIMIT = 21
_ACE = 1


class BlackjackEnvironment(Environment[BlackjackAction, BlackjackObservation, State]):
    """One player against the dealer, with cards drawn from a deck without end.

    The player's hand is told with its best total: an ace that counts 11 is "usable". Of the dealer's two cards one is
    shown, 1 for an ace; the last text of a game tells the dealer's total too. The reward is 1 for a win, -1 for a loss
    and 0 for a draw; it is 0 while the game goes on.

    Args:
        natural: a win with an ace and a ten as the first two cards gives 1.5; only where ``sab`` is false.
        sab: the rules of Sutton and Barto's book: an ace and a ten win against anything else, also against another 21.
            True, as ``gymnasium.make("Blackjack-v1")`` has it.

    Raises:
        TypeError: one of them is neither true nor false.

    Example:
        >>> blackjack = BlackjackEnvironment()
        >>> blackjack.reset(seed=3).text.endswith("Reply hit or stand.")
        True
        >>> blackjack.step(BlackjackAction(move="stand")).done
        True
    """

    SUPPORTS_CONCURRENT_SESSIONS: ClassVar[bool] = True
    INLINE: ClassVar[bool] = True

    def __init__(self, natural: bool = False, sab: bool = True) -> None:
        super().__init__()
        for name, value in (("natural", natural), ("sab", sab)):
            if not isinstance(value, bool):
                raise TypeError(f"expected {name} to be true or false, got {value!r}")
        # Its players' cards are no part of Gymnasium's general interface.
        self._game: Any = gymnasium.make("Blackjack-v1", natural=natural, sab=sab).unwrapped
        self._state = State()
        self._next = "no game has begun: reset() deals the cards"

    def reset(self, seed: int | None = None, episode_id: str | None = None) -> BlackjackObservation:  # type: ignore[override]
        """Deal the cards.

        Args:
            seed: makes this game and those after it reproducible, card by card as in Gymnasium.
            episode_id: a name for the game; a new one is made up without it.
        """
        seen, _ = self._game.reset(seed=seed)
        self._state = State(episode_id=uuid4().hex if episode_id is None else episode_id)
        self._next = ""
        return BlackjackObservation(f"{_told(*seen)} Reply {HIT} or {STAND}.")

    def step(self, action: BlackjackAction) -> BlackjackObservation:  # type: ignore[override]
        """Take a card, or let the dealer draw.

        Raises:
            InvalidActionError: no game is on.
        """
        if self._next:
            # The player's mistake and not the game's: a refusal, which no log has to tell.
            raise InvalidActionError(f"expected a game that is on, but {self._next}", code="VALIDATION_ERROR")
        seen, reward, done, _, _ = self._game.step(int(action.move == HIT))
        self._state.step_count += 1
        reward = float(reward)
        if not done:
            return BlackjackObservation(f"{_told(*seen)} Reply {HIT} or {STAND}.", reward)
        self._next = "the last one is over: reset() begins another"
        dealer = _total(self._game.dealer)
        result = _result(reward, int(seen[0]), dealer)
        return BlackjackObservation(f"{_told(*seen)} Dealer's hand: {dealer}. {result}", reward, done=True)

    @property
    def state(self) -> State:
        """The game's name and the moves in it."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """What the game is."""
        return EnvironmentMetadata(
            name="blackjack",
            description=f"Blackjack in words, after Gymnasium's Blackjack-v1; each move is {HIT} or {STAND}.",
            version="0.1.0",
        )


def _told(hand: int, shown: int, usable_ace: int) -> str:
    """Gymnasium's observation in words."""
    return f"Your hand: {int(hand)}, {'usable ace' if usable_ace else 'no usable ace'}; dealer shows: {int(shown)}."


def _total(cards: list[int]) -> int:
    """The best total of a hand; an ace counts 11 where that does not lose."""
    total = int(sum(cards))
    return total + 10 if _ACE in cards and total + 10 <= _LIMIT else total


def _result(reward: float, hand: int, dealer: int) -> str:
    """How the game ended, by the reward that Gymnasium gave for it."""
    if hand > _LIMIT:
        return f"You lose: your hand is over {_LIMIT}."
    if reward < 0.0:
        return "You lose: the dealer's hand is higher."
    if reward == 0.0:
        return "You draw: both hands are equal."
    if reward > 1.0 or hand == dealer:
        return "You win with a natural."
    if dealer > _LIMIT:
        return f"You win: the dealer's hand is over {_LIMIT}."
    return "You win: your hand is higher."
