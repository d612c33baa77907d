"""Answers of sessions, put together."""

import numpy as np
import pytest
from gymnasium.spaces import Discrete, Text

from openenv_gym.errors import ValueMappingError
from openenv_gym.vector_rows import Actions, Latest, Row, Rows, join_answers

SPACE = Discrete(100)


def rows_of(env_ids, *, stepped=True):
    count = len(env_ids)
    flags = np.zeros(count, np.bool_) if stepped else None
    return Rows(
        np.array(env_ids),
        np.array(env_ids) * 10,
        np.array(env_ids) / 2 if stepped else None,
        flags,
        flags,
        {"id": np.array(env_ids), "_id": np.ones(count, np.bool_)},
    )


def row_of(env_id, *, stepped=True):
    return Row(env_id, np.int64(env_id * 10), (env_id / 2, False, False) if stepped else None, ({"id": env_id},))


@pytest.mark.parametrize("stepped", [True, False])
@pytest.mark.parametrize(
    "answers",
    [
        lambda stepped: [rows_of([0, 1, 2, 3], stepped=stepped)],
        lambda stepped: [rows_of([0, 1], stepped=stepped), rows_of([2, 3], stepped=stepped)],
        lambda stepped: [row_of(index, stepped=stepped) for index in range(4)],
        lambda stepped: [row_of(0, stepped=stepped), rows_of([1, 2], stepped=stepped), row_of(3, stepped=stepped)],
    ],
)
def test_answers_of_any_kind_are_one_row_after_row(answers, stepped):
    joined = join_answers(SPACE, answers(stepped))
    assert joined.env_ids.tolist() == [0, 1, 2, 3]
    assert joined.observations.tolist() == [0, 10, 20, 30]
    assert joined.infos["id"].tolist() == [0, 1, 2, 3]
    if not stepped:
        assert (joined.rewards, joined.terminations, joined.truncations) == (None, None, None)
        return
    assert joined.rewards.tolist() == [0.0, 0.5, 1.0, 1.5]
    assert joined.rewards.dtype == np.float64
    assert joined.terminations.dtype == joined.truncations.dtype == np.bool_


def test_rows_keep_the_order_of_the_answers():
    assert join_answers(SPACE, [row_of(3), rows_of([2, 0])]).infos["id"].tolist() == [3, 2, 0]


def test_actions_are_given_whole_in_rows_or_one_by_one():
    batch = np.array([4, 5, 6])
    actions = Actions(SPACE, batch, 3)
    assert actions.rows(None) is batch
    assert actions.rows(slice(1, 3)).tolist() == [5, 6]
    assert actions.rows(np.array([2, 0])).tolist() == [6, 4]
    assert actions.samples(None) == [4, 5, 6]
    assert actions.samples(slice(0, 1)) == [4]
    assert actions.samples(np.array([2, 0])) == [6, 4]


@pytest.mark.parametrize(("space", "batch"), [(SPACE, [1, 2]), (SPACE, 5), (Text(3), None), (Text(3), ("a",) * 4)])
def test_what_is_no_batch_of_so_many_actions_is_refused(space, batch):
    for part in (lambda actions: actions.rows(slice(0, 2)), lambda actions: actions.samples(None)):
        with pytest.raises(ValueMappingError) as caught:
            part(Actions(space, batch, 3))
        assert caught.value.path == "$"


def test_the_latest_observations_are_found_again():
    random = np.random.default_rng(0)
    latest = Latest(SPACE, 6, lambda raw, count: np.array(raw[:count]))
    known = np.arange(6)
    latest.note(known.tolist(), None)
    for _ in range(60):
        env_ids = random.permutation(6)[: random.integers(1, 6)]
        values = random.integers(0, 100, len(env_ids))
        known[env_ids] = values
        latest.note(values.tolist(), env_ids)
        np.testing.assert_array_equal(latest.batch(), known)
    assert len(latest._pieces) < 20
    latest.note([1] * 6, None)
    assert latest.batch().tolist() == [1] * 6


@pytest.mark.parametrize(("batch", "told"), [(0, "the integer 0"), (None, "null"), (iter([0]), "a list_iterator")])
def test_what_is_no_batch_is_told_in_words_of_ours(batch, told):
    with pytest.raises(ValueMappingError, match="expected a batch of 2 actions of Discrete") as caught:
        Actions(Discrete(2), batch, 2).samples(None)
    assert str(caught.value).endswith(f", got {told}")
