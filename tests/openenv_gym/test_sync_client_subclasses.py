"""``SyncEnvClient`` over clients of one's own: overrides of every kind, and copies."""

import copy
import pickle

import pytest

from openenv_gym.types import StepResult
from tests.openenv_gym.talking import TalkClient


@pytest.fixture
def client(talk):
    with TalkClient(talk).sync() as client:
        yield client


class Handing(TalkClient):
    """Plain methods that hand on a coroutine, as a decorator makes them."""

    def step(self, action, **kwargs):
        return super().step(action.upper(), **kwargs)

    def play(self, word):
        return self._play(word)

    def polite(self, word):
        return f"{word}, please"

    async def _play(self, word):
        await self.reset()
        return (await self.step(word)).observation


def test_a_plain_method_that_hands_on_a_coroutine_gives_its_result(talk):
    with Handing(talk).sync() as client:
        assert client.play("a") == "A"
        assert client.step("b").observation == "B"
        assert client.polite("c") == "c, please"


def test_an_override_that_is_no_coroutine_is_named(talk):
    class Wrong(TalkClient):
        def step(self, action, **kwargs):
            return StepResult(action)

    with Wrong(talk).sync() as client:
        client.reset()
        with pytest.raises(TypeError, match=r"step\(\) to be a coroutine.*StepResult.*async def step"):
            client.step("x")


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda client: pickle.loads(pickle.dumps(client))])
def test_a_copy_has_the_settings_and_a_session_of_its_own(client, twin):
    client.reset()
    with twin(client) as other:
        assert other.async_client is not client.async_client
        assert (type(other.async_client), other.base_url) == (TalkClient, client.base_url)
        other.reset()
        other.step("there")
        assert client.state()["step_count"] == 0
