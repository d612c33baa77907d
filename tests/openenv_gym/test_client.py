"""``EnvClient`` awaited, against servers of both makes."""

import asyncio
import copy
import pickle
import warnings
from typing import Any

import pytest

from openenv_gym.client import EnvClient
from openenv_gym.errors import (
    EnvironmentExecutionError,
    InvalidActionError,
    ModeError,
    OpenEnvGymWarning,
    SessionStateError,
    SettingsError,
    UnreachableError,
    ValueMappingError,
)
from openenv_gym.generic_client import GenericEnvClient
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.types import StepResult
from openenv_gym_server import create_gym_app
from tests.openenv_gym.sleepy import Sleepy
from tests.openenv_gym.talking import TalkClient
from tests.serving import serve


def test_an_episode_is_played_and_read_in_the_clients_own_types(talk):
    async def play():
        async with TalkClient(talk) as client:
            first = await client.reset(seed=3, episode_id="one")
            assert first == StepResult("ready {'seed': 3}", None, False, {"hint": "speak"})
            results = [await client.step(word) for word in ("a", "ö 🙂", "c")]
            assert [result.observation for result in results] == ["a", "ö 🙂", "c"]
            assert [(result.reward, result.done) for result in results] == [(0.5, False), (0.5, False), (0.5, True)]
            assert await client.state() == {"episode_id": "one", "step_count": 3}

    asyncio.run(play())


def test_a_reset_connects_where_nobody_has(talk):
    async def play():
        client = TalkClient(talk)
        assert (await client.reset()).observation.startswith("ready")
        await client.close()

    asyncio.run(play())


def test_the_state_may_be_asked_for_before_the_first_reset_and_connects(talk):
    async def play():
        client = TalkClient(talk)
        assert await client.state() == {"episode_id": None, "step_count": 0}
        with pytest.raises(SessionStateError):
            await client.step("x")
        await client.close()

    asyncio.run(play())


@pytest.mark.parametrize("connected", [False, True])
def test_a_step_before_the_first_reset_is_refused(talk, connected):
    async def play():
        client = TalkClient(talk)
        if connected:
            await client.connect()
        with pytest.raises(SessionStateError) as caught:
            await client.step("early")
        assert caught.value.state == ("open" if connected else "new")
        await client.close()

    asyncio.run(play())


def test_errors_of_the_server_are_typed_and_the_session_goes_on(talk):
    async def play():
        async with TalkClient(talk) as client:
            await client.reset()
            with pytest.raises(EnvironmentExecutionError, match="it cannot count"):
                await client.step("raise")
            client._step_payload = lambda action: {"words": action}
            with pytest.raises(InvalidActionError) as caught:
                await client.step("x")
            assert {error["loc"][-1] for error in caught.value.errors} == {"message", "words"}
            del client._step_payload
            assert (await client.step("on")).observation == "on"
            with pytest.raises(EnvironmentExecutionError, match="no reset today"):
                await client.reset(fail=True)
            with pytest.raises(SessionStateError):
                await client.step("nowhere")
            await client.reset()

    asyncio.run(play())


@pytest.mark.parametrize("payload", [{"message": object()}, {"message": float("nan")}, "text", None])
def test_an_action_without_a_json_form_is_not_sent(talk, payload):
    async def play():
        async with TalkClient(talk) as client:
            await client.reset()
            client._step_payload = lambda action: payload
            with pytest.raises(ValueMappingError):
                await client.step("x")
            assert (await client.state())["step_count"] == 0

    asyncio.run(play())


def test_a_client_is_used_under_one_event_loop_after_another(talk):
    client = TalkClient(talk)

    async def begin():
        await client.reset()

    async def go_on():
        assert (await client.step("still here")).observation == "still here"

    asyncio.run(begin())
    asyncio.run(go_on())
    assert client.sync().state()["step_count"] == 1
    asyncio.run(client.close())


