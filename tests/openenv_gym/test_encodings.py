"""The two encodings of resets and steps: which is chosen, and that they never differ in a value."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, GraphInstance, OneOf, Sequence, Space, Text, Tuple
from hypothesis import given, settings
from hypothesis import strategies as st

from openenv_gym import frames, messages
from openenv_gym.encodings import BinaryEncoding, Encoding, TextEncoding, choose
from openenv_gym.errors import (
    EnvironmentExecutionError,
    InvalidActionError,
    OpenEnvGymError,
    ProtocolError,
    SessionStateError,
    SettingsError,
    ValueMappingError,
)
from openenv_gym.info import encode_exact
from openenv_gym.interface import Interface, SpaceOverrides
from openenv_gym.json_text import decode_json, encode_json
from openenv_gym.shell import Shell
from openenv_gym.spaces import schema_from_space
from openenv_gym.transports.base import ConnectionSettings, Frame
from openenv_gym.transports.memory import memory_pair
from openenv_gym_server.errors import error_frame
from openenv_gym_server.space_codec import GymObservation, SpaceCodec
from tests.openenv_gym.spaces.strategies import assert_same_sample, samples, spaces


class Scripted:
    """A server of one environment whose answers the test writes; it keeps what it was asked."""

    def __init__(self, action: Space[Any], observation: Space[Any], *, binary: bool = True) -> None:
        self.codec = SpaceCodec(action, observation, "Scripted-v0")
        self.opened = {
            "session_id": "s",
            "schema": self.codec.schema(),
            "metadata": {"name": "Scripted-v0", "gymnasium": {}},
            "binary": binary,
        }
        self.answer: GymObservation | bytes = GymObservation(None)
        self.actions: list[Any] = []
        self.resets: list[Any] = []
        self.binary_frames = 0

    def encoding(self, binary: bool | None, overrides: SpaceOverrides | None = None) -> Encoding:
        """A session with this server."""
        client, _ = memory_pair(self._answer)
        shell = Shell("http://host", ConnectionSettings(), messages.OpenSettings(), connect=lambda *_, **__: client)
        shell.open()
        return choose(
            shell, Interface.of(shell.opened, "http://host", shell.settings, overrides or SpaceOverrides()), binary
        )

    def _answer(self, frame: Frame) -> Frame:
        if isinstance(self.answer, bytes) and not frame.text:
            return Frame(self.answer, text=False)
        request_id = frames.read_frame(frame.payload).id if not frame.text else decode_json(frame.payload)["id"]  # type: ignore[index, call-overload]
        try:
            return self._in_text(frame) if frame.text else self._in_bytes(frame)
        except OpenEnvGymError as error:
            return Frame(error_frame(error, request_id), text=True)

    def _in_text(self, frame: Frame) -> Frame:
        request: Any = decode_json(frame.payload)
        if request["type"] == "x-open":
            return Frame(encode_json({"type": "x-open", "data": self.opened, "id": request["id"]}), text=True)
        if request["type"] == "reset":
            self.resets.append(request.get("data", {}))
        else:
            self.actions.append(self.codec.decode_action(request["data"]))
        outcome = self.codec.encode_observation(self.answer)
        return Frame(encode_json(messages.ObservationReply(data=outcome, id=request["id"])), text=True)

    def _in_bytes(self, frame: Frame) -> Frame:
        packed = frames.read_frame(frame.payload)
        assert (packed.count, packed.env_ids) == (1, None)
        self.binary_frames += 1
        if packed.kind is frames.Kind.RESET:
            self.resets.append(decode_json(bytes(packed.body)))
        else:
            self.actions.append(self.codec.unpack_action(packed.body))
        return Frame(self.codec.pack_observation(self.answer, packed.id), text=False)


def both(action: Space[Any], observation: Space[Any]) -> list[tuple[Scripted, Encoding]]:
    """A session in text and one in binary frames, each begun."""
    pairs = []
    for binary in (False, True):
        server = Scripted(action, observation)
        encoding = server.encoding(binary)
        server.answer = GymObservation(samples(observation, np.random.default_rng(0)))
        encoding.reset({}, 1.0)
        pairs.append((server, encoding))
    return pairs


def result(call: Any) -> Any:
    """What a call gives, or the error's type, text and facts."""
    try:
        return call()
    except OpenEnvGymError as error:
        return type(error), error.message, {name: getattr(error, name) for name in error.attributes}


