"""The process in which code runs, taken apart: its pipe and its names."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import Any

import pytest

from openenv_gym_server import code_child
from openenv_gym_server.code_child import Line, ToolError, run


def said(code: str, *answers: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """The outcome of a piece of code, and the messages that went out, with these answers coming in."""
    incoming = io.BytesIO(b"".join(json.dumps(answer).encode() + b"\n" for answer in answers))
    outgoing = io.BytesIO()
    outcome = run(code, {"look": [["direction"], "Look."]}, Line(incoming, outgoing))
    return outcome, [json.loads(line) for line in outgoing.getvalue().splitlines()]


def test_a_call_is_a_message_and_its_answer_the_value() -> None:
    outcome, sent = said("result = look('north')", {"value": "a door"})
    assert outcome == {"result": "a door"}
    assert sent == [{"call": "look", "arguments": {"direction": "north"}}]


def test_an_answer_that_is_an_error_is_raised() -> None:
    code = "try:\n    look()\nexcept ToolError as error:\n    result = error"
    error = said(code, {"error": "too slow", "error_type": "timeout"})[0]["result"]
    assert isinstance(error, ToolError)
    assert (str(error), error.error_type) == ("too slow", "timeout")


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("", {"result": None}),
        ("look(", {"error": "Syntax error: '(' was never closed (<code>, line 1)"}),
        ("raise SystemExit(0)", {"result": None}),
        ("raise SystemExit('no')", {"error": "the code exited with 'no'"}),
        ("raise KeyboardInterrupt", {"error": "KeyboardInterrupt"}),
        ("look(1, 2)", {"error": "look() takes 1 arguments, got 2"}),
        ("look(1, direction=2)", {"error": "look() got two values for 'direction'"}),
        ("look(object())", {"error": "expected a value with a JSON form: object has none"}),
        ("class E(Exception):\n    def __str__(self): raise SystemExit\nraise E", {"error": "E"}),
    ],
)
def test_code_ends_with_a_result_or_an_error(code: str, outcome: dict[str, Any]) -> None:
    assert said(code)[0] == outcome


@pytest.mark.parametrize(
    ("code", "plain"),
    [
        ("result = {b'\\x00'[0]: {3}}", {"0": [3]}),
        ("result = bytearray(b'a')", "YQ=="),
        ("import numpy; result = [numpy.zeros(2), numpy.int64(3)]", [[0.0, 0.0], 3]),
        ("import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int\nresult = A(1)", {"x": 1}),
        ("result = float('nan')", float("nan")),
    ],
)
def test_values_leave_in_plain_json(code: str, plain: Any) -> None:
    text = code_child._outcome_text(said(code)[0])
    assert json.dumps(json.loads(text)["result"]) == json.dumps(plain)


@pytest.mark.parametrize("result", ["object()", "type('T', (), {'tolist': lambda self: 1 / 0})()", "int"])
def test_a_result_without_json_form_is_an_error_that_says_it_is_lost(result: str) -> None:
    told = json.loads(code_child._outcome_text(said(f"result = {result}")[0]))["error"]
    assert told.startswith("the code has run, but its result cannot be sent and is lost: ")


def test_it_runs_by_its_file_alone_and_says_what_confines_it() -> None:
    order = {"code": "print('so'); result = 1", "tools": {}, "limits": {"time_s": 5, "memory_mb": 1024}}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-u", code_child.__file__],
        input=json.dumps(order).encode() + b"\n",
        capture_output=True,
        timeout=60,
    )
    confined, outcome = map(json.loads, done.stdout.splitlines())
    assert "rlimits" in confined["holding"]
    assert (outcome, done.stderr, done.returncode) == ({"result": 1}, b"so\n", 0)
