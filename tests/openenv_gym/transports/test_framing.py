"""Frames between two ends in memory, in every cut of the bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from websockets.client import ClientProtocol
from websockets.exceptions import PayloadTooBig, ProtocolError
from websockets.frames import Frame as WebSocketFrame
from websockets.frames import Opcode
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from openenv_gym.transports.base import Frame
from openenv_gym.transports.framing import Framing

LIMIT = 200_000
MESSAGES = [
    Frame(b"", True),
    Frame(b"a", False),
    Frame("äöü".encode(), True),
    Frame(b"x" * 125, False),
    Frame(b"y" * 126, True),
    Frame(b"z" * 65_535, False),
    Frame(bytes(range(256)) * 300, False),
]


def client() -> tuple[ClientProtocol, Framing]:
    protocol = ClientProtocol(parse_uri("ws://a/"), state=State.OPEN, max_size=LIMIT)
    return protocol, Framing(protocol, LIMIT)


def server() -> tuple[ServerProtocol, Framing]:
    protocol = ServerProtocol(state=State.OPEN, max_size=LIMIT)
    return protocol, Framing(protocol, LIMIT)


Make = Callable[[], tuple[ClientProtocol | ServerProtocol, Framing]]
ENDS = pytest.mark.parametrize(("sender", "receiver"), [(client, server), (server, client)], ids=["up", "down"])


def raw(frame: WebSocketFrame, sender: Make) -> bytes:
    return frame.serialize(mask=sender is client)


@ENDS
@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: str(len(message.payload)))
def test_a_message_arrives_as_it_was(sender: Make, receiver: Make, message: Frame) -> None:
    taker = receiver()[1]
    taker.feed(b"".join(sender()[1].encode(message.payload, text=message.text)))
    assert list(taker.messages) == [message]
    assert not taker.partial


@ENDS
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000, 65_536])
def test_messages_arrive_however_their_bytes_are_cut(sender: Make, receiver: Make, size: int) -> None:
    giver, (protocol, taker) = sender()[1], receiver()
    stream = b"".join(b"".join(giver.encode(payload, text=text)) for payload, text in MESSAGES)
    buffer = bytearray(size)
    for start in range(0, len(stream), size):
        piece = stream[start : start + size]
        buffer[: len(piece)] = piece
        taker.feed(memoryview(buffer)[: len(piece)])  # which is overwritten by the next
    assert list(taker.messages) == MESSAGES
    assert protocol.state is State.OPEN


@ENDS
def test_the_other_end_may_be_the_library_itself(sender: Make, receiver: Make) -> None:
    protocol = receiver()[0]
    protocol.receive_data(b"".join(sender()[1].encode(b"hello", text=True)))
    assert [event.data for event in protocol.events_received()] == [b"hello"]


@ENDS
def test_large_messages_are_given_apart_from_their_header(sender: Make, receiver: Make) -> None:
    assert len(sender()[1].encode(b"x" * 16_383, text=False)) == 1
    pieces = sender()[1].encode(payload := b"x" * 16_384, text=False)
    assert len(pieces) == 2
    assert (pieces[1] is payload) is (sender is server), "only a mask needs a copy"
    taker = receiver()[1]
    for piece in pieces:
        taker.feed(piece)
    assert taker.messages.popleft().payload == payload


def test_the_rest_of_a_message_can_be_put_where_it_belongs() -> None:
    stream = b"".join(server()[1].encode(b"0123456789" * 100, text=False))
    taker = client()[1]
    assert taker.target is None
    taker.feed(stream[:10])
    assert taker.partial
    assert taker.unfinished == 6
    for start in (10, 500):
        target = taker.target
        assert target is not None
        piece = stream[start : start + 490 + (start > 10) * 10_000]
        target[: len(piece)] = piece
        taker.filled(len(piece))
    assert taker.messages.popleft() == Frame(b"0123456789" * 100, False)
    assert taker.target is None


@ENDS
@pytest.mark.parametrize("size", [1, 1000])
def test_fragments_are_joined_with_pings_between_them(sender: Make, receiver: Make, size: int) -> None:
    stream = b"".join(
        raw(frame, sender)
        for frame in (
            WebSocketFrame(Opcode.TEXT, b"one ", fin=False),
            WebSocketFrame(Opcode.PING, b"?"),
            WebSocketFrame(Opcode.CONT, b"two ", fin=False),
            WebSocketFrame(Opcode.CONT, b"three", fin=True),
            WebSocketFrame(Opcode.BINARY, b"more"),
        )
    )
    protocol, taker = receiver()
    for start in range(0, len(stream), size):
        taker.feed(stream[start : start + size])
    assert list(taker.messages) == [Frame(b"one two three", True), Frame(b"more", False)]
    assert [data[:1] for data in protocol.data_to_send()] == [b"\x8a"]


@ENDS
def test_what_has_come_of_fragments_is_known_and_can_be_forgotten(sender: Make, receiver: Make) -> None:
    taker = receiver()[1]
    taker.feed(raw(WebSocketFrame(Opcode.TEXT, b"one", fin=False), sender))
    assert taker.partial
    assert taker.unfinished == 3
    taker.forget()
    assert not taker.partial
    assert taker.unfinished == 0


@ENDS
@pytest.mark.parametrize(
    "frames",
    [
        [WebSocketFrame(Opcode.TEXT, b"one", fin=False), WebSocketFrame(Opcode.TEXT, b"two")],
        [WebSocketFrame(Opcode.CONT, b"one")],
        [WebSocketFrame(Opcode.TEXT, b"compressed?", rsv1=True)],
    ],
    ids=["new message within another", "nothing to continue", "reserved bit"],
)
def test_faulty_frames_are_the_protocols_to_judge(sender: Make, receiver: Make, frames: list[WebSocketFrame]) -> None:
    protocol, taker = receiver()
    for frame in frames:
        frame.check = lambda: None  # type: ignore[method-assign]
        taker.feed(raw(frame, sender))
    assert isinstance(protocol.parser_exc, ProtocolError)
    assert not taker.messages
    assert protocol.close_sent is not None
    assert protocol.close_sent.code == 1002


@ENDS
def test_a_frame_with_the_wrong_masking_is_refused(sender: Make, receiver: Make) -> None:
    protocol, taker = receiver()
    other = server if sender is client else client
    taker.feed(raw(WebSocketFrame(Opcode.TEXT, b"hello"), other)[:2])
    assert isinstance(protocol.parser_exc, ProtocolError)
    assert not taker.messages


@ENDS
def test_a_message_above_the_limit_is_refused_by_its_header(sender: Make, receiver: Make) -> None:
    protocol, taker = receiver()
    taker.feed(b"".join(sender()[1].encode(b"x" * (LIMIT + 1), text=True))[:20])
    assert isinstance(protocol.parser_exc, PayloadTooBig)
    assert not taker.partial
    taker.feed(b"the rest")
    assert not taker.messages


@ENDS
def test_a_close_is_read_behind_a_message_that_came_in_part(sender: Make, receiver: Make) -> None:
    protocol, taker = receiver()
    stream = b"".join(sender()[1].encode(b"hello", text=True)) + raw(WebSocketFrame(Opcode.CLOSE, b"\x03\xe8"), sender)
    taker.feed(stream[:4])
    protocol.send_close(1000)
    taker.feed(stream[4:])
    assert [message.payload for message in taker.messages] == [b"hello"]
    assert protocol.close_rcvd is not None


def test_a_long_binary_message_comes_without_a_copy_and_is_its_own() -> None:
    (_, receiver), (_, sender) = client(), server()
    sent = bytes(range(256)) * (LIMIT // 256)
    data = b"".join(sender.encode(sent, text=False))
    for _ in range(2):
        receiver.feed(data[:50])
        while (target := receiver.target) is not None:
            part = data[-len(target) :][: LIMIT // 3]
            target[: len(part)] = part
            receiver.filled(len(part))
    first, second = receiver.messages
    assert first.payload == second.payload == sent
    assert isinstance(first.payload, memoryview)
    first.payload[0] = 7  # type: ignore[index]
    assert second.payload[0] == 0


@ENDS
@pytest.mark.parametrize("most", [1, 2, 5])
def test_frames_may_be_taken_some_at_a_time(sender: Make, receiver: Make, most: int) -> None:
    parts = [WebSocketFrame(Opcode.TEXT, b"a", False), *[WebSocketFrame(Opcode.CONT, b"b", False)] * 3]
    parts += [WebSocketFrame(Opcode.PING, b""), WebSocketFrame(Opcode.CONT, b"c")]
    data = b"".join(raw(part, sender) for part in parts) + b"".join(sender()[1].encode(b"d", text=True))
    taker = receiver()[1]
    feeds = 0
    while data:
        data = taker.feed(data, most)
        feeds += 1
    assert [frame.payload for frame in taker.messages] == [b"abbbc", b"d"]
    assert feeds == -(-7 // most)