INFOS = [
    {},
    {"lives": 3, "names": ["a", None], "nested": {"x": [1.5, True]}},
    {"mask": np.array([1, 0], np.int8), "ratio": np.float32(0.1), 7: (1, 2)},
    {"nan": math.nan, "big": 2**70, "raw": b"\xff", "when": datetime.date(2026, 1, 2), "odd": object, "$": 1},
]
REWARDS = [0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 1e-320]


def loosened(sample: Any, rng: np.random.Generator) -> Any:
    """The sample as environments and users write such: other dtypes, lists, Python's numbers; or something else."""
    if isinstance(sample, np.ndarray):
        forms = (
            sample,
            sample.tolist(),
            sample.astype(np.float64),
            sample[..., None],
            sample.astype(object),
            sample > 0,
        )
        return forms[rng.integers(len(forms))]
    if isinstance(sample, np.integer):
        forms = (int(sample), float(sample), np.array(sample), bool(sample), 0.5, [int(sample)], None)
        return forms[rng.integers(len(forms))]
    if isinstance(sample, GraphInstance):
        return GraphInstance(*(None if part is None else loosened(part, rng) for part in sample))
    if isinstance(sample, dict):
        parts = [(key, loosened(part, rng)) for key, part in reversed(sample.items())]
        return dict(parts[: len(parts) - int(rng.random() < 0.1)])
    if isinstance(sample, tuple):
        parts = [loosened(part, rng) for part in sample]
        return parts if rng.random() < 0.5 else tuple(parts)
    return 7 if rng.random() < 0.1 else sample


@settings(max_examples=80, deadline=None)
@given(spaces(), st.integers(0, 2**32), st.sampled_from(INFOS), st.sampled_from(REWARDS), st.booleans(), st.booleans())
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast", "ignore:overflow encountered in cast")
def test_a_step_gives_the_same_bits_in_both(
    space: Space[Any], seed: int, info: dict[Any, Any], reward: float, terminated: bool, loose: bool
) -> None:
    results = []
    for server, encoding in both(Discrete(2), space):
        rng = np.random.default_rng(seed)
        sample = samples(space, rng)
        observation = loosened(sample, rng) if loose else sample
        server.answer = GymObservation(
            observation, reward, terminated, not terminated, info, ("mind the gap",), early=True
        )
        server.codec._dtype_noted = False
        results.append(result(lambda encoding=encoding: encoding.step(1, 1.0)))
    text, binary = results
    if isinstance(text, tuple):
        assert binary == text
        return
    assert_same_sample(binary.observation, text.observation, payloads=False)
    assert (binary.flags, binary.notes) == (text.flags, text.notes)
    assert np.float64(binary.reward).tobytes() == np.float64(text.reward).tobytes()
    assert encode_exact(binary.info) == encode_exact(text.info)
    assert binary.outcome == text.outcome


@settings(max_examples=80, deadline=None)
@given(spaces(), st.integers(0, 2**32), st.booleans(), st.booleans())
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast", "ignore:overflow encountered in cast")
def test_an_action_arrives_or_is_refused_alike_in_both(space: Space[Any], seed: int, member: bool, loose: bool) -> None:
    results = []
    for server, encoding in both(space, Discrete(2)):
        rng = np.random.default_rng(seed)
        sample = samples(space, rng, member=member)
        action = loosened(sample, rng) if loose else sample
        server.answer = GymObservation(1, 0.5)
        answer = result(lambda encoding=encoding, action=action: encoding.step(action, 1.0))
        results.append((server.actions, answer if isinstance(answer, tuple) else answer.outcome))
    (text_actions, text), (binary_actions, binary) = results
    assert text == binary
    assert len(text_actions) == len(binary_actions)
    for one, two in zip(binary_actions, text_actions, strict=True):
        assert_same_sample(one, two, payloads=False)