def test_a_client_may_be_opened_again_after_its_close(talk):
    client = TalkClient(talk)

    async def play():
        async with client:
            await client.reset()
            await client.step("x")

    asyncio.run(play())
    with pytest.raises(SessionStateError) as caught:
        asyncio.run(client.step("closed"))
    assert caught.value.state == "closed"
    asyncio.run(play())
    asyncio.run(client.close())
    asyncio.run(client.close())


def test_a_disconnected_client_steps_only_after_another_reset(talk):
    async def play():
        async with TalkClient(talk) as client:
            await client.reset()
            await client.disconnect()
            await client.disconnect()
            for call in (client.step("x"), client.state()):
                with pytest.raises(SessionStateError):
                    await call
            await client.connect()
            with pytest.raises(SessionStateError):
                await client.step("x")
            await client.reset()
            await client.step("x")

    asyncio.run(play())


def test_connecting_twice_keeps_the_session(talk):
    async def play():
        async with TalkClient(talk) as client:
            await client.reset()
            await client.step("x")
            assert await client.connect() is client
            assert (await client.state())["step_count"] == 1

    asyncio.run(play())


def test_a_sync_with_is_refused_and_names_the_way(talk):
    client = TalkClient(talk)
    with pytest.raises(TypeError, match="sync"), client:
        pass
    assert client.__exit__(None, None, None) is None


def test_new_sessions_are_of_the_same_class_have_a_life_of_their_own_and_end_with_the_first(talk):
    class Counting(TalkClient):
        def __init__(self, url, label):
            super().__init__(url)
            self.label = label

    async def play():
        async with Counting(talk, "mine") as client:
            await client.reset()
            child = await client.new_session()
            assert (type(child), child.label) == (Counting, "mine")
            with pytest.raises(SessionStateError):
                await child.step("x")
            await child.reset()
            await child.step("x")
            assert (await client.state())["step_count"] == 0
        with pytest.raises(SessionStateError) as caught:
            await child.step("x")
        assert caught.value.state == "closed"

    asyncio.run(play())


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda client: pickle.loads(pickle.dumps(client))])
def test_a_copy_has_the_settings_and_opens_a_session_of_its_own(talk, twin):
    async def play():
        async with TalkClient(talk, headers={"X-Name": "value"}) as client:
            await client.reset()
            other = twin(client)
            assert (other.base_url, other.mode, other._settings) == (talk, "simulation", client._settings)
            with pytest.raises(SessionStateError) as caught:
                await other.step("x")
            assert caught.value.state == "new"
            async with other:
                await other.reset()
                await other.step("x")
            assert (await client.state())["step_count"] == 0

    asyncio.run(play())


def test_timeouts_of_one_step_go_with_it_and_other_keywords_are_named_in_a_warning(talk):
    async def play():
        async with TalkClient(talk) as client:
            await client.reset()
            await client.step("x", timeout_s=5.0)
            with pytest.warns(OpenEnvGymWarning, match=r"\['speed'\]") as caught:
                await client.step("x", timeout_s=None, speed=2)
            assert caught[0].filename == __file__

    asyncio.run(play())


def test_what_the_server_notes_becomes_a_warning_and_is_not_in_the_metadata():
    from openenv_gym_server import create_app
    from tests.openenv_gym.talking import Heard, OurTalk, Say

    class Noting(OurTalk):
        def reset(self, seed=None):
            return Heard(text=self.begin(None, {}))

    class MetaClient(TalkClient):
        def _parse_result(self, payload):
            return payload

    async def play(url):
        async with MetaClient(url) as client:
            with pytest.warns(OpenEnvGymWarning, match="split") as caught:
                payload = await client.reset(split="test")
            assert caught[0].filename == __file__
            assert payload.pop("observation")["text"] == "ready {}"
            assert payload == {"reward": None, "done": False}

    with serve(create_app(Noting, Say, Heard)) as url:
        asyncio.run(play(url))


def test_reset_keywords_arrive_with_their_exact_types():
    async def play(url):
        from openenv_gym.generic_client import GenericEnvClient

        async with GenericEnvClient(url) as client:
            result = await client.reset(options={"pair": (1, 2)})
            assert "x-gymnasium-info" in result.metadata

    with serve(create_gym_app(Sleepy)) as url:
        asyncio.run(play(url))


