"""The session of a Gymnasium environment in production, against a session in memory."""

import pytest

from openenv_gym import messages
from openenv_gym.errors import (
    CapacityError,
    ModeError,
    SessionLostError,
    SessionStateError,
    ToolCallError,
    UnreachableError,
)
from openenv_gym.production_shell import SEED_NOTE, ProductionShell, refuse
from openenv_gym.transports.base import ConnectionSettings

SETTINGS = ConnectionSettings()
LOOK = {"name": "look", "description": "", "input_schema": {"type": "object"}}


class Server:
    """Makes sessions; ``log`` is what they were asked."""

    def __init__(self):
        self.log = []
        self.failures = []

    def __call__(self, base_url, settings):
        assert settings is not None
        return InMemory(self, base_url)

    def happen(self, *what):
        self.log.append(" ".join(map(str, what)))
        if self.failures:
            failure = self.failures.pop(0)
            if failure is not None:
                raise failure


class InMemory:
    def __init__(self, server, base_url):
        self.server, self.base_url = server, base_url

    def open(self):
        self.server.happen("open", self.base_url)

    def list_tools(self):
        self.server.happen("list")
        return [{"name": "look", "inputSchema": {"type": "object"}}]

    def call_tool(self, name, arguments):
        self.server.happen("call", name, arguments)
        return {"data": 1}

    def close(self):
        self.server.log.append("close")


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def shell(server):
    shell = ProductionShell("url", SETTINGS, connect=server)
    shell.open()
    server.log.clear()
    return shell


def test_opening_makes_a_session_and_learns_its_tools(server):
    shell = ProductionShell("url", SETTINGS, connect=server)
    assert not shell.alive
    shell.open()
    assert shell.alive
    assert shell.tools == [LOOK]
    assert server.log == ["open url", "list"]
    assert shell.opened is None


def test_the_first_episode_is_that_of_the_opened_session_and_each_other_has_its_own(server, shell):
    shell.begin()
    assert server.log == []
    shell.begin()
    shell.begin()
    assert server.log == ["close", "open url", "list"] * 2


@pytest.mark.parametrize("failing", [0, 1])
def test_what_fails_to_open_is_closed_and_raises(server, failing):
    server.failures = [None] * failing + [CapacityError("full")]
    shell = ProductionShell("url", SETTINGS, connect=server)
    with pytest.raises(CapacityError):
        shell.open()
    assert server.log[-1] == "close"
    assert not shell.alive


def test_a_call_gives_the_fields_of_an_observation(server, shell):
    shell.begin()
    assert shell.call("look", {"at": 1}) == {"tool_name": "look", "result": {"data": 1}, "error": None}
    assert server.log == ["call look {'at': 1}"]


def test_a_call_before_the_first_episode_is_out_of_order(server, shell):
    with pytest.raises(SessionStateError):
        shell.call("look", {})
    assert server.log == []


@pytest.mark.parametrize("data", [{"message": "it fell", "error_type": "timeout"}, None])
def test_a_failed_call_is_an_answer_and_the_session_goes_on(server, shell, data):
    shell.begin()
    server.failures = [ToolCallError("it fell", error_type="timeout", data=data)]
    error = {"error_type": "timeout", "message": "it fell"}
    assert shell.call("look", {}) == {"tool_name": "look", "result": None, "error": error}
    assert shell.call("look", {})["error"] is None


def test_a_failure_of_no_known_type_is_the_tools():
    server = Server()
    shell = ProductionShell("url", SETTINGS, connect=server)
    shell.open()
    shell.begin()
    server.failures = [ToolCallError("it fell")]
    assert shell.call("look", {})["error"]["error_type"] == "execution_error"


def test_a_lost_session_raises_until_another_begins(server, shell):
    shell.begin()
    server.failures = [SessionLostError("gone", reason="it was reaped")]
    for _ in range(2):
        with pytest.raises(SessionLostError) as caught:
            shell.call("look", {})
        assert caught.value.reason == "it was reaped"
    assert not shell.alive
    shell.begin()
    assert shell.call("look", {})["error"] is None


def test_a_server_that_is_gone_is_a_lost_session(server, shell):
    shell.begin()
    server.failures = [UnreachableError("nobody answers")]
    with pytest.raises(SessionLostError, match="nobody answers"):
        shell.begin()
    with pytest.raises(SessionLostError, match="nobody answers"):
        shell.call("look", {})


def test_it_opens_elsewhere_when_told(server, shell):
    shell.reopen("elsewhere", ConnectionSettings(step_timeout_s=1))
    assert server.log == ["close", "open elsewhere", "list"]
    assert (shell.base_url, shell.settings.step_timeout_s) == ("elsewhere", 1)


def test_a_close_may_be_repeated(server, shell):
    shell.close()
    shell.close()
    assert server.log == ["close"]
    with pytest.raises(SessionLostError, match="closed"):
        shell.call("look", {})


def test_a_seed_is_noted_once(shell):
    assert shell.notes_of({}) == []
    assert shell.notes_of({"seed": 1}) == [SEED_NOTE]
    assert shell.notes_of({"seed": 2}) == []


@pytest.mark.parametrize("kind", [messages.State, messages.Render, messages.Call, messages.GetAttr, messages.Reset])
def test_no_message_of_the_other_door_exists(server, shell, kind):
    with pytest.raises(ModeError, match="production") as caught:
        shell.request(kind, 1.0)
    assert caught.value.mode == "production"
    assert server.log == []


def test_what_is_refused_is_named():
    with pytest.raises(ModeError, match=r"^render\(\) does not exist in production"):
        refuse("render() does not exist")
