"""Standard MCP at ``/mcp`` as ``mcp_requirements.py`` lists it, in both modes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import uuid
from typing import Any

import httpx
import pytest

from openenv_gym import tool_server
from tests.interop import test_standard_tools
from tests.interop.mcp_playground import MODES, Playground, playground
from tests.interop.mcp_requirements import REQUIREMENTS, TESTED, covers
from tests.interop.mcp_wire import LATEST, Wire, answers
from tests.sockets import until


def test_every_requirement_has_a_test() -> None:
    assert test_standard_tools.__name__  # its tests count as well
    assert REQUIREMENTS.keys() == TESTED.keys()


# ------------------------------------------------------------------------------------------------ base protocol


@covers("base.id", "base.one-of")
@pytest.mark.parametrize("request_id", [7, "seven", 0])
def test_an_answer_has_the_id_of_its_request_and_one_of_result_and_error(wire: Wire, request_id: object) -> None:
    (good,) = answers(wire.request("ping", request_id=request_id))
    (bad,) = answers(wire.request("no/such/method", request_id=request_id))
    assert (good["id"], bad["id"]) == (request_id, request_id)
    assert good.keys() == {"jsonrpc", "id", "result"}
    assert bad.keys() == {"jsonrpc", "id", "error"}


@covers("base.codes", "base.unknown-method", "lifecycle.capabilities")
@pytest.mark.parametrize("method", ["no/such/method", "prompts/list", "resources/list", "logging/setLevel"])
def test_what_was_not_declared_is_an_error_with_a_code_and_a_message(wire: Wire, method: str) -> None:
    error = wire.error(method, {"level": "info"} if method.startswith("logging") else None)
    assert isinstance(error["code"], int)
    assert isinstance(error["message"], str)
    # The SDK does not tell a method that it does not know from one with wrong parameters.
    assert error["code"] in ({-32601, -32602} if method.startswith("no/") else {-32601})


@covers("base.notification", "http.accepted")
def test_a_notification_or_an_answer_is_accepted_without_a_body(wire: Wire) -> None:
    notified = wire.notify("notifications/roots/list_changed")
    answered = wire.post({"jsonrpc": "2.0", "id": 99, "result": {}})
    assert [(each.status_code, each.content) for each in (notified, answered)] == [(202, b""), (202, b"")]


@covers("base.malformed")
@pytest.mark.parametrize(
    "content", ["{", "[]", "5", '{"jsonrpc": "1.0", "id": 1, "method": "ping"}', '{"id": 1}', b"\xff"]
)
def test_a_message_that_is_none_is_refused_and_the_session_lives(wire: Wire, content: str | bytes) -> None:
    response = wire.post(content)
    assert response.status_code == 400
    assert isinstance(response.json()["error"]["code"], int)
    assert wire.call("add", a=1)["isError"] is False


# ---------------------------------------------------------------------------------------------------- lifecycle


@covers("lifecycle.initialize", "tools.capability")
def test_initialize_is_answered_by_version_capabilities_and_name(mcp_url: str) -> None:
    with Wire(mcp_url) as wire:
        (answer,) = answers(wire.initialize())
    result = answer["result"]
    assert result["protocolVersion"] == LATEST
    assert result["serverInfo"]["name"] == "playground"
    assert result["serverInfo"]["version"]
    assert "tools" in result["capabilities"]
    assert not {"prompts", "resources", "logging", "completions"} & result["capabilities"].keys()


@covers("lifecycle.same-version")
@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
def test_a_version_that_the_server_speaks_is_answered_by_the_same(mcp_url: str, version: str) -> None:
    with Wire(mcp_url) as wire:
        assert answers(wire.initialize(version))[0]["result"]["protocolVersion"] == version
        assert wire.begin(version).call("add", a=1)["content"][0]["text"] == "2"


@covers("lifecycle.other-version")
def test_any_other_version_is_answered_by_the_latest(mcp_url: str) -> None:
    with Wire(mcp_url) as wire:
        assert answers(wire.initialize("1999-01-01"))[0]["result"]["protocolVersion"] == LATEST


@covers("lifecycle.first")
def test_nothing_is_served_before_initialization(mcp_url: str) -> None:
    with Wire(mcp_url) as wire:
        made = len(Playground.made)
        refused = wire.request("tools/call", {"name": "add", "arguments": {"a": 1}})
        assert (refused.status_code, "error" in refused.json()) == (400, True)
        assert len(Playground.made) == made


# ----------------------------------------------------------------------------------------------- Streamable HTTP


@covers("http.one-endpoint", "http.stream")
def test_one_path_takes_all_and_a_stream_ends_after_its_answer(wire: Wire) -> None:
    response = wire.request("ping")  # which httpx reads to its end
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    assert len(answers(response)) == 1
    assert wire.http.put("/mcp", headers=wire.headers).status_code == 405


@covers("http.origin")
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_foreign_origin_is_answered_by_403_and_the_setting(wire: Wire, method: str) -> None:
    response = wire.http.request(
        method, "/mcp", headers={**wire.headers, "origin": "https://evil.example"}, content="{}"
    )
    assert response.status_code == 403
    assert "OPENENV_ALLOWED_ORIGINS" in response.text
    assert wire.call("add", a=1)["isError"] is False


@covers("http.host")
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_foreign_host_is_refused_on_loopback_and_the_setting_named(wire: Wire, method: str) -> None:
    response = wire.http.request(method, "/mcp", headers={**wire.headers, "host": "evil.example"}, content="{}")
    assert response.status_code == 403
    assert "OPENENV_ALLOWED_HOSTS" in response.text


@pytest.mark.parametrize("origin", ["http://localhost:6274", "http://127.0.0.1:1"])
def test_a_page_of_this_machine_may_use_the_tools(mcp_url: str, origin: str) -> None:
    with Wire(mcp_url, origin=origin) as wire:
        assert wire.begin().call("add", a=1)["isError"] is False


@covers("http.get", "http.one-stream", "progress.token")
def test_an_answer_goes_on_the_stream_of_its_request_alone(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_server, "PROGRESS_EVERY_S", 0.01)
    told: list[str] = []
    opened, ended = threading.Event(), threading.Event()

    def listen() -> None:
        with (
            httpx.Client(trust_env=False) as http,
            http.stream("GET", f"{wire.http.base_url}/mcp", headers=wire.headers) as stream,
        ):
            told.append(stream.headers["content-type"])
            opened.set()
            told.extend(line for line in stream.iter_lines() if line.startswith("data"))
        ended.set()

    listener = threading.Thread(target=listen)
    listener.start()
    assert opened.wait(10)
    until_told = _Held(wire, {"progressToken": "mine"}, messages=3)
    mine = until_told.messages
    assert {each["params"]["progressToken"] for each in mine[:-1]} == {"mine"}
    assert wire.call("add", a=1)["isError"] is False
    assert wire.http.delete("/mcp", headers=wire.headers).status_code == 200
    assert ended.wait(10)
    listener.join()
    assert told[0].startswith("text/event-stream")
    assert told[1:] == []


@covers("http.session-id")
def test_each_session_has_an_id_of_its_own(mcp_url: str) -> None:
    with Wire(mcp_url) as wire:
        ids = {wire.initialize().headers["mcp-session-id"] for _ in range(5)}
    assert len(ids) == 5
    assert all(len(each) >= 32 and all(0x21 <= ord(character) <= 0x7E for character in each) for each in ids)


@covers("http.no-session")
def test_a_request_without_the_id_is_answered_by_400(mcp_url: str) -> None:
    with Wire(mcp_url) as wire:
        assert wire.request("tools/list").status_code == 400


@covers("http.terminated", "http.delete")
@pytest.mark.parametrize("mode", MODES)
def test_delete_ends_the_session_and_frees_its_environment(mode: str) -> None:
    with playground(mode) as (url, server), Wire(url) as wire:
        wire.begin().call("add", a=1)
        env = Playground.made[-1]
        assert server.active_sessions == 1
        assert wire.http.delete("/mcp", headers=wire.headers).status_code == 200
        assert [wire.request("ping").status_code, wire.notify("notifications/x").status_code] == [404, 404]
        until(lambda: env.closed and server.active_sessions == 0)
        wire.headers["mcp-session-id"] = uuid.uuid4().hex
        assert wire.request("ping").status_code == 404


@covers("http.version-absent", "http.version-unknown")
def test_the_versions_header_may_be_absent_but_not_unknown(wire: Wire) -> None:
    version = wire.headers.pop("mcp-protocol-version")
    assert wire.result("ping") == {}
    assert wire.post(wire.message("ping"), mcp_protocol_version="1999-01-01").status_code == 400
    wire.headers["mcp-protocol-version"] = version


@covers("http.disconnection")
def test_a_client_that_goes_away_has_not_cancelled_its_request(wire: Wire) -> None:
    message = wire.message("tools/call", {"name": "hold", "arguments": {}})
    headers = {**wire.headers, "content-type": "application/json"}
    with (
        httpx.Client(trust_env=False) as http,
        http.stream("POST", f"{wire.http.base_url}/mcp", json=message, headers=headers),
    ):
        assert Playground.held.acquire(timeout=10)
    Playground.release.release()
    assert wire.call("next_number")["content"][0]["text"] == "1"


@covers("http.accept")
def test_a_client_that_does_not_accept_both_forms_is_refused(wire: Wire) -> None:
    assert wire.post(wire.message("ping"), accept="text/event-stream").status_code == 406


# ------------------------------------------------------------------------------------------------------ utilities


class _Held:
    """A call of ``hold`` that was let go once so many messages had come; with the messages."""

    def __init__(self, wire: Wire, meta: object, messages: int) -> None:
        params = {"name": "hold", "arguments": {}, "_meta": meta}
        headers = {**wire.headers, "content-type": "application/json"}
        self.messages: list[dict[str, Any]] = []
        message = wire.message("tools/call", params)
        with (
            httpx.Client(trust_env=False, timeout=20) as http,
            http.stream("POST", f"{wire.http.base_url}/mcp", json=message, headers=headers) as stream,
        ):
            assert Playground.held.acquire(timeout=10)
            if messages == 0:
                Playground.release.release()
            for line in stream.iter_lines():
                if line.startswith("data:") and line[5:].strip():
                    self.messages.append(json.loads(line[5:]))
                    if len(self.messages) == messages:
                        Playground.release.release()


@covers("progress.increases")
def test_progress_increases_and_ends_with_the_answer(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_server, "PROGRESS_EVERY_S", 0.01)
    *told, answer = _Held(wire, {"progressToken": 5}, messages=4).messages
    assert answer["result"]["content"][0]["text"] == "let go"
    assert {each["method"] for each in told} == {"notifications/progress"}
    amounts = [each["params"]["progress"] for each in told]
    assert amounts == sorted(set(amounts))


def test_nothing_is_told_of_a_call_that_did_not_ask(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_server, "PROGRESS_EVERY_S", 0.0)
    assert len(_Held(wire, {}, messages=0).messages) == 1


@covers("ping")
def test_ping_is_answered_while_a_tool_runs(wire: Wire) -> None:
    held = threading.Thread(target=wire.call, args=("hold",))
    held.start()
    assert Playground.held.acquire(timeout=10)
    assert wire.result("ping") == {}
    Playground.release.release()
    held.join()


@covers("cancel.frees")
def test_a_cancelled_call_that_waits_for_its_turn_is_never_made(wire: Wire) -> None:
    held = threading.Thread(target=wire.call, args=("hold",))
    held.start()
    assert Playground.held.acquire(timeout=10)
    ended: list[httpx.Response] = []
    waiting = wire.message("tools/call", {"name": "next_number", "arguments": {}}, "waiting")
    waiter = threading.Thread(target=lambda: ended.append(wire.post(waiting)))
    waiter.start()
    # Requests of one session are read in order: where a later one is answered, the earlier one waits for its turn.
    while waiter.is_alive():
        assert wire.result("ping") == {}
        assert wire.notify("notifications/cancelled", {"requestId": "waiting", "reason": "a test"}).status_code == 202
        waiter.join(0.05)
    assert "error" in answers(ended[0])[0]
    Playground.release.release()
    held.join()
    assert wire.call("next_number")["content"][0]["text"] == "1"


@covers("cancel.unknown")
def test_cancelling_what_is_not_running_is_ignored(wire: Wire) -> None:
    assert wire.notify("notifications/cancelled", {"requestId": 12345}).status_code == 202
    assert wire.result("ping") == {}


# --------------------------------------------------------------------------------------------------- standard streams


HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": LATEST, "capabilities": {}, "clientInfo": {"name": "lines", "version": "1"}},
}


@covers("stdio.lines", "stdio.end")
@pytest.mark.parametrize("mode", MODES)
def test_over_standard_streams_each_message_is_a_line_and_the_end_of_input_is_the_end(mode: str) -> None:
    requests = [
        HELLO,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1}}},
    ]
    with playground("simulation") as (url, server):
        command = [sys.executable, "-m", "openenv_gym.cli", "mcp", url, "--mode", mode]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            lines = []
            for each in requests:
                program.stdin.write(json.dumps(each) + "\n")
                program.stdin.flush()
                if "id" in each:
                    lines.append(json.loads(program.stdout.readline()))
            program.stdin.close()
            rest = program.stdout.read()
            assert program.wait(20) == 0
        until(lambda: server.active_sessions == 0)
    assert rest == ""
    assert [each["id"] for each in lines] == [1, 2, 3]
    assert lines[0]["result"]["serverInfo"]["name"] == "Playground"
    assert {each["name"] for each in lines[1]["result"]["tools"]} >= {"add", "fail"}
    assert lines[2]["result"]["content"][0]["text"] == "2"
    assert lines[2]["result"]["structuredContent"].get("reward") == (0.5 if mode == "simulation" else None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_program_and_the_remote_session(number: signal.Signals) -> None:
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1}}}
    with playground("production") as (url, server):
        command = [sys.executable, "-m", "openenv_gym.cli", "mcp", url]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            for each in (HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"}, call):
                program.stdin.write(json.dumps(each) + "\n")
                program.stdin.flush()
            assert [json.loads(program.stdout.readline())["id"] for _ in range(2)] == [1, 2]
            assert server.active_sessions == 1
            program.send_signal(number)
            assert program.wait(20) == 128 + number
        until(lambda: server.active_sessions == 0)
