"""Tests of ``openenv_gym_server.routes.episode``."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from openenv_gym.types import Observation
from openenv_gym_server.app import create_app
from openenv_gym_server.routes.episode import SESSION_HEADER
from openenv_gym_server.settings import ServerSettings
from tests.serving import serve
from tests.sockets import serving, until
from tests.text_envs import Broken, Echo, Heard, Say

NEW = {"X-OpenEnv-Session": "new"}
WAIT_S = 10.0


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(create_app(Echo, Say, Heard)) as client:
        yield client


def test_results_have_the_references_shape(client: TestClient) -> None:
    assert client.post("/reset").json() == {
        "observation": {"metadata": {}, "echo": "ready", "extra": None},
        "reward": None,
        "done": False,
        "metadata": None,
    }
    answer = client.post("/step", json={"action": {"message": "bye"}}).json()
    assert answer["reward"] == 1.0
    assert answer["done"] is True
    assert client.get("/state").json() == {"episode_id": None, "step_count": 0}


@pytest.mark.parametrize("body", [b"", b"null", b"{}", b'{"seed": 3, "episode_id": "a", "more": 1}'])
def test_reset_takes_any_of_these_bodies(client: TestClient, body: bytes) -> None:
    assert client.post("/reset", content=body).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "loc", "kind"),
    [
        ("/reset", b"{", ["body"], "json_invalid"),
        ("/reset", b'{"seed": NaN}', ["body"], "json_invalid"),
        ("/reset", b"[1]", ["body"], "model_attributes_type"),
        ("/reset", b'{"seed": -1}', ["body", "seed"], "greater_than_equal"),
        ("/reset", b'{"seed": true}', ["body", "seed"], "int_type"),
        ("/reset", b'{"seed": "7"}', ["body", "seed"], "int_type"),
        ("/reset", b'{"episode_id": "' + b"x" * 256 + b'"}', ["body", "episode_id"], "string_too_long"),
        ("/step", b"", ["body"], "missing"),
        ("/step", b"{}", ["body", "action"], "missing"),
        ("/step", b'{"action": 5}', ["body", "action"], "dict_type"),
        ("/step", b'{"action": {"message": "x"}, "timeout_s": 0}', ["body", "timeout_s"], "greater_than"),
        ("/step", b'{"action": {}}', ["message"], "missing"),
        ("/step", b'{"action": {"message": "rude"}}', ["message"], "value_error"),
        ("/step", b'{"action": {"message": "x", "colour": 1}}', ["colour"], "extra_forbidden"),
    ],
)
def test_bad_bodies_are_refused_with_their_path(
    client: TestClient, path: str, body: bytes, loc: list[str], kind: str
) -> None:
    answer = client.post(path, content=body)
    assert answer.status_code == 422
    fault = answer.json()["detail"][0]
    assert fault["loc"][: len(loc)] == loc
    assert fault["type"] == kind


def test_a_large_bad_body_is_refused_too(client: TestClient) -> None:
    answer = client.post("/step", content=b'{"action": {"message": "' + b"x" * 1_100_000)
    assert answer.status_code == 422


@pytest.mark.parametrize("message", ["raise", "exit", "silent", "pydantic"])
def test_what_the_environment_raises_is_500_without_its_text(client: TestClient, message: str) -> None:
    answer = client.post("/step", json={"action": {"message": message}})
    assert answer.status_code == 500
    assert answer.text == "Internal Server Error"
    assert answer.headers["content-type"].startswith("text/plain")
    assert client.get("/health").status_code == 200


def test_an_observation_that_cannot_be_sent_is_500_with_what_is_lost(client: TestClient) -> None:
    answer = client.post("/step", json={"action": {"message": "object"}})
    assert answer.status_code == 500
    assert answer.json()["detail"] == (
        "the observation cannot be sent as JSON: expected a value with a JSON form at $.extra, got builtins.object; "
        "the environment has already advanced"
    )


def test_a_reward_is_a_float_and_one_that_is_not_finite_is_named() -> None:
    class Odd(Echo):
        def step(self, action: Say) -> Observation:  # type: ignore[override]
            return Observation(reward=True if action.message == "true" else float(action.message))

    with TestClient(create_app(Odd, Say, Heard)) as client:
        answer = client.post("/step", json={"action": {"message": "true"}})
        assert '"reward":1.0' in answer.text
        answer = client.post("/step", json={"action": {"message": "-inf"}}).json()
        assert answer["reward"] is None
        assert answer["metadata"] == {"reward": "-Infinity"}


def test_extra_fields_reach_a_step_that_takes_them() -> None:
    seen: dict[str, Any] = {}

    class Wide(Echo):
        def step(self, action: Say, timeout_s: float | None = None, **kwargs: Any) -> Heard:
            seen.update(kwargs, timeout_s=timeout_s)
            return Heard()

    with TestClient(create_app(Wide, Say, Heard)) as client:
        client.post("/step", json={"action": {"message": "x"}, "timeout_s": "2", "request_id": "r", "speed": 3})
    assert seen == {"timeout_s": 2.0, "request_id": "r", "speed": 3}


def test_a_kept_session_is_one_environment_until_it_is_deleted(client: TestClient) -> None:
    first = client.post("/reset", json={"seed": 3, "episode_id": "one"}, headers=NEW)
    header = {"X-OpenEnv-Session": first.headers["X-OpenEnv-Session"]}
    for _ in range(3):
        answer = client.post("/step", json={"action": {"message": "x"}}, headers=header)
        assert answer.headers["X-OpenEnv-Session"] == header["X-OpenEnv-Session"]
    assert client.get("/state", headers=header).json() == {"episode_id": "one", "step_count": 3}
    client.post("/reset", headers=header)
    assert client.get("/state", headers=header).json()["step_count"] == 0
    path = f"/session/{header['X-OpenEnv-Session']}"
    assert client.delete(path).status_code == 204
    assert client.delete(path).status_code == 404
    gone = client.post("/step", json={"action": {"message": "x"}}, headers=header)
    assert gone.status_code == 404
    assert "Unknown session_id" in gone.json()["detail"]


def test_only_reset_opens_a_kept_session(client: TestClient) -> None:
    assert client.post("/step", json={"action": {"message": "x"}}, headers=NEW).status_code == 404


def test_kept_sessions_count_and_are_refused_when_full() -> None:
    with TestClient(create_app(Echo, Say, Heard, max_concurrent_envs=1)) as client:
        assert client.post("/reset", headers=NEW).status_code == 200
        refused = client.post("/reset", headers=NEW)
        assert refused.status_code == 503
        assert refused.json()["code"] == "CAPACITY_REACHED"
        assert refused.json()["max_sessions"] == 1
        # Requests without a session are not counted, as in the reference.
        assert client.post("/reset").status_code == 200


def test_a_first_reset_that_fails_keeps_nothing() -> None:
    class Grumpy(Echo):
        def reset(self, seed: int | None = None) -> Heard:
            raise RuntimeError("no")

    with TestClient(create_app(Grumpy, Say, Heard, max_concurrent_envs=1)) as client:
        for _ in range(2):
            assert client.post("/reset", headers=NEW).status_code == 500


def test_a_broken_factory_is_500_and_not_ready() -> None:
    with TestClient(create_app(Broken, Say, Heard)) as client:
        for path in ("/metadata", "/schema", "/state"):
            answer = client.get(path)
            assert (answer.status_code, answer.text) == (500, "Internal Server Error")
        assert client.post("/reset").status_code == 500
        assert client.get("/health").json() == {"status": "healthy"}
        ready = client.get("/ready")
        assert ready.status_code == 503
        assert "no such device" in ready.json()["reason"]


def test_production_has_no_episode_routes() -> None:
    with TestClient(create_app(Echo, Say, Heard, mode="production")) as client:
        assert client.post("/reset").status_code == 404
        assert client.post("/step").status_code == 404
        assert client.get("/state").status_code == 404
        paths = client.get("/openapi.json").json()["paths"]
        assert not {"/reset", "/step", "/state"} & paths.keys()


def test_the_openapi_document_has_the_bodies(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/reset", "/step", "/state", "/health", "/metadata", "/schema"} <= paths.keys()
    assert "action" in paths["/step"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]


def test_a_body_above_the_limit_is_cut_off_while_it_streams() -> None:
    with serve(create_app(Echo, Say, Heard, settings=ServerSettings(max_message_size_mb=0.1))) as url:

        def chunks() -> Iterator[bytes]:
            for _ in range(50):
                yield b"x" * 10_000

        with httpx.Client(trust_env=False) as client:
            answer = client.post(url + "/step", content=chunks())
        assert answer.status_code == 413
        assert "max_message_size_mb" in answer.json()["detail"]


def test_an_idle_kept_session_is_ended() -> None:
    closed = threading.Event()

    class Watched(Echo):
        def close(self) -> None:
            closed.set()

    settings = ServerSettings(session_timeout_s=0.1)
    with TestClient(create_app(Watched, Say, Heard, settings=settings)) as client:
        kept = client.post("/reset", headers=NEW).headers["X-OpenEnv-Session"]
        assert closed.wait(WAIT_S)
        assert client.get("/state", headers={"X-OpenEnv-Session": kept}).status_code == 404


def test_a_time_limit_of_the_operator_is_504_and_ends_the_kept_session() -> None:
    leave = threading.Event()

    class Slow(Echo):
        def step(self, action: Say) -> Heard:
            assert leave.wait(WAIT_S)
            return Heard()

    with TestClient(create_app(Slow, Say, Heard, settings=ServerSettings(step_timeout_s=0.1))) as client:
        kept = client.post("/reset", headers=NEW).headers
        header = {"X-OpenEnv-Session": kept["X-OpenEnv-Session"]}
        body = {"action": {"message": "x"}}
        assert client.post("/step", json=body, headers=header).status_code == 504
        assert client.post("/step", json=body, headers=header).status_code == 404
        assert client.post("/step", json=body).status_code == 504
        leave.set()


@pytest.mark.parametrize("path", ["/health", "/metadata", "/schema", "/state", "/"])
def test_foreign_pages_are_refused(client: TestClient, path: str) -> None:
    refused = client.get(path, headers={"Origin": "https://evil.example"})
    assert refused.status_code == 403
    assert "OPENENV_ALLOWED_ORIGINS" in refused.json()["detail"]
    assert client.get(path, headers={"Origin": "http://testserver"}).status_code == 200


def test_a_step_longer_than_the_requests_own_limit_ends_its_session() -> None:
    leave, closed = threading.Event(), threading.Event()

    class Slow(Echo):
        def step(self, action: Say, timeout_s: float | None = None) -> Heard:
            if timeout_s is not None:
                assert leave.wait(WAIT_S)
            return super().step(action)

        def close(self) -> None:
            super().close()
            closed.set()

    with TestClient(create_app(Slow, Say, Heard, settings=ServerSettings(step_timeout_s=30))) as client:
        kept = {"X-OpenEnv-Session": client.post("/reset", headers=NEW).headers["X-OpenEnv-Session"]}
        for headers in ({}, kept):
            leave.clear()
            closed.clear()
            body = {"action": {"message": "x"}, "timeout_s": 0.02}
            answer = client.post("/step", json=body, headers=headers)
            assert answer.status_code == 504
            assert "the request's timeout_s=0.02" in answer.json()["detail"]
            leave.set()
            assert closed.wait(WAIT_S)
        assert client.post("/step", json={"action": {"message": "x"}}, headers=kept).status_code == 404
        assert client.post("/step", json={"action": {"message": "x"}, "timeout_s": 30}).status_code == 200


class Paced(Echo):
    """Waits while it is made or reset, as its class says."""

    where = "factory"
    begun: threading.Event
    leave: threading.Event

    def __init__(self) -> None:
        super().__init__()
        self._pause("factory")

    def reset(self, seed: int | None = None) -> Heard:
        self._pause("reset")
        return super().reset(seed)

    def _pause(self, where: str) -> None:
        if where == self.where:
            self.begun.set()
            assert self.leave.wait(WAIT_S)


@pytest.mark.parametrize("where", ["factory", "reset"])
def test_a_session_whose_client_left_before_it_knew_its_name_ends(where: str) -> None:
    paced: type[Paced] = type(
        "Fresh", (Paced,), {"where": where, "begun": threading.Event(), "leave": threading.Event()}
    )
    app, server = serving(paced)
    with serve(app) as url:
        for _ in range(3):
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(url + "/reset", headers=NEW, timeout=0.3)
        assert paced.begun.wait(WAIT_S)
        assert server.active_sessions == 3
        paced.leave.set()
        until(lambda: server.active_sessions == 0)
        assert httpx.post(url + "/reset", headers=NEW).status_code == 200
        assert server.active_sessions == 1


def test_a_client_that_leaves_in_the_middle_of_its_body_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    app, server = serving(Echo)
    with serve(app) as url:
        port = int(url.rpartition(":")[2])
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port)) as broken:
                broken.sendall(b"POST /reset HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        assert httpx.post(url + "/reset").status_code == 200
    assert not caplog.records
    assert server.active_sessions == 0


def test_large_bodies_are_read_and_refused_as_small_ones_are(client: TestClient) -> None:
    large = "x" * 100_000
    assert client.post("/step", json={"action": {"message": large}}).json()["observation"]["echo"] == large
    assert client.post("/reset", json={"seed": large}).status_code == 422
    assert client.post("/reset", content=b"[" + b"1," * 50_000).json()["detail"][0]["type"] == "json_invalid"


def test_the_openapi_document_has_the_session_header_and_the_refusals(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    for path, method in (("/reset", "post"), ("/step", "post"), ("/state", "get")):
        (header,) = paths[path][method]["parameters"]
        assert (header["name"], header["in"], header["required"]) == (SESSION_HEADER, "header", False)
        assert paths[path][method]["responses"].keys() >= {"200", "404", "422", "503", "504"}