@pytest.mark.parametrize("mode", ["Production", "PRODUCTION"])
def test_production_has_no_reset_step_and_state(mode):
    client = TalkClient("http://127.0.0.1:1", mode=mode)

    async def call_all():
        for call in (client.reset(), client.step("x"), client.state()):
            with pytest.raises(ModeError) as caught:
                await call
            assert caught.value.mode == "production"

    asyncio.run(call_all())
    with pytest.raises(AttributeError):
        client.mode = "simulation"


def test_a_server_that_does_not_answer_is_named():
    client = TalkClient("http://127.0.0.1:1")
    for call in (client.connect, client.reset, client.state, client.new_session):
        with pytest.raises(UnreachableError):
            asyncio.run(call())
    asyncio.run(client.close())


@pytest.mark.parametrize(
    ("arguments", "setting"),
    [
        ({}, "base_url"),
        ({"base_url": "ftp://host"}, "base_url"),
        ({"base_url": "host", "mode": "training"}, "mode"),
        ({"base_url": "host", "connect_timeout_s": 0}, "connect_timeout_s"),
        ({"base_url": "host", "provider": object()}, "provider"),
        ({"base_url": "host", "settings": {}}, "settings"),
        ({"base_url": "host", "session_id": 5}, "session_id"),
        ({"base_url": "host", "headers": {"a b": "c"}}, "headers"),
    ],
)
def test_arguments_that_cannot_be_are_refused_at_once(arguments, setting):
    with pytest.raises(SettingsError) as caught:
        TalkClient(**arguments)
    assert caught.value.setting == setting


def test_hooks_that_are_missing_are_python_s_own_error():
    kind: Any = EnvClient
    with pytest.raises(TypeError):
        kind("http://host")


def test_headers_are_sent_with_the_handshake(serve_checked):
    url, seen = serve_checked

    async def play():
        settings = ConnectionSettings(headers={"X-One": "1"})
        async with TalkClient(url, headers={"Authorization": "Bearer secret"}, settings=settings):
            pass

    asyncio.run(play())
    assert (seen["authorization"], seen["x-one"]) == ("Bearer secret", "1")


@pytest.fixture
def serve_checked():
    from openenv_gym_server import create_app
    from tests.openenv_gym.talking import Heard, OurTalk, Say

    seen = {}
    app = create_app(OurTalk, Say, Heard)

    async def noting(scope, receive, send):
        if scope["type"] == "websocket":
            seen.update({name.decode(): value.decode() for name, value in scope["headers"]})
        await app(scope, receive, send)

    with serve(noting) as url:
        yield url, seen


def test_a_kept_session_is_attached_to_where_it_stands():
    import httpx

    from tests.openenv_gym.talking import serve_talk

    async def play(url, session_id):
        async with TalkClient(url, session_id=session_id) as client:
            assert (await client.step("on")).observation == "on"
            assert (await client.state())["step_count"] == 1
            await client.disconnect()
            await client.connect()
            assert (await client.state())["step_count"] == 1
            await client.reset()

    with serve_talk("ours") as url:
        with httpx.Client(trust_env=False) as http:
            session_id = http.post(f"{url}/reset", json={}, headers={"X-OpenEnv-Session": "new"}).headers[
                "X-OpenEnv-Session"
            ]
        asyncio.run(play(url, session_id))


def test_nothing_is_left_to_warn_about_when_a_client_is_forgotten(talk):
    import gc

    async def play():
        client = TalkClient(talk)
        await client.reset()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        asyncio.run(play())
        gc.collect()


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_a_reward_that_is_not_finite_is_a_number(word):
    from openenv_gym_server import create_app
    from tests.openenv_gym.talking import Heard, OurTalk, Say

    class Odd(OurTalk):
        def step(self, action):
            return Heard(text="", reward=float(word))

    with serve(create_app(Odd, Say, Heard)) as url, GenericEnvClient(url).sync() as client:
        client.reset()
        assert repr(client.step({"message": ""}).reward) == repr(float(word))