@pytest.mark.parametrize("data", [{}, {"seed": 3, "options": {"$": "tuple", "items": [1]}}])
@pytest.mark.parametrize("info", INFOS)
def test_a_reset_says_the_same_in_both(data: dict[str, Any], info: dict[Any, Any]) -> None:
    space = Box(-1, 1, (2,), np.float32)
    answers = []
    for server, encoding in both(Discrete(2), space):
        server.answer = GymObservation(np.array([0.5, -0.0], np.float64), info=info, early=True)
        answers.append(encoding.reset(data, 1.0))
        assert server.resets[-1] == data
    text, binary = answers
    assert_same_sample(binary.observation, text.observation)
    assert (binary.flags, binary.reward, binary.notes) == (text.flags, text.reward, text.notes)
    assert "was cast" in binary.notes[0]
    assert encode_exact(binary.info) == encode_exact(text.info)
    assert binary.outcome == text.outcome


def test_each_reading_of_an_observation_is_an_array_of_its_own() -> None:
    _, (server, encoding) = both(Discrete(2), Box(0, 255, (3,), np.uint8))
    server.answer = GymObservation(np.array([1, 2, 3], np.uint8), 0.0)
    answer = encoding.step(1, 1.0)
    answer.observation[0] = 99
    assert answer.observation.tolist() == [1, 2, 3]
    assert answer.outcome.observation == {"obs": [1, 2, 3]}


@pytest.mark.parametrize(
    ("space", "action", "loc"),
    [
        (Discrete(3), 5, ["action"]),
        (Box(-1, 1, (2,), np.float32), [0, 2], ["action", 1]),
        (Dict(arm=Tuple([Text(2)])), {"arm": ("abc",)}, ["action", "arm", 0]),
        (Sequence(Discrete(2)), (0, 1, 2), ["action", 2]),
        (OneOf((Discrete(2), Text(1))), (0, 7), ["action", 1]),
        (Graph(Discrete(2), None), GraphInstance(np.array([0, 5]), None, None), ["action", "nodes", 1]),
    ],
)
def test_an_action_outside_the_space_is_refused_by_the_server_with_its_path(
    space: Space[Any], action: Any, loc: list[Any]
) -> None:
    for server, encoding in both(space, Discrete(2)):
        with pytest.raises(InvalidActionError) as caught:
            encoding.step(action, 1.0)
        assert [error["loc"] for error in caught.value.errors or []] == [loc]
        assert server.actions == []


@pytest.mark.parametrize("action", [None, [1, 2], 0.5, "1"])
def test_an_action_that_is_none_is_not_sent(action: Any) -> None:
    for server, encoding in both(Discrete(2), Discrete(2)):
        frames_before = server.binary_frames
        with pytest.raises(ValueMappingError) as caught:
            encoding.step(action, 1.0)
        assert caught.value.path == "$.action"
        assert (server.actions, server.binary_frames) == ([], frames_before)


def test_an_observation_that_does_not_fit_is_the_same_failure() -> None:
    texts = []
    for server, encoding in both(Discrete(2), Box(-1, 1, (2,), np.float32)):
        server.answer = GymObservation(np.zeros(3, np.float32), 0.0)
        with pytest.raises((ValueMappingError, EnvironmentExecutionError, InvalidActionError)) as caught:
            encoding.step(1, 1.0)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


# ------------------------------------------------------------------------------------------------ what is chosen

SMALL, LARGE = Discrete(2), Box(0, 255, (16, 16), np.uint8)


@pytest.mark.parametrize(
    ("action", "observation", "asked", "chosen"),
    [
        (SMALL, SMALL, None, TextEncoding),
        (SMALL, SMALL, True, BinaryEncoding),
        (SMALL, LARGE, None, BinaryEncoding),
        (LARGE, SMALL, None, BinaryEncoding),
        (SMALL, Dict(a=Text(9), b=LARGE), None, BinaryEncoding),
        (SMALL, Sequence(LARGE), None, BinaryEncoding),
        (SMALL, OneOf((SMALL, LARGE)), None, BinaryEncoding),
        (SMALL, Graph(Box(0, 1, (32,), np.float32), None), None, BinaryEncoding),
        (SMALL, Text(10_000), None, TextEncoding),
        (SMALL, Sequence(Tuple((SMALL, SMALL))), None, TextEncoding),
        (Box(0, 1, (4,), np.float32), Box(0, 1, (27,), np.float32), None, TextEncoding),
        (Box(0, 1, (4,), np.float32), Box(0, 1, (28,), np.float32), None, BinaryEncoding),
        (LARGE, LARGE, False, TextEncoding),
    ],
)
def test_large_values_travel_as_bytes_unless_it_is_said_otherwise(
    action: Space[Any], observation: Space[Any], asked: bool | None, chosen: type
) -> None:
    server = Scripted(action, observation)
    assert type(server.encoding(asked)) is chosen


