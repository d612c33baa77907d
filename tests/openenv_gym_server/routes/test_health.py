"""Tests of ``openenv_gym_server.routes.health``."""

from __future__ import annotations

from starlette.testclient import TestClient

from openenv_gym_server.app import create_app
from openenv_gym_server.settings import ServerSettings
from tests.text_envs import Echo, Heard, Say


def test_a_working_environment_is_ready_and_is_tried_once_in_a_while() -> None:
    made: list[Echo] = []

    def factory() -> Echo:
        made.append(Echo())
        return made[-1]

    with TestClient(create_app(factory, Say, Heard)) as client:
        for _ in range(3):
            capacity = {"active_sessions": 0, "max_sessions": 64}
            assert client.get("/ready").json() == {"status": "ready", "capacity": capacity}
        assert [env.calls for env in made] == [["reset None"]]
        assert made[0].closed == 1
        assert client.get("/health").json() == {"status": "healthy"}


def test_an_environment_that_cannot_reset_is_not_ready() -> None:
    class Grumpy(Echo):
        def reset(self, seed: int | None = None) -> Heard:
            raise RuntimeError("the simulator is missing")

    with TestClient(create_app(Grumpy, Say, Heard)) as client:
        answer = client.get("/ready")
        assert answer.status_code == 503
        assert answer.json()["status"] == "unavailable"
        assert answer.json()["reason"] == "the simulator is missing"
        assert client.get("/health").status_code == 200


def test_readiness_comes_with_the_capacity() -> None:
    with TestClient(create_app(Echo, Say, Heard, max_concurrent_envs=3)) as client:
        client.post("/reset", headers={"X-OpenEnv-Session": "new"})
        assert client.get("/ready").json()["capacity"] == {"active_sessions": 1, "max_sessions": 3}
    unlimited = ServerSettings(max_concurrent_envs="unlimited")
    with TestClient(create_app(Echo, Say, Heard, settings=unlimited)) as client:
        assert client.get("/ready").json()["capacity"]["max_sessions"] is None


def test_a_live_session_is_proof_enough() -> None:
    made: list[Echo] = []

    def factory() -> Echo:
        made.append(Echo())
        return made[-1]

    with TestClient(create_app(factory, Say, Heard)) as client, client.websocket_connect("/ws") as socket:
        socket.send_text('{"type":"reset"}')
        socket.receive_text()
        assert client.get("/ready").status_code == 200
        assert len(made) == 1
