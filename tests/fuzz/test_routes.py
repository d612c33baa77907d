"""Requests made from the server's own OpenAPI document, right ones and wrong ones: every reply is well formed.

A session of somebody else's goes on undisturbed meanwhile. Sockets are ``test_frames.py``'s.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from starlette.testclient import TestClient

from tests.fuzz.served import SERVED, Served
from tests.sockets import ask

BASE_URL = "http://testserver"
EXAMPLES = 20
REFUSALS = {400, 404, 405, 409, 413, 422, 501, 503, 504}
SESSION_HEADER = "X-OpenEnv-Session"


class Target:
    """A served application, with a session of somebody else's on it."""

    def __init__(self, served: Served, client: TestClient, bystander: Any) -> None:
        self.served, self.client, self.bystander = served, client, bystander
        self.kept = client.post("/reset", headers={SESSION_HEADER: "new"}).headers[SESSION_HEADER]
        self.schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
        self.schema.config.update(base_url=BASE_URL)
        self.steps = 0
        ask(bystander, {"type": "reset", "data": {"episode_id": "mine"}})

    def operations(self) -> list[Any]:
        return [result.ok() for result in self.schema.get_all_operations()]

    def send(self, case: Any, session: str | None) -> Any:
        request = requests.Request(**_of_requests(case.as_transport_kwargs(base_url=BASE_URL))).prepare()
        headers = dict(request.headers) | ({SESSION_HEADER: session} if session else {})
        return self.client.request(request.method, request.url, content=request.body, headers=headers)

    def check_bystander(self) -> None:
        self.steps += 1
        if self.served.name == "CartPole-v1" and self.steps == 5:
            ask(self.bystander, {"type": "reset", "data": {"episode_id": "mine"}})
            self.steps = 1
        answer = ask(self.bystander, {"type": "step", "data": self.served.action})
        assert answer["type"] == "observation"
        state = ask(self.bystander, {"type": "state"})["data"]
        assert (state["episode_id"], state["step_count"]) == ("mine", self.steps)


def _of_requests(keywords: dict[str, Any]) -> dict[str, Any]:
    known = {"method", "url", "headers", "files", "data", "params", "auth", "cookies", "json"}
    return {name: value for name, value in keywords.items() if name in known}


@pytest.fixture(params=SERVED)
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    served = SERVED[request.param]
    with TestClient(served.make(), base_url=BASE_URL) as client, client.websocket_connect("/ws") as bystander:
        yield Target(served, client, bystander)


def test_every_route_of_an_openenv_server_is_in_the_document(target: Target) -> None:
    questions = {"/health", "/ready", "/metadata", "/schema", "/list_environments", "/state"}
    tasks = {f"/{{env_name}}/{name}" for name in ("splits", "tasks", "num_tasks", "task", "task_range")}
    episode = {"/reset", "/step", "/session/{session_id}"}
    assert {operation.path for operation in target.operations()} >= questions | tasks | episode


@pytest.mark.parametrize("mode", GenerationMode)
def test_whatever_is_sent_the_reply_is_well_formed_and_others_are_undisturbed(
    target: Target, mode: GenerationMode
) -> None:
    for operation in target.operations():
        if mode is GenerationMode.NEGATIVE and not operation.body:
            continue  # any path is one: only a body can be wrong
        fuzz(target, operation, mode)
        target.check_bystander()


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 500_000 + b"]" * 500_000,
        b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
        b'{"action":' + b'{"a":' * 200_000 + b"1" + b"}" * 200_001,
        b'{"seed":' + b"9" * 1_000_000 + b"}",
        b'{"split":"' + b"\xff" * 1_000 + b'"}',
        b'"\\ud800"',
        b"\xef\xbb\xbf{}",
        b"NaN",
        b"\x00",
    ],
    ids=["lists", "objects", "action", "digits", "not UTF-8", "lone surrogate", "byte order mark", "NaN", "zero"],
)
def test_a_body_that_is_hard_to_read_is_refused_or_read(target: Target, body: bytes) -> None:
    paths = [operation.path for operation in target.operations() if operation.method == "post"]
    for path in paths:
        url = path.replace("{env_name}", target.served.name)
        assert_well_formed(target.client.post(url, content=body, headers={"content-type": "application/json"}))
        target.check_bystander()


def fuzz(target: Target, operation: Any, mode: GenerationMode) -> None:
    sessions = st.sampled_from([None, None, "new", target.kept, "nobody's"])
    anywhere = operation.as_strategy(generation_mode=mode)
    named = {"env_name": target.served.name} if "{env_name}" in operation.path else None
    here = operation.as_strategy(generation_mode=mode, path_parameters=named) if named else anywhere

    @settings(
        max_examples=EXAMPLES,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=st.one_of(anywhere, here), session=sessions)
    def run(case: Any, session: str | None) -> None:
        reply = target.send(case, session)
        assert_well_formed(reply)
        begun = reply.headers.get(SESSION_HEADER)
        if session == "new" and begun is not None:
            assert target.client.delete(f"/session/{begun}").status_code == 204

    run()


def assert_well_formed(reply: Any) -> None:
    assert 200 <= reply.status_code < 300 or reply.status_code in REFUSALS, reply.text
    if reply.status_code in {202, 204}:
        assert reply.content == b""
        return
    assert reply.headers["content-type"] == "application/json"
    content = json.loads(reply.content.decode("utf-8"), parse_constant=no_constant)
    if reply.status_code in REFUSALS - {503}:
        assert content["detail"]


def no_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")
