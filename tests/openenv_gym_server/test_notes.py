"""Tests of ``openenv_gym_server.notes``."""

from __future__ import annotations

from openenv_gym_server.notes import MAX_NOTES, Notes, quoted


def test_each_thing_is_noted_once() -> None:
    notes = Notes()
    for text in ("a", "b", "a"):
        notes.add(text)
    assert notes.waiting == ["a", "b"]
    assert notes.take() == ["a", "b"]
    notes.add("a")
    assert not notes.waiting
    assert notes.take() == []


def test_there_are_never_more_than_a_few_and_the_last_one_says_so() -> None:
    notes = Notes()
    for number in range(10 * MAX_NOTES):
        notes.add(str(number))
    taken = notes.take()
    assert taken[:MAX_NOTES] == [str(number) for number in range(MAX_NOTES)]
    assert taken[MAX_NOTES:] == [f"there is more of this kind than {MAX_NOTES} notes; further ones are left out"]
    notes.add("later")
    assert notes.take() == []


def test_a_name_is_quoted_in_bounded_length() -> None:
    assert quoted("it's") == '"it\'s"'
    assert quoted("x" * 100) == repr("x" * 100)
    assert quoted("x" * 101) == repr("x" * 100 + "…")
