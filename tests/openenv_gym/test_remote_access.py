"""State, methods and attributes of a remote environment, by what is asked of the session."""

import pytest

from openenv_gym import messages
from openenv_gym.exact import exact_call
from openenv_gym.info import encode_exact
from openenv_gym.remote_access import RemoteAccess


class Recording(RemoteAccess):
    def __init__(self):
        self.asked = []

    def _ask(self, kind, **fields):
        self.asked.append((kind, fields))
        value = messages.ValueData(value=encode_exact((1, 2))) if kind is not messages.State else None
        if kind is messages.State:
            return messages.StateReply(data={"step_count": 3})
        return (messages.CallReply if kind is messages.Call else messages.GetAttrReply)(data=value)


@pytest.fixture
def env():
    return Recording()


def test_the_state_is_the_servers(env):
    assert env.state() == {"step_count": 3}
    assert env.asked == [(messages.State, {})]


def test_a_method_is_called_by_name_with_exact_arguments(env):
    assert env.call("add", (1,), more={2}) == (1, 2)
    assert env.asked == [(messages.Call, {"data": exact_call("add", ((1,),), {"more": {2}})})]


def test_an_attribute_is_read_by_name(env):
    assert env.get_attr("colour") == (1, 2)
    assert env.asked == [(messages.GetAttr, {"data": messages.AttributeSettings(name="colour")})]
