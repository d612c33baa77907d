"""Every client on every server with every kind of environment: one set of tests, run for each of the combinations.

Clients and servers of ``openenv`` 0.10.0 and of this project meet in all pairs. What only one pair shows is in the
other files of this folder.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from openenv_gym.errors import CapacityError
from tests.interop.clients import CLIENTS, Client
from tests.interop.flavours import CASES, KITS, Case
from tests.serving import serve

WAIT_S = 10.0

# A Gymnasium environment always begins a session of its own.
ATTACHING = [name for name, client in CLIENTS.items() if client.attaches]

every_client = pytest.mark.parametrize("client_name", CLIENTS)
attaching_clients = pytest.mark.parametrize("client_name", ATTACHING)
pytestmark = [pytest.mark.parametrize("case_name", CASES), pytest.mark.parametrize("server_name", KITS)]


class Peers:
    """A client and a served environment of the matrix."""

    def __init__(self, client: Client, case: Case, url: str) -> None:
        self.client, self.case, self.url = client, case, url

    def connect(self, session_id: str | None = None) -> contextlib.AbstractContextManager[Any]:
        return self.client.connect(self.url, self.case, session_id)


@pytest.fixture(scope="module")
def serve_case() -> Iterator[Callable[[str, str], tuple[Case, str]]]:
    """Each served environment once a module, with room for many sessions."""
    served: dict[tuple[str, str], tuple[Case, str]] = {}
    with contextlib.ExitStack() as stack:

        def give(server_name: str, case_name: str) -> tuple[Case, str]:
            key = server_name, case_name
            if key not in served:
                case = CASES[case_name](KITS[server_name]())
                served[key] = case, stack.enter_context(serve(case.app(capacity=16)))
            return served[key]

        yield give


@pytest.fixture
def peers(client_name: str, server_name: str, case_name: str, serve_case: Callable[..., Any]) -> Peers:
    return Peers(CLIENTS[client_name], *serve_case(server_name, case_name))


@every_client
def test_an_episode_is_the_one_of_its_seed_and_carries_its_name(peers: Peers) -> None:
    case = peers.case
    with peers.connect() as player:
        for seed, name in ((7, "one"), (7, "two"), (8, "drei ü")):
            first = player.reset(seed=seed, episode_id=name)
            answers = [player.step(action) for action in case.actions]
            assert [case.read(answer.fields) for answer in (first, *answers)] == case.expected(seed)
            assert [answer.reward for answer in answers] == [case.reward] * len(answers)
            assert [answer.done for answer in (first, *answers)] == [False] * len(answers) + [case.ends]
            state = player.state()
            assert (state["episode_id"], state["step_count"]) == (name, len(answers))
        assert case.expected(7) != case.expected(8)


@every_client
def test_the_session_goes_on_after_an_action_is_refused_or_the_environment_fails(peers: Peers) -> None:
    case = peers.case
    with peers.connect() as player:
        player.reset(seed=7, episode_id="one")
        for action in case.actions:
            with pytest.raises(peers.client.refused) as refused:
                player.step(case.refused, valid=False)
            assert code_of(refused.value) == "VALIDATION_ERROR"
            if not case.fails_in_answer:
                with pytest.raises(peers.client.failed) as failed:
                    player.step(case.failing)
                assert code_of(failed.value) == "EXECUTION_ERROR"
                assert case.failure in str(failed.value)
            last = player.step(action)
        assert case.read(last.fields) == case.expected(7)[-1]
        assert player.state()["episode_id"] == "one"
        if case.fails_in_answer:
            answer = player.step(case.failing).fields
            assert case.read(answer)[1] == "execution_error"
            assert case.failure in answer["error"]["message"]


@every_client
def test_a_server_of_one_session_refuses_a_second_and_takes_the_next(
    client_name: str, server_name: str, case_name: str
) -> None:
    case = CASES[case_name](KITS[server_name]())
    with serve(case.app(capacity=1)) as url:
        peers = Peers(CLIENTS[client_name], case, url)
        with peers.connect() as player:
            player.reset(seed=7)
            with pytest.raises(peers.client.full) as full, peers.connect() as second:
                second.reset()
            assert "1/1" in str(full.value)
            if isinstance(full.value, CapacityError):
                assert (full.value.active_sessions, full.value.max_sessions) == (1, 1)
            assert case.read(player.step(case.actions[0]).fields) == case.expected(7)[1]
        first = once_there_is_room(peers, lambda player: player.reset(seed=8))
        assert case.read(first.fields) == case.expected(8)[0]


@attaching_clients
def test_a_session_that_was_begun_over_http_is_attached_to_by_its_name(peers: Peers, server_name: str) -> None:
    session_id = begin(peers.url, server_name)
    with peers.connect(session_id) as player:
        assert peers.case.read(player.reset(seed=7, episode_id="kept").fields) == peers.case.expected(7)[0]
        player.step(peers.case.actions[0])
    state = once_there_is_room(peers, lambda player: player.state(), session_id)
    assert (state["episode_id"], state["step_count"]) == ("kept", 1)
    end(peers.url, server_name, session_id)


def once_there_is_room(peers: Peers, ask: Callable[[Any], Any], session_id: str | None = None) -> Any:
    """An answer of a new connection, as soon as the server has noticed that the one before has left."""
    pause = threading.Event()
    for _ in range(int(WAIT_S / 0.02)):
        with contextlib.suppress(*peers.client.busy), peers.connect(session_id) as player:
            return ask(player)
        pause.wait(0.02)
    raise AssertionError("the server did not notice in time that a client had left")


def begin(url: str, server_name: str) -> str:
    """Begin a session over HTTP, in the server's own way, and give its name."""
    if server_name == "ours":
        return httpx.post(f"{url}/reset", json={}, headers={"X-OpenEnv-Session": "new"}).headers["X-OpenEnv-Session"]
    return httpx.post(f"{url}/mcp", json=rpc("openenv/session/create")).json()["result"]["session_id"]


def end(url: str, server_name: str, session_id: str) -> None:
    if server_name == "ours":
        assert httpx.delete(f"{url}/session/{session_id}").status_code in {202, 204}
    else:
        httpx.post(f"{url}/mcp", json=rpc("openenv/session/close", session_id=session_id)).raise_for_status()


def rpc(method: str, **params: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def code_of(error: Exception) -> str:
    """The code of an error frame, which the stock client has in its text alone."""
    code = getattr(error, "code", None)
    return code if code is not None else str(error).rpartition("(code: ")[2].rstrip(")")
