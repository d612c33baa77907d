"""Calls under way."""

import pytest
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError

from openenv_gym.vector_pending import Pending


def test_one_call_is_under_way_at_a_time():
    pending = Pending()
    pending.require_none("step", closed=False)
    pending.begin("step")
    with pytest.raises(AlreadyPendingCallError) as caught:
        pending.require_none("reset", closed=False)
    assert caught.value.name == "step"
    pending.finish("step", closed=False)
    pending.require_none("reset", closed=False)


def test_an_answer_needs_its_own_call():
    pending = Pending()
    pending.begin("step")
    with pytest.raises(NoAsyncCallError) as caught:
        pending.finish("reset", closed=False)
    assert caught.value.name == "reset"
    pending.finish("step", closed=False)


def test_actions_that_were_sent_count_too():
    with pytest.raises(AlreadyPendingCallError, match="2 environments") as caught:
        Pending().require_none("step", closed=False, sent=2)
    assert caught.value.name == "send"


def test_a_closed_environment_takes_no_call():
    for call in (lambda: Pending().require_none("step", closed=True), lambda: Pending().finish("step", closed=True)):
        with pytest.raises(ClosedEnvironmentError):
            call()
