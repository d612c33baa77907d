"""What lies between a client and its server; the client's own tests play through it."""

import asyncio
import threading

import pytest

from openenv_gym import json_text, messages
from openenv_gym.errors import CapacityError, SessionStateError, SettingsError
from openenv_gym.link import Link
from openenv_gym.loopless import drive
from openenv_gym.transports.base import ConnectionSettings
from tests.openenv_gym.talking import WAIT_S
from tests.serving import serve
from tests.sockets import until


class Runtime:
    def __init__(self, url, begun=None, go_on=None):
        self.url, self.begun, self.go_on, self.calls = url, begun, go_on, []

    def start(self):
        self.calls.append("start")
        if self.begun is not None:
            self.begun.set()
            assert self.go_on.wait(WAIT_S)
        return self.url

    def wait_for_ready(self):
        """It runs already."""

    def stop(self):
        self.calls.append("stop")


def link_to(url=None, provider=None):
    return Link(url, provider, ConnectionSettings(), None)


def test_without_a_session_a_request_is_refused():
    with pytest.raises(SessionStateError) as caught:
        drive(link_to("http://host").ask(messages.State, 1.0))
    assert caught.value.state == "new"


def test_without_an_address_there_is_nothing_to_connect_to():
    with pytest.raises(SettingsError) as caught:
        drive(link_to().open())
    assert caught.value.setting == "base_url"


def test_what_the_server_says_of_the_environment_is_known_where_it_says_it(talk):
    link = link_to(talk)
    assert link.opened is None
    drive(link.open())
    session = link._shell.session
    assert (link.opened is None) is not session.extended
    drive(link.close())


def test_a_server_is_found_without_a_session(talk):
    provider = Runtime(talk)
    link = link_to(provider=provider)
    assert link.base_url is None
    drive(link.find())
    drive(link.find())
    assert (link.base_url, link._shell, provider.calls) == (talk, None, ["start"])
    assert link.headers == link.settings
    drive(link.close())
    assert provider.calls == ["start", "stop"]


def test_closing_while_a_provider_starts_stops_it_again(talk):
    begun, go_on = threading.Event(), threading.Event()
    provider = Runtime(talk, begun, go_on)
    link = link_to(provider=provider)

    async def play():
        opening = asyncio.create_task(link.open())
        await asyncio.to_thread(begun.wait, WAIT_S)
        await link.close()
        go_on.set()
        with pytest.raises(SessionStateError) as caught:
            await opening
        return caught.value.state

    assert asyncio.run(play()) == "closed"
    assert provider.calls == ["start", "stop"]
    assert link._lease is None


def test_an_interrupted_close_is_finished_by_the_next(talk, monkeypatch):
    link = link_to(talk)
    drive(link.open())
    shell = link._shell

    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(shell, "close", interrupt)
    with pytest.raises(KeyboardInterrupt):
        drive(link.close())
    assert shell._transport.closed
    drive(link.close())


@pytest.mark.parametrize("awaited", [False, True])
def test_a_first_session_that_was_refused_says_so_at_once_and_is_not_tried_again(awaited):
    connections = []

    async def full(scope, receive, send):
        if scope["type"] == "websocket":
            connections.append(await receive())
            await send({"type": "websocket.accept"})
            refusal = messages.ErrorReply(data={"message": "full", "code": "CAPACITY_REACHED"})
            await send({"type": "websocket.send", "text": json_text.encode_json(refusal).decode()})
            await send({"type": "websocket.close", "code": 1000})

    with serve(full, lifespan="off") as url:
        link = link_to(url)
        drive(link.open())
        until(lambda: not link._shell.alive)
        begun = link.begin_episode(lambda extended: {})
        with pytest.raises(CapacityError, match="full"):
            asyncio.run(begun) if awaited else drive(begun)
        assert len(connections) == 1
        drive(link.close())


def test_the_address_is_found_for_who_connects_in_another_way():
    settings = ConnectionSettings(headers={"X-A": "1"})
    link = Link("http://127.0.0.1:1", None, settings, None)
    assert (link.hired, link.connected) == (False, False)
    assert drive(link.address()) == ("http://127.0.0.1:1", settings)
    assert (link.hired, link.connected) == (True, False)


def test_a_link_closed_meanwhile_has_no_address():
    link = Link("http://127.0.0.1:1", None, ConnectionSettings(), None)
    link.find = drive_nothing
    with pytest.raises(SessionStateError, match="closed while it connected"):
        drive(link.address())


async def drive_nothing():
    """The link is found and closed again."""
