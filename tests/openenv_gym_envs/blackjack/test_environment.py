"""The game as an object, beside Gymnasium's own."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
import pytest

from openenv_gym.errors import InvalidActionError
from openenv_gym_envs.blackjack.environment import BlackjackEnvironment
from openenv_gym_envs.blackjack.models import BlackjackAction

RUNNING = r"Your hand: (\d+), (no usable ace|usable ace); dealer shows: (\d+)\."
REPLY = r" Reply hit or stand\."
RULES = [{}, {"natural": True}, {"sab": False}, {"natural": True, "sab": False}]
MOVES = {0: "stand", 1: "hit"}


def seen_in(text: str, rest: str) -> tuple[int, int, int]:
    """Gymnasium's observation in a text."""
    found = re.fullmatch(RUNNING + rest, text)
    assert found, text
    return int(found[1]), int(found[3]), int(found[2] == "usable ace")


def game_of(keywords: dict[str, bool]) -> Any:
    return gymnasium.make("Blackjack-v1", **keywords).unwrapped


@pytest.mark.parametrize("keywords", RULES, ids=str)
def test_200_games_are_gymnasiums_card_by_card(keywords: dict[str, bool]) -> None:
    ours, theirs = BlackjackEnvironment(**keywords), game_of(keywords)
    theirs.action_space.seed(0)
    for seed in range(200):
        # Every third game goes on with the cards where the last one left them.
        given = seed if seed % 3 else None
        expected, _ = theirs.reset(seed=seed if seed == 0 else given)
        observation = ours.reset(seed=seed if seed == 0 else given)
        assert seen_in(observation.text, REPLY) == tuple(expected)
        assert (observation.reward, observation.done) == (None, False)
        while not observation.done:
            move = int(theirs.action_space.sample())
            expected, reward, terminated, truncated, _ = theirs.step(move)
            observation = ours.step(BlackjackAction(move=MOVES[move]))
            assert (observation.reward, observation.done, truncated) == (reward, terminated, False)
            end = r" Dealer's hand: (?:\d+)\. You (?:win|lose|draw)\b.*\." if terminated else REPLY
            assert seen_in(observation.text, end) == tuple(expected)


def ended(player: list[int], dealer: list[int], move: str = "stand", **rules: bool) -> tuple[str, float | None]:
    """The last text and reward of a game with these cards."""
    environment = BlackjackEnvironment(**rules)
    environment.reset(seed=0)
    environment._game.player, environment._game.dealer = player, dealer
    observation = environment.step(BlackjackAction(move=move))
    assert observation.done
    return observation.text, observation.reward


@pytest.mark.parametrize(
    ("player", "dealer", "rules", "text", "reward"),
    [
        ([10, 9], [10, 8], {}, "Your hand: 19, no usable ace; dealer shows: 10. Dealer's hand: 18. You win: ", 1.0),
        ([10, 7], [1, 10], {}, "Your hand: 17, no usable ace; dealer shows: 1. Dealer's hand: 21. You lose: ", -1.0),
        ([1, 6], [10, 7], {}, "Your hand: 17, usable ace; dealer shows: 10. Dealer's hand: 17. You draw: ", 0.0),
        ([2, 3], [10, 2, 10], {}, "Your hand: 5, no usable ace; dealer shows: 10. Dealer's hand: 22. You win: ", 1.0),
        ([1, 10], [10, 9], {}, "Your hand: 21, usable ace; dealer shows: 10. Dealer's hand: 19. You win: ", 1.0),
        (
            [1, 10],
            [10, 9],
            {"natural": True, "sab": False},
            "Your hand: 21, usable ace; dealer shows: 10. Dealer's hand: 19. You win with a natural.",
            1.5,
        ),
        (
            [1, 10],
            [7, 4, 10],
            {},
            "Your hand: 21, usable ace; dealer shows: 7. Dealer's hand: 21. You win with a natural.",
            1.0,
        ),
        (
            [1, 10],
            [10, 1],
            {},
            "Your hand: 21, usable ace; dealer shows: 10. Dealer's hand: 21. You draw: ",
            0,
        ),
    ],
)
def test_the_last_text_has_both_hands_and_the_result(
    player: list[int], dealer: list[int], rules: dict[str, bool], text: str, reward: float
) -> None:
    told, given = ended(player, dealer, **rules)
    assert told.startswith(text)
    assert given == reward


def test_whoever_goes_over_21_has_lost() -> None:
    text, reward = ended([10, 9, 2], [10, 3], move="hit")
    assert re.fullmatch(
        r"Your hand: \d+, no usable ace; dealer shows: 10\. Dealer's hand: 13\. You lose: your hand is over 21\.", text
    )
    assert reward == -1.0


def test_the_first_text_is_this() -> None:
    environment = BlackjackEnvironment()
    texts = {environment.reset(seed=seed).text for seed in range(300)}
    assert "Your hand: 14, no usable ace; dealer shows: 10. Reply hit or stand." in texts
    assert any(", usable ace; dealer shows: 1. Reply hit or stand." in text for text in texts)


def test_no_move_is_taken_without_a_game() -> None:
    environment = BlackjackEnvironment()
    with pytest.raises(InvalidActionError, match="no game has begun"):
        environment.step(BlackjackAction(move="hit"))
    environment.reset()
    environment.step(BlackjackAction(move="stand"))
    for _ in range(2):
        with pytest.raises(InvalidActionError, match=r"the last one is over: reset\(\) begins another"):
            environment.step(BlackjackAction(move="hit"))
    assert environment.state.step_count == 1
    assert environment.reset().done is False


def test_the_state_names_the_game_and_counts_its_moves() -> None:
    environment = BlackjackEnvironment()
    environment.reset(seed=3, episode_id="mine")
    environment.step(BlackjackAction(move="stand"))
    assert (environment.state.episode_id, environment.state.step_count) == ("mine", 1)
    environment.reset()
    assert environment.state.step_count == 0
    assert environment.state.episode_id not in {None, "mine"}


@pytest.mark.parametrize("rules", [{"natural": 1}, {"sab": "yes"}, {"sab": None}])
def test_a_rule_is_on_or_off(rules: Any) -> None:
    with pytest.raises(TypeError, match=next(iter(rules))):
        BlackjackEnvironment(**rules)


def test_it_says_what_it_is() -> None:
    assert BlackjackEnvironment().get_metadata().name == "blackjack"
    assert BlackjackEnvironment.SUPPORTS_CONCURRENT_SESSIONS
