"""Tests of ``openenv_gym_server.routes.tasks``, side by side with a server of ``openenv`` 0.10.0."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from fastapi import FastAPI
from openenv.core.env_server import create_app as create_stock_app
from openenv.core.env_server.interfaces import Environment as StockEnvironment
from openenv.core.env_server.types import Action as StockAction
from openenv.core.env_server.types import Observation as StockObservation
from pydantic import BaseModel
from starlette.testclient import TestClient

from openenv_gym.types import Action, Observation
from openenv_gym_server.app import create_app
from openenv_gym_server.environment import Environment
from openenv_gym_server.settings import ServerSettings
from tests.text_envs import Echo, Heard, Say, make_broken

ROUTES = ("tasks", "num_tasks", "task", "task_range")


class Task(BaseModel):
    index: int
    question: str


class Split(BaseModel):
    name: str
    type: str
    size: int


class Tasks:
    """What the environments of both sides provide."""

    def list_splits(self) -> list[Any]:
        return [
            "train",
            "test",
            "dev",
            {"name": "extra", "type": "train", "size": 3},
            Split(name="a", type="b", size=1),
        ]

    def list_tasks(self, split: str) -> list[Any]:
        if split == "broken":
            raise RuntimeError("the disk is gone")
        return [{"index": 0, "of": split}, Task(index=1, question="why?"), SimpleNamespace(index=2, parts=[1, (2,)])]

    def num_tasks(self, split: str) -> int:
        return len(self.list_tasks(split))

    def get_task(self, split: str, index: int) -> Any:
        return self.list_tasks(split)[index]

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[Any]:
        return self.list_tasks(split)[start:stop]


class AsyncTasks(Tasks):
    async def list_splits(self) -> list[Any]:  # type: ignore[override]
        return super().list_splits()

    async def num_tasks(self, split: str) -> int:  # type: ignore[override]
        return super().num_tasks(split)

    async def get_task(self, split: str, index: int) -> Any:
        return super().get_task(split, index)


class Unwilling:
    """Has a method that says it is none, and a name that is no method."""

    list_tasks = ("not", "callable")

    def num_tasks(self, split: str) -> int:
        raise NotImplementedError


class Nothing:
    """No task method at all."""


def ours(provider: type[Any], **options: Any) -> FastAPI:
    class Provider(provider, Environment):  # type: ignore[misc]
        def reset(self) -> Observation:
            return Observation()

        def step(self, action: Action) -> Observation:
            return Observation()

    return create_app(Provider, Action, Observation, env_name="Quiz", **options)


def stock(provider: type[Any]) -> FastAPI:
    class Provider(provider, StockEnvironment):  # type: ignore[misc]
        def reset(self, seed: Any = None, episode_id: Any = None, **kwargs: Any) -> StockObservation:
            return StockObservation()

        def step(self, action: Any, timeout_s: Any = None, **kwargs: Any) -> StockObservation:
            return StockObservation()

        @property
        def state(self) -> Any:
            return None

    return create_stock_app(Provider, StockAction, StockObservation, env_name="Quiz")


def both(provider: type[Any], method: str, path: str, **request: Any) -> tuple[Any, Any]:
    """The answers of both servers to one request."""
    with (
        TestClient(ours(provider), raise_server_exceptions=False) as mine,
        TestClient(stock(provider), raise_server_exceptions=False) as theirs,
    ):
        return mine.request(method, path, **request), theirs.request(method, path, **request)


GOOD = [
    ("GET", "/list_environments", None),
    ("GET", "/Quiz/splits", None),
    ("GET", "/qUIZ/splits", None),
    ("POST", "/quiz/tasks", {"split": "train"}),
    ("POST", "/quiz/num_tasks", {"split": "train"}),
    ("POST", "/quiz/task", {"split": "train", "index": 1}),
    ("POST", "/quiz/task", {"split": "train", "index": -1}),
    ("POST", "/quiz/task", {"split": "train", "index": "1"}),
    ("POST", "/quiz/task_range", {"split": "train"}),
    ("POST", "/quiz/task_range", {"split": "train", "start": 1}),
    ("POST", "/quiz/task_range", {"split": "train", "start": None, "stop": -1}),
]

BAD_BODIES: tuple[Any, ...] = ({}, {"split": 1}, {"split": "a", "more": 1}, [1])

BAD = [
    ("GET", "/other/splits", None),
    ("POST", "/quiz/task", {"split": "train", "index": 99}),
    ("POST", "/quiz/tasks", {"split": "broken"}),
    ("GET", "/quiz/nothing", None),
    ("POST", "/quiz/splits", {}),
    ("GET", "/quiz/tasks", None),
    *(
        ("POST", f"/it's/{route}", {"split": "train", "index": 0} if route == "task" else {"split": "a"})
        for route in ROUTES
    ),
    *(
        ("POST", f"/quiz/{route}", body)
        for route in ROUTES
        for body in ({}, {"split": 1}, {"split": "a", "more": 1}, [1])
    ),
    ("POST", "/quiz/task", {"split": "train", "index": 1.5}),
    ("POST", "/other/tasks", {}),
    ("POST", "/quiz/task_range", {"split": "train", "start": "a", "stop": []}),
]


@pytest.mark.parametrize("provider", [Tasks, AsyncTasks])
@pytest.mark.parametrize(("method", "path", "body"), GOOD)
def test_questions_are_answered_as_the_reference_answers_them(
    provider: type[Any], method: str, path: str, body: Any
) -> None:
    mine, theirs = both(provider, method, path, json=body)
    assert (mine.status_code, mine.json()) == (theirs.status_code, theirs.json())
    assert mine.status_code == 200
    assert mine.headers["content-type"] == theirs.headers["content-type"]


@pytest.mark.parametrize(("method", "path", "body"), BAD)
def test_questions_are_refused_as_the_reference_refuses_them(method: str, path: str, body: Any) -> None:
    mine, theirs = both(Tasks, method, path, json=body)
    assert (mine.status_code, mine.text) == (theirs.status_code, theirs.text) or mine.json() == theirs.json()
    assert mine.status_code == theirs.status_code >= 400


@pytest.mark.parametrize("content", [b"", b"null", b"{", b'"split"'])
@pytest.mark.parametrize("route", ROUTES)
def test_bodies_that_are_none_are_refused_as_the_reference_refuses_them(route: str, content: bytes) -> None:
    headers = {"content-type": "application/json"}
    mine, theirs = both(Tasks, "POST", f"/quiz/{route}", content=content, headers=headers)
    assert mine.status_code == theirs.status_code == 422
    (fault,), (expected,) = mine.json()["detail"], theirs.json()["detail"]
    assert (fault["type"], fault["loc"][0]) == (expected["type"], "body")
    if content != b"{":  # where the JSON ends too early is told by another reader, in other words
        assert fault == expected


@pytest.mark.parametrize("provider", [Unwilling, Nothing])
@pytest.mark.parametrize("route", ["splits", *ROUTES])
def test_what_an_environment_does_not_provide_is_not_implemented(provider: type[Any], route: str) -> None:
    body = {"split": "a", "index": 0} if route == "task" else {"split": "a"}
    request = ("GET", "/quiz/splits") if route == "splits" else ("POST", f"/quiz/{route}")
    mine, theirs = both(provider, *request, **({} if route == "splits" else {"json": body}))
    assert mine.status_code == theirs.status_code == 501
    assert mine.json() == theirs.json()


@pytest.mark.parametrize("mode", ["simulation", "production"])
def test_tasks_are_told_in_both_modes(mode: str) -> None:
    with TestClient(ours(Tasks, mode=mode)) as client:
        assert client.get("/list_environments").json() == ["Quiz"]
        assert client.post("/quiz/num_tasks", json={"split": "test"}).json() == {"num_tasks": 3}
        assert len(client.get("/quiz/splits").json()) == 5


@dataclasses.dataclass
class Labelled:
    name: str
    type: str = "test"


class Named(NamedTuple):
    name: str


class Rich(Nothing):
    """Values the reference has no better form for than their repr."""

    def list_splits(self) -> Any:
        yield Labelled("held out")
        yield Named("tuple")
        yield 7

    def list_tasks(self, split: str) -> Any:
        if split == "endless":
            return itertools.count()
        return {"object": [object()], "cycle": cycle(), "open": SimpleNamespace(of=[object()])}[split]

    def get_task(self, split: str, index: int) -> Any:
        return {"frame": np.arange(3, dtype=np.float32), "score": float("nan"), "labels": {"b"}, "one": Labelled("x")}


def cycle() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


@pytest.fixture
def rich() -> Iterator[TestClient]:
    with TestClient(ours(Rich)) as client:
        yield client


def test_values_of_python_have_the_form_they_have_in_observations(rich: TestClient) -> None:
    assert rich.post("/quiz/task", json={"split": "a", "index": 0}).json() == {
        "task": {"frame": [0.0, 1.0, 2.0], "score": "NaN", "labels": ["b"], "one": {"name": "x", "type": "test"}}
    }
    assert rich.get("/quiz/splits").json() == [
        {"name": "held out", "type": "test"},
        {"name": "Named(name='tuple')", "type": "validation"},
        {"name": "7", "type": "validation"},
    ]


@pytest.mark.parametrize("split", ["object", "open"])
def test_a_task_without_a_json_form_is_an_error_that_says_so(rich: TestClient, split: str) -> None:
    answer = rich.post("/quiz/tasks", json={"split": split})
    assert answer.status_code == 500
    assert answer.json()["detail"].startswith("the answer cannot be sent as JSON: expected a value with a JSON form")


def test_a_task_without_an_end_is_an_error(rich: TestClient) -> None:
    assert rich.post("/quiz/tasks", json={"split": "cycle"}).status_code == 500


def test_an_iterator_without_an_end_is_an_error_and_stops_no_other_request(rich: TestClient) -> None:
    answer = rich.post("/quiz/tasks", json={"split": "endless"})
    assert (answer.status_code, "give a list" in answer.json()["detail"]) == (500, True)


class Threaded(Nothing):
    closed: ClassVar[list[int]] = []
    asked: ClassVar[list[int]] = []

    async def num_tasks(self, split: str) -> int:
        self.asked.append(threading.get_ident())
        return 1

    def get_task(self, split: str, index: int) -> int:
        self.asked.append(threading.get_ident())
        return index

    def close(self) -> None:
        self.closed.append(threading.get_ident())


def test_an_environment_is_asked_on_its_own_thread_and_closed_there() -> None:
    app = ours(Threaded)

    @app.get("/thread")
    async def thread() -> int:
        return threading.get_ident()

    with TestClient(app) as client:
        client.post("/quiz/num_tasks", json={"split": "a"})
        client.post("/quiz/task", json={"split": "a", "index": 0})
        loop_thread = client.get("/thread").json()
    assert Threaded.asked == Threaded.closed
    assert len(Threaded.asked) == 2
    assert loop_thread not in Threaded.asked


def test_a_lent_instance_is_asked_while_a_session_has_it() -> None:
    class Lent(Tasks, Echo):
        pass

    instance = Lent()
    with TestClient(create_app(instance, Say, Heard, env_name="lent")) as client, client.websocket_connect("/ws") as ws:
        ws.send_json({"type": "reset"})
        ws.receive_json()
        assert client.post("/lent/num_tasks", json={"split": "a"}).json() == {"num_tasks": 3}
        ws.send_json({"type": "step", "data": {"message": "still here"}})
        assert ws.receive_json()["data"]["observation"]["echo"] == "still here"
    assert instance.closed == 0


def test_a_factory_that_fails_is_a_server_error() -> None:
    with TestClient(create_app(make_broken, Say, Heard, env_name="quiz")) as client:
        assert client.get("/quiz/splits").status_code == 500
        assert client.get("/list_environments").json() == ["quiz"]


def test_a_client_that_leaves_while_it_asks_disturbs_nobody() -> None:
    app = ours(Tasks)
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/quiz/tasks", "headers": [], "query_string": b""}
    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 400


def test_a_body_above_the_limit_is_refused() -> None:
    with TestClient(ours(Tasks, settings=ServerSettings(max_message_size_mb=0.01))) as client:
        assert client.post("/quiz/tasks", content=b"[" * 20_000).status_code == 413


@pytest.mark.parametrize("name", ["session", "web", "mcp", "schema", "ws"])
def test_an_environment_may_be_called_like_a_route(name: str) -> None:
    with TestClient(create_app(Echo, Say, Heard, env_name=name)) as client:
        assert client.post(f"/{name}/tasks", json={"split": "a"}).status_code == 501
        kept = client.post("/reset", headers={"X-OpenEnv-Session": "new"}).headers["X-OpenEnv-Session"]
        assert client.delete(f"/session/{kept}").status_code == 204
        assert client.get("/schema").status_code == 200


def test_no_other_route_is_hidden_even_one_that_is_added_later() -> None:
    app = ours(Tasks)

    @app.post("/web/tasks")
    async def web_tasks() -> str:
        return "of the page"

    @app.get("/{page}/splits")
    async def page_splits(page: str) -> str:
        return f"of {page}"

    with TestClient(app) as client:
        assert client.post("/web/tasks").json() == "of the page"
        assert client.get("/page/splits").json() == "of page"
        assert len(client.get("/quiz/splits").json()) == 5
        assert client.delete("/session/tasks").status_code == 404
        assert client.delete("/session/tasks").json()["detail"] == "Unknown session_id: tasks"


def test_a_foreign_web_page_is_told_no_tasks() -> None:
    with TestClient(ours(Tasks), base_url="http://127.0.0.1:8000") as client:
        answer = client.get("/quiz/splits", headers={"Origin": "https://page.example"})
        assert answer.status_code == 403


def test_the_routes_are_documented() -> None:
    with TestClient(ours(Tasks)) as client:
        paths = client.get("/openapi.json").json()["paths"]
    for route in ROUTES:
        content = paths[f"/{{env_name}}/{route}"]["post"]["requestBody"]["content"]["application/json"]
        assert "split" in content["schema"]["properties"]
    assert "get" in paths["/{env_name}/splits"]
