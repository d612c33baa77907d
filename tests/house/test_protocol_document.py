"""The tables of ``docs/protocol.md`` are test vectors: each line is what the code reads and writes."""

from __future__ import annotations

import datetime
import json
import re

import gymnasium
import numpy as np
import pytest

from openenv_gym import UnicodeText
from openenv_gym.frames import (
    Kind,
    Part,
    Wait,
    read_frame,
    read_outcome,
    write_frame,
    write_outcome,
    write_waiting_step,
)
from openenv_gym.info import decode_exact, encode_exact
from openenv_gym.json_text import encode_json
from openenv_gym.messages import REQUEST_TYPES
from openenv_gym.spaces import BatchCodec, BufferCodec, codec_for, space_from_json, space_to_json
from openenv_gym.spaces.batches import unstack
from tests.house.repository import ROOT

TEXT = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
SPACE_NAMES = [
    *("Box", "Dict", "Discrete", "Graph", "GraphInstance", "MultiBinary"),
    *("MultiDiscrete", "OneOf", "Sequence", "Text", "Tuple"),
]
NAMES = {name: getattr(gymnasium.spaces, name) for name in SPACE_NAMES} | {
    "UnicodeText": UnicodeText,
    "np": np,
    "datetime": datetime,
    "Kind": Kind,
    "BatchCodec": BatchCodec,
    "write_frame": write_frame,
    "write_outcome": write_outcome,
    "write_waiting_step": write_waiting_step,
    "Wait": Wait,
}


def rows(section: str, columns: int) -> list[tuple[str, ...]]:
    """The lines of a section's table, each cell's code alone."""
    body = TEXT.partition(f"\n## {section}")[2].partition("\n## ")[0]
    cells = [re.findall(r"`((?:\\\||[^`])+)`", line) for line in body.splitlines() if line.startswith("| `")]
    return [tuple(cell.replace("\\|", "|") for cell in line) for line in cells if len(line) == columns]


def python(code: str):
    return eval(code, dict(NAMES))


VALUES, SPACES, EXACT = rows("3", 3), rows("4", 2), rows("5", 2)
BATCHES, FRAMES = rows("9", 3), rows("9", 2)


def test_the_tables_are_found() -> None:
    assert (len(VALUES), len(SPACES), len(EXACT), len(BATCHES), len(FRAMES)) == (13, 12, 11, 13, 8)


@pytest.mark.parametrize(("space", "value", "text"), VALUES)
def test_a_value_is_written_as_its_line_says_and_read_back(space: str, value: str, text: str) -> None:
    codec = codec_for(python(space))
    written = codec.encode(python(value))
    assert encode_json(written).decode() == text
    assert encode_json(codec.encode(codec.decode(json.loads(text)))).decode() == text


@pytest.mark.parametrize(("space", "text"), SPACES)
def test_a_space_is_written_as_its_line_says_and_read_back(space: str, text: str) -> None:
    assert encode_json(space_to_json(python(space))).decode() == text
    assert space_from_json(json.loads(text)) == python(space)


@pytest.mark.parametrize(("value", "text"), EXACT)
def test_an_exact_value_is_written_as_its_line_says_and_read_back(value: str, text: str) -> None:
    assert encode_json(encode_exact(python(value))).decode() == text
    assert encode_json(encode_exact(decode_exact(json.loads(text)))).decode() == text


@pytest.mark.parametrize(("space", "batch", "hexadecimal"), BATCHES)
def test_a_batch_is_written_as_its_line_says_and_read_back(space: str, batch: str, hexadecimal: str) -> None:
    codec, data = BatchCodec(python(space)), bytes.fromhex(hexadecimal)
    count = batch_size(python(space), python(batch))
    assert joined(codec.pack(python(batch), count)) == data
    assert joined(codec.pack(codec.unpack(data, count), count)) == data
    if count == 1:
        assert BufferCodec(python(space)).pack(unstack(python(space), python(batch))[0]) == data


def batch_size(space: gymnasium.Space, batch) -> int:
    return len(unstack(space, batch))


def joined(parts: list[Part]) -> bytes:
    return write_frame(Kind.STEP, 0, 0, None, parts)[16:]


@pytest.mark.parametrize(("frame", "hexadecimal"), FRAMES)
def test_a_frame_is_written_as_its_line_says_and_read_back(frame: str, hexadecimal: str) -> None:
    data = bytes.fromhex(hexadecimal)
    assert python(frame) == data
    packed = read_frame(data)
    if packed.wait is not None:
        assert write_waiting_step(packed.id, packed.count, packed.env_ids, [packed.body], packed.wait) == data
        return
    if packed.kind is not Kind.OUTCOME:
        assert write_frame(packed.kind, packed.id, packed.count, packed.env_ids, [packed.body]) == data
        return
    read = read_outcome(packed)
    again = write_outcome(
        packed.id,
        packed.count,
        packed.env_ids,
        observations=[read.observations],
        stepped=read.stepped and (read.stepped.rewards, read.stepped.terminations, read.stepped.truncations),
        info=read.info,
        notes=read.notes,
        final=read.final and (read.final.rows, [read.final.observations]),
    )
    assert again == data


def test_every_request_of_the_wire_is_described() -> None:
    assert [name for name in REQUEST_TYPES if f'{{"type":"{name}"' not in TEXT] == []
