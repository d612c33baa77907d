"""The reference's own clients, ``openenv`` 0.10.0, on our server with an environment of text."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from openenv import GenericEnvClient
from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.env_server import interfaces as stock

from openenv_gym_server.app import create_app
from tests.serving import serve
from tests.text_envs import Echo, Heard, Say


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve(create_app(Echo, Say, Heard)) as url:
        yield url


def test_the_synchronous_client_plays_an_episode(url: str) -> None:
    with GenericEnvClient(base_url=url).sync() as client:
        first = client.reset(seed=3, episode_id="one")
        assert first.observation["echo"] == "ready"
        assert (first.reward, first.done) == (None, False)
        answer = client.step({"message": "hello"})
        assert (answer.observation["echo"], answer.reward, answer.done) == ("hello", 1.0, False)
        assert client.step({"message": "bye"}).done
        assert client.state() == {"episode_id": "one", "step_count": 2}


def test_the_asynchronous_client_plays_an_episode(url: str) -> None:
    async def main() -> None:
        async with GenericEnvClient(base_url=url) as client:
            await client.reset()
            assert (await client.step({"message": "hello"})).observation["echo"] == "hello"
            state = await client.state()
            assert state["step_count"] == 1
            assert state["episode_id"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("action", "code"),
    [
        ({"message": "rude"}, "VALIDATION_ERROR"),
        ({"message": 5}, "VALIDATION_ERROR"),
        ({}, "VALIDATION_ERROR"),
        ({"message": "x", "volume": float("nan")}, "INVALID_JSON"),
        ({"message": "raise"}, "EXECUTION_ERROR"),
        ({"message": "exit"}, "EXECUTION_ERROR"),
        ({"message": "object"}, "EXECUTION_ERROR"),
    ],
)
def test_an_error_leaves_the_stock_clients_session_alive(url: str, action: dict[str, object], code: str) -> None:
    with GenericEnvClient(base_url=url).sync() as client:
        client.reset(episode_id="one")
        with pytest.raises(RuntimeError, match=code):
            client.step(action)
        assert client.step({"message": "on"}).observation["echo"] == "on"
        assert client.state()["episode_id"] == "one"


def test_a_typed_client_builds_its_observation(url: str) -> None:
    class Client(EnvClient[Say, Heard, dict]):  # type: ignore[type-arg, type-var]
        def _step_payload(self, action: Say) -> dict[str, object]:
            return action.model_dump()

        def _parse_result(self, payload: dict[str, object]) -> StepResult[Heard]:
            observation = Heard(**payload["observation"])  # type: ignore[arg-type]
            return StepResult(observation=observation, reward=payload["reward"], done=payload["done"])  # type: ignore[arg-type]

        def _parse_state(self, payload: dict[str, object]) -> dict[str, object]:
            return payload

    with Client(base_url=url).sync() as client:
        client.reset()
        assert client.step(Say(message="hello")).observation == Heard(echo="hello")


def test_a_full_server_is_told_to_the_stock_client() -> None:
    with serve(create_app(Echo, Say, Heard, max_concurrent_envs=1)) as url:
        with GenericEnvClient(base_url=url).sync() as first:
            first.reset()
            with (
                pytest.raises((RuntimeError, ConnectionError), match="Server at capacity: 1/1"),
                GenericEnvClient(base_url=url).sync() as second,
            ):
                second.reset()
            assert first.step({"message": "on"}).reward == 1.0
        with GenericEnvClient(base_url=url).sync() as third:
            assert third.reset().observation["echo"] == "ready"


def test_an_environment_written_against_openenv_is_served_as_it_is() -> None:
    from openenv.core.env_server.types import Action, Observation, State

    class Shout(Action):
        message: str

    class Echoed(Observation):
        echo: str = ""

    class Canyon(stock.Environment[Shout, Echoed, State]):
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self) -> None:
            super().__init__()
            self._state = State()

        def reset(self, seed=None, episode_id=None, **kwargs):  # type: ignore[no-untyped-def]
            self._state = State(episode_id=episode_id, step_count=0)
            return Echoed(echo="silence")

        def step(self, action, timeout_s=None, **kwargs):  # type: ignore[no-untyped-def]
            self._state.step_count += 1
            return Echoed(echo=action.message * 2, reward=0.5)

        @property
        def state(self) -> State:
            return self._state

    with serve(create_app(Canyon, Shout, Echoed)) as url, GenericEnvClient(base_url=url).sync() as client:
        client.reset(episode_id="one")
        assert client.step({"message": "ho"}).observation["echo"] == "hoho"
        assert client.state() == {"episode_id": "one", "step_count": 1}
