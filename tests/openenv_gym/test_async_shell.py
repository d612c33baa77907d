"""The shell whose calls are awaited, over the in-memory transport."""

import asyncio

import pytest

from openenv_gym import messages
from openenv_gym.async_shell import AsyncShell
from openenv_gym.errors import (
    CapacityError,
    MessageTooLargeError,
    ProtocolError,
    SessionLostError,
    SessionStateError,
)
from openenv_gym.json_text import decode_json, encode_json
from openenv_gym.session import SessionState
from openenv_gym.transports.base import ConnectionSettings
from tests.openenv_gym.test_shell import Server, error_frame


def shell_on(server, **keywords):
    settings = keywords.pop("settings", ConnectionSettings())
    return AsyncShell("http://host", settings, messages.OpenSettings(), connect=server.connect, **keywords)


async def opened(server, **keywords):
    shell = shell_on(server, **keywords)
    await shell.aopen()
    return shell


@pytest.mark.parametrize("subprotocol", [messages.SUBPROTOCOL, None])
def test_a_session_is_played_under_one_loop_after_another_and_without_any(subprotocol):
    server = Server(subprotocol=subprotocol)
    shell = asyncio.run(opened(server))
    assert (shell.opened is None) is (subprotocol is None)
    asyncio.run(shell.arequest(messages.Reset, 1.0))
    assert asyncio.run(shell.arequest(messages.Step, 1.0, data={})).data.observation == {"n": 1}
    assert shell.request(messages.Step, 1.0, data={}).data.observation == {"n": 2}
    assert asyncio.run(shell.arequest(messages.State, None)).data == {"step_count": 2}
    asyncio.run(shell.aclose())
    asyncio.run(shell.aclose())
    assert decode_json(server.end.received[-1].payload)["type"] == "close"
    assert server.transport.closed


def test_before_it_is_opened_every_call_is_a_lost_session():
    shell = shell_on(Server())
    assert not shell.alive
    with pytest.raises(SessionLostError):
        asyncio.run(shell.arequest(messages.Reset, 1.0))
    for call in (lambda: shell._transport.send(b""), lambda: shell._transport.receive(1.0)):
        with pytest.raises(SessionLostError):
            call()
    shell._transport.close()
    shell.abandon("not needed")


def test_a_full_server_leaves_no_connection_behind():
    server = Server(replace={"x-open": error_frame("CAPACITY_REACHED", active_sessions=1, max_sessions=1)})
    with pytest.raises(CapacityError):
        asyncio.run(opened(server))
    assert server.transport.closed


def test_a_message_above_the_limit_is_refused_and_the_session_goes_on():
    server = Server(max_message_bytes=300)

    async def play():
        shell = await opened(server)
        await shell.arequest(messages.Reset, 1.0)
        with pytest.raises(MessageTooLargeError):
            await shell.arequest(messages.Step, 1.0, data={"text": "x" * 300})
        return (await shell.arequest(messages.Step, 1.0, data={})).data.observation

    assert asyncio.run(play()) == {"n": 1}


def test_a_server_that_closes_over_a_message_it_finds_too_large_loses_the_session(monkeypatch):
    server = Server()

    async def play():
        shell = await opened(server)
        await shell.arequest(messages.Reset, 1.0)

        def refused(payload, *, text=True):
            server.end.close(1009)
            raise MessageTooLargeError("the server's limit", setting="max_message_size_mb")

        monkeypatch.setattr(server.transport, "send", refused)
        with pytest.raises(MessageTooLargeError):
            await shell.arequest(messages.Step, 1.0, data={})
        assert not shell.alive

    asyncio.run(play())


def test_a_frame_too_many_is_never_taken_for_the_next_answer():
    doubled = encode_json({"type": "observation", "data": {"observation": {"n": 1}}})
    server = Server(subprotocol=None, replace={"step": [doubled, doubled]})

    async def play():
        shell = await opened(server)
        await shell.arequest(messages.Reset, 1.0)
        await shell.arequest(messages.Step, 1.0, data={})
        with pytest.raises(ProtocolError):
            await shell.arequest(messages.State, 1.0)
        with pytest.raises(SessionLostError):
            await shell.arequest(messages.State, 1.0)

    asyncio.run(play())


def test_a_second_call_is_refused_and_the_first_is_not_disturbed():
    server = Server(replace={"step": []})

    async def play():
        shell = await opened(server)
        await shell.arequest(messages.Reset, 1.0)
        first = asyncio.create_task(shell.arequest(messages.Step, 20.0, data={}))
        await asyncio.sleep(0)
        with pytest.raises(SessionStateError):
            await shell.arequest(messages.State, 1.0)
        with pytest.raises(SessionStateError):
            shell.request(messages.State, 1.0)
        server.end.send(encode_json({"type": "observation", "data": {"observation": {"n": 7}}, "id": 3}))
        return (await first).data.observation

    assert asyncio.run(play()) == {"n": 7}


def test_a_cancelled_call_ends_the_session_and_another_can_be_opened():
    server = Server(replace={"step": []})

    async def play():
        shell = await opened(server)
        await shell.arequest(messages.Reset, 1.0)
        step = asyncio.create_task(shell.arequest(messages.Step, None, data={}))
        await asyncio.sleep(0)
        step.cancel()
        with pytest.raises(asyncio.CancelledError):
            await step
        assert shell.session.state is SessionState.BROKEN
        assert shell.abandoned
        with pytest.raises(SessionLostError, match="the call was cancelled"):
            await shell.arequest(messages.State, 1.0)

    asyncio.run(play())
    assert server.transport.closed


def test_a_cancelled_close_has_closed_the_transport():
    server = Server()

    async def play():
        shell = await opened(server)
        server.answer = lambda frame, steps: None
        closing = asyncio.create_task(shell.aclose())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing

    asyncio.run(play())
    assert server.transport.closed


def test_a_close_without_patience_does_not_wait_for_the_server():
    server = Server()

    async def play():
        shell = await opened(server, settings=ConnectionSettings(close_timeout_s=0))
        server.answer = lambda frame, steps: None
        await shell.aclose()

    asyncio.run(play())
    assert server.transport.closed


@pytest.mark.parametrize("subprotocol", [messages.SUBPROTOCOL, None])
def test_a_kept_session_is_attached_to_in_its_episode(subprotocol):
    server = Server(subprotocol=subprotocol)
    paths = []

    def connect(base_url, settings, *, path, subprotocols):
        paths.append(path)
        return server.connect(base_url, settings, path="/ws", subprotocols=subprotocols)

    shell = AsyncShell(
        "http://host", ConnectionSettings(), messages.OpenSettings(), connect=connect, session_id="a b&c"
    )
    asyncio.run(shell.aopen())
    assert paths == ["/ws?session_id=a%20b%26c"]
    assert shell.session.state is SessionState.EPISODE
    shell.forget_episode()
    assert shell.session.state is SessionState.OPEN
    shell.forget_episode()
    assert shell.session.state is SessionState.OPEN
    asyncio.run(shell.aclose())
