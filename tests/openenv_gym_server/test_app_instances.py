"""One environment instance given to ``create_app``: lent to one session at a time, never closed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from openenv_gym.errors import SettingsError
from openenv_gym_server import Environment, create_app
from openenv_gym_server.settings import ServerSettings
from tests.serving import serve
from tests.sockets import ask, socket_of, until
from tests.text_envs import Bare, Echo, Heard, Say

NEW = {"X-OpenEnv-Session": "new"}
WAIT_S = 10.0


@dataclass
class MyAction:
    move: int


@dataclass
class MyObservation:
    position: int
    reward: float | None = None
    done: bool = False


@dataclass
class MyState:
    episode_id: str | None = None
    step_count: int = 0
    position: int = 0


class MyEnvironment(Environment):  # type: ignore[type-arg]
    """Written as short as OpenEnv's own introduction writes one."""

    def reset(self) -> MyObservation:  # type: ignore[override]
        self.position = 0
        self.steps = 0
        return MyObservation(position=0)

    def step(self, action: MyAction) -> MyObservation:  # type: ignore[override]
        self.position += action.move
        self.steps += 1
        return MyObservation(position=self.position, reward=float(action.move), done=self.position >= 3)

    @property
    def state(self) -> MyState:
        return MyState(step_count=self.steps, position=self.position)


@pytest.fixture
def client() -> Iterator[TestClient]:
    env = MyEnvironment()
    app = create_app(env, MyAction, MyObservation)
    with TestClient(app) as client:
        yield client


def step(message: str) -> dict[str, Any]:
    return {"type": "step", "data": {"message": message}}


def test_an_environment_of_dataclasses_is_served(client: TestClient) -> None:
    with client.websocket_connect("/ws") as socket:
        assert ask(socket, {"type": "reset"})["data"] == {"observation": {"position": 0}, "reward": None, "done": False}
        for position, done in ((2, False), (4, True)):
            assert ask(socket, {"type": "step", "data": {"move": 2}})["data"] == {
                "observation": {"position": position},
                "reward": 2.0,
                "done": done,
            }
        assert ask(socket, {"type": "state"})["data"] == {"episode_id": None, "step_count": 2, "position": 4}
        assert ask(socket, {"type": "step", "data": {"move": "far"}})["data"]["code"] == "VALIDATION_ERROR"
    schema = client.get("/schema").json()
    assert set(schema["state"]["properties"]) == {"episode_id", "step_count", "position"}
    assert set(schema["action"]["properties"]) == {"move"}


def test_single_http_requests_play_one_episode_of_it(client: TestClient) -> None:
    assert client.post("/reset", json={"episode_id": "mine"}).json()["observation"] == {"position": 0}
    client.post("/step", json={"action": {"move": 1}})
    answer = client.post("/step", json={"action": {"move": 1}}).json()
    assert (answer["observation"], answer["reward"]) == ({"position": 2}, 1.0)
    assert client.get("/state").json() == {"episode_id": None, "step_count": 2, "position": 2}


def test_its_episode_is_counted_and_named_from_request_to_request_and_session_to_session() -> None:
    with TestClient(create_app(Bare(), Say, Heard)) as client:
        client.post("/reset", json={"episode_id": "mine"})
        client.post("/step", json={"action": {"message": "a"}})
        assert client.get("/state").json() == {"episode_id": "mine", "step_count": 1}
        with client.websocket_connect("/ws") as socket:
            ask(socket, step("b"))
            assert ask(socket, {"type": "state"})["data"] == {"episode_id": "mine", "step_count": 2}
        client.post("/step", json={"action": {"message": "c"}})
        assert client.get("/state").json() == {"episode_id": "mine", "step_count": 3}
        client.post("/reset")
        assert client.get("/state").json()["step_count"] == 0


def busy_over_http(client: TestClient) -> None:
    for method, path, body in (
        ("POST", "/reset", {}),
        ("POST", "/step", {"action": {"message": "a"}}),
        ("GET", "/state", None),
    ):
        answer = client.request(method, path, json=body)
        assert answer.status_code == 503
        assert answer.json()["code"] == "CAPACITY_REACHED"
        assert (answer.json()["active_sessions"], answer.json()["max_sessions"]) == (1, 1)
        assert "one environment instance" in answer.json()["detail"]
    assert client.post("/reset", headers=NEW).status_code == 503


def busy_over_a_socket(client: TestClient) -> None:
    with client.websocket_connect("/ws") as other:
        refusal = other.receive_json()["data"]
        assert refusal["code"] == "CAPACITY_REACHED"
        assert "give it the class to serve more sessions" in refusal["message"]
        assert other.receive()["code"] == 1000


def test_a_socket_that_has_it_keeps_everyone_else_out_and_then_lets_them_in() -> None:
    env = Echo()
    with TestClient(create_app(env, Say, Heard)) as client:
        with client.websocket_connect("/ws") as socket:
            ask(socket, {"type": "reset"})
            busy_over_http(client)
            busy_over_a_socket(client)
            assert ask(socket, step("undisturbed"))["data"]["observation"]["echo"] == "undisturbed"
            assert env.calls == ["reset None", "undisturbed"]
        assert client.post("/step", json={"action": {"message": "mine now"}}).status_code == 200
        with client.websocket_connect("/ws") as socket:
            assert ask(socket, {"type": "reset"})["type"] == "observation"


