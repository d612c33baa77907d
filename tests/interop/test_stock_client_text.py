"""The reference's own client, ``openenv`` 0.10.0, on our server: what ``test_matrix.py`` does not ask of all pairs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from openenv import GenericEnvClient
from openenv.core.env_server import interfaces as stock

from openenv_gym_server.app import create_app
from tests.serving import serve
from tests.text_envs import Echo, Heard, Say


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve(create_app(Echo, Say, Heard)) as url:
        yield url


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
