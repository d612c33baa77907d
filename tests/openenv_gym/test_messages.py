"""The messages of the wire: their JSON text, both ways, and what is refused."""

from __future__ import annotations

import msgspec
import pytest

from openenv_gym import messages
from openenv_gym.errors import ProtocolError
from openenv_gym.frames import Kind, read_frame, write_frame
from openenv_gym.json_text import encode_json
from openenv_gym.messages import decode_reply


def test_a_request_carries_its_type_first_and_leaves_defaults_out() -> None:
    assert encode_json(messages.Reset(data={"seed": 3})) == b'{"type":"reset","data":{"seed":3}}'
    assert encode_json(messages.State()) == b'{"type":"state"}'
    assert encode_json(messages.Open()) == b'{"type":"x-open"}'
    assert encode_json(messages.Step(data={"action": 1}, id=7)) == b'{"type":"step","data":{"action":1},"id":7}'


def test_every_request_is_listed_by_its_type() -> None:
    assert set(messages.REQUEST_TYPES) == {
        "reset",
        "step",
        "state",
        "close",
        "mcp",
        "x-open",
        "x-render",
        "x-call",
        "x-get_attr",
        "x-set_attr",
        "x-vector_reset",
        "x-vector_step",
    }
    for tag, kind in messages.REQUEST_TYPES.items():
        assert kind.extension is tag.startswith("x-")


def test_messages_are_frozen() -> None:
    with pytest.raises(AttributeError):
        messages.State().id = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            b'{"type":"observation","data":{"observation":{"obs":1},"reward":null,"done":false}}',
            messages.ObservationReply,
        ),
        (b'{"type":"state","data":{"step_count":0}}', messages.StateReply),
        (b'{"type":"mcp","data":{}}', messages.McpReply),
        (b'{"type":"error","data":{"message":"m","code":"C"},"extra":1}', messages.ErrorReply),
        (b'{"type":"x-open","data":{"session_id":"s","schema":{},"metadata":{}}}', messages.OpenReply),
        (b'{"type":"x-render","data":{"value":null}}', messages.RenderReply),
        (b'{"type":"x-call","data":{"value":1},"id":"a"}', messages.CallReply),
        (b'{"type":"x-get_attr","data":{"value":1}}', messages.GetAttrReply),
        (b'{"type":"x-set_attr"}', messages.SetAttrReply),
        (b'{"type":"x-vector","data":{"observations":[{"obs":1}],"final":{"0":{"obs":2}}}}', messages.VectorReply),
    ],
)
def test_a_reply_is_told_by_its_type(text: bytes, kind: type[messages.Reply]) -> None:
    assert type(decode_reply(text)) is kind


def test_a_reward_keeps_its_json_type() -> None:
    for reward in (True, 1, 1.0, None):
        reply = decode_reply(encode_json({"type": "observation", "data": {"observation": {}, "reward": reward}}))
        assert isinstance(reply, messages.ObservationReply)
        assert type(reply.data.reward) is type(reward)
        assert reply.data.metadata is msgspec.UNSET


@pytest.mark.parametrize(
    "text", [b"{}", b"3", b'{"type":"nonsense","data":{}}', b'{"type":"state"}', b"[" * 100_000, "\ud800"]
)
def test_a_reply_that_no_server_may_send_is_refused_with_its_start(text: bytes | str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_reply(text)
    assert caught.value.received is not None


@pytest.mark.parametrize(
    ("settings", "vector"),
    [
        ({}, False),
        ({"render_mode": "ansi", "max_episode_steps": 3}, False),
        ({"num_envs": 2}, True),
        ({"autoreset_mode": "Disabled"}, True),
        ({"vectorization": "sync"}, True),
    ],
)
def test_a_session_is_one_of_several_environments_where_its_settings_say_so(settings: dict, vector: bool) -> None:
    assert messages.OpenSettings(**settings).vector is vector


def test_a_reply_in_a_binary_frame_has_the_id_of_its_frame() -> None:
    packed = read_frame(write_frame(Kind.OUTCOME, 7, 1, None, []))
    assert messages.PackedReply(packed).id == 7