def test_a_session_kept_over_http_has_it_until_it_is_deleted() -> None:
    env = Echo()
    with TestClient(create_app(env, Say, Heard)) as client:
        name = client.post("/reset", headers=NEW).headers["X-OpenEnv-Session"]
        busy_over_http(client)
        busy_over_a_socket(client)
        with client.websocket_connect(f"/ws?session_id={name}") as socket:
            assert ask(socket, step("a"))["type"] == "observation"
        assert client.post("/step", headers={"X-OpenEnv-Session": name}, json={"action": {"message": "b"}}).json()
        assert client.delete(f"/session/{name}").status_code == 204
        assert client.post("/reset").status_code == 200
    assert env.closed == 0


def test_questions_are_answered_while_a_session_has_it() -> None:
    with TestClient(create_app(Echo(), Say, Heard)) as client, client.websocket_connect("/ws") as socket:
        ask(socket, {"type": "reset"})
        for path in ("/health", "/ready", "/metadata", "/schema", "/list_environments"):
            assert client.get(path).status_code == 200


def test_it_is_never_closed_and_always_called_on_the_one_thread() -> None:
    env = Echo()
    env.threads.clear()
    with TestClient(create_app(env, Say, Heard)) as client:
        for _ in range(3):
            client.post("/reset")
            client.post("/step", json={"action": {"message": "raise"}})
            client.get("/metadata")
            with client.websocket_connect("/ws") as socket:
                ask(socket, {"type": "reset"})
                ask(socket, step("exit"))
                ask(socket, step("object"))
            client.delete(f"/session/{client.post('/reset', headers=NEW).headers['X-OpenEnv-Session']}")
    assert env.closed == 0
    assert len(env.threads) == 1
    assert threading.get_ident() not in env.threads


class Quick(Echo):
    INLINE = True

    def num_tasks(self, split: str) -> int:
        self.threads.add(threading.get_ident())
        return 1


def test_it_is_on_its_one_thread_also_where_its_class_may_be_on_the_event_loop() -> None:
    env = Quick()
    env.threads.clear()
    with TestClient(create_app(env, Say, Heard, env_name="quick")) as client, client.websocket_connect("/ws") as socket:
        ask(socket, {"type": "reset"})
        for _ in range(3):
            ask(socket, step("a"))
            client.post("/quick/num_tasks", json={"split": "a"})
    assert len(env.threads) == 1


def test_it_survives_the_end_of_its_application() -> None:
    env = Echo()
    app = create_app(env, Say, Heard)
    for _ in range(2):
        with TestClient(app) as client, client.websocket_connect("/ws") as socket:
            assert ask(socket, {"type": "reset"})["type"] == "observation"
    assert env.closed == 0


class Crowded(Echo):
    """Counts who is in it at the same time, and lets itself be held there."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = 0
        self.most = 0
        self.entered = threading.Event()
        self.free = threading.Event()
        self.free.set()

    def step(self, action: Say) -> Heard:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.entered.set()
        assert self.free.wait(WAIT_S)
        try:
            return super().step(action)
        finally:
            self.inside -= 1


def test_single_http_requests_wait_for_one_another() -> None:
    env = Crowded()
    with TestClient(create_app(env, Say, Heard)) as client, ThreadPoolExecutor(8) as pool:
        body = {"action": {"message": "a"}}
        answers = list(pool.map(lambda _: client.post("/step", json=body).status_code, range(40)))
    assert answers == [200] * 40
    assert env.most == 1


def test_whoever_waits_too_long_for_a_single_request_is_told_that_it_is_busy() -> None:
    env = Crowded()
    env.free.clear()
    settings = ServerSettings(close_timeout_s=0.1)
    with serve(create_app(env, Say, Heard, settings=settings)) as url, ThreadPoolExecutor(1) as pool:

        def slow() -> int:
            return httpx.post(f"{url}/step", json={"action": {"message": "a"}}, trust_env=False).status_code

        first = pool.submit(slow)
        assert env.entered.wait(WAIT_S)
        try:
            assert httpx.get(f"{url}/state", trust_env=False).status_code == 503
            with socket_of(url) as socket:
                assert ask_nothing(socket)["data"]["code"] == "CAPACITY_REACHED"
        finally:
            env.free.set()
        assert first.result(WAIT_S) == 200
        assert httpx.get(f"{url}/state", trust_env=False).status_code == 200


def ask_nothing(socket: Any) -> Any:
    return json.loads(socket.recv(timeout=WAIT_S))


def test_a_peer_that_vanishes_gives_it_back() -> None:
    env = Echo()
    with serve(create_app(env, Say, Heard)) as url:
        with socket_of(url) as socket:
            ask(socket, {"type": "reset"})
            socket.socket.close()  # no closing handshake

        def free() -> bool:
            with socket_of(url) as other:
                other.send('{"type": "state"}')
                return ask_nothing(other)["type"] == "state"

        until(free)
    assert env.closed == 0


def test_it_may_be_callable_and_need_not_be_of_our_class() -> None:
    class Callable(Bare):
        def __call__(self) -> None:
            raise AssertionError("this is no factory")

    with TestClient(create_app(Callable(), Say, Heard)) as client:
        assert client.post("/reset").json()["observation"]["echo"] == "bare"


def test_it_cannot_be_several_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_CONCURRENT_ENVS", "4")
    with pytest.raises(SettingsError, match="MAX_CONCURRENT_ENVS out for it") as caught:
        create_app(Echo(), Say, Heard)
    assert caught.value.setting == "max_concurrent_envs"