@pytest.mark.parametrize(
    "overrides",
    [
        SpaceOverrides(flatten=False),
        SpaceOverrides(observation_space=LARGE),
        SpaceOverrides(encode_action=lambda action: {"action": action}),
    ],
)
def test_values_that_the_caller_reads_himself_stay_text(overrides: SpaceOverrides) -> None:
    server = Scripted(SMALL, LARGE)
    assert type(server.encoding(None, overrides)) is TextEncoding
    with pytest.raises(SettingsError) as caught:
        server.encoding(True, overrides)
    assert caught.value.setting == "binary"


def test_a_server_without_binary_frames_gets_none() -> None:
    server = Scripted(SMALL, LARGE, binary=False)
    assert type(server.encoding(None)) is TextEncoding
    with pytest.raises(SettingsError) as caught:
        server.encoding(True)
    assert caught.value.setting == "binary"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"obs": {"type": "array", "items": {"type": "integer"}}}},
        {
            "type": "object",
            "properties": {"obs": schema_from_space(LARGE), "text": {"type": "string"}},
            "required": ["obs", "text"],
        },
    ],
)
def test_values_without_a_published_space_stay_text(schema: dict[str, Any]) -> None:
    server = Scripted(SMALL, LARGE)
    server.opened["schema"] = {**server.codec.schema(), "observation": schema}
    assert type(server.encoding(None)) is TextEncoding


# ------------------------------------------------------------------------------------- what no server may answer


@pytest.mark.parametrize(
    "answer",
    [
        frames.write_outcome(2, 1, None, observations=[bytes(8)]),
        frames.write_outcome(2, 2, None, observations=[bytes(16)], stepped=([1, 1], [0, 0], [0, 0])),
        frames.write_outcome(2, 1, [0], observations=[bytes(8)], stepped=([1], [0], [0])),
        frames.write_frame(frames.Kind.OUTCOME, 2, 1, None, [b"\1"], flags=2),
        frames.write_frame(frames.Kind.STEP, 2, 1, None, [bytes(8)]),
        b"\7" * 30,
    ],
)
def test_an_answer_to_a_step_that_cannot_be_ends_the_session(answer: bytes) -> None:
    _, (server, encoding) = both(SMALL, SMALL)
    server.answer = bytes([*answer[:8], 3, *answer[9:]])
    with pytest.raises(ProtocolError):
        encoding.step(1, 1.0)
    with pytest.raises(OpenEnvGymError):
        encoding.step(1, 1.0)


def test_a_reward_after_a_reset_ends_the_session() -> None:
    server = Scripted(SMALL, SMALL)
    encoding = server.encoding(True)
    server.answer = frames.write_outcome(2, 1, None, observations=[bytes(8)], stepped=([1], [0], [0]))
    with pytest.raises(ProtocolError):
        encoding.reset({}, 1.0)


def test_a_step_without_a_reset_is_refused_in_both() -> None:
    for binary in (False, True):
        with pytest.raises(SessionStateError):
            Scripted(SMALL, SMALL).encoding(binary).step(1, 1.0)


def test_an_observation_of_other_bytes_and_an_info_that_is_none_are_told_where_they_are_read() -> None:
    _, (server, encoding) = both(SMALL, SMALL)
    server.answer = frames.write_outcome(
        3, 1, None, observations=[bytes(7)], stepped=([1], [0], [0]), info={"$": "tuple", "items": []}
    )
    answer = encoding.step(1, 1.0)
    for read in (lambda: answer.observation, lambda: answer.info):
        with pytest.raises(ValueMappingError) as caught:
            read()
        assert caught.value.path == "$"


def test_a_binary_reset_refuses_keys_that_are_one_in_json_before_anything_is_sent():
    encoding = object.__new__(BinaryEncoding)
    with pytest.raises(ValueMappingError) as caught:
        encoding.reset({"options": {1: "a", "1": "b"}}, 1.0)
    assert caught.value.path == "$.options"
