"""The tables of ``docs/protocol.md`` are test vectors: each line is what the code reads and writes."""

from __future__ import annotations

import datetime
import json
import re

import gymnasium
import numpy as np
import pytest

from openenv_gym import UnicodeText
from openenv_gym.info import decode_exact, encode_exact
from openenv_gym.messages import REQUEST_TYPES, encode_json
from openenv_gym.spaces import codec_for, space_from_json, space_to_json
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
}


def rows(section: str, columns: int) -> list[tuple[str, ...]]:
    """The lines of a section's table, each cell's code alone."""
    body = TEXT.partition(f"\n## {section}")[2].partition("\n## ")[0]
    cells = [re.findall(r"`((?:\\\||[^`])+)`", line) for line in body.splitlines() if line.startswith("| `")]
    return [tuple(cell.replace("\\|", "|") for cell in line) for line in cells if len(line) == columns]


def python(code: str):
    return eval(code, dict(NAMES))


VALUES, SPACES, EXACT = rows("3", 3), rows("4", 2), rows("5", 2)


def test_the_tables_are_found() -> None:
    assert (len(VALUES), len(SPACES), len(EXACT)) == (13, 12, 11)


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


def test_every_request_of_the_wire_is_described() -> None:
    assert [name for name in REQUEST_TYPES if f'{{"type":"{name}"' not in TEXT] == []
