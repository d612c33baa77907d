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

JSON_ERROR = "TypeError: the JSON object must be str, bytes or bytearray, not int"
NO_TEXT = "UnicodeEncodeError: 'utf-8' codec can't encode character '\\ud800' in position 1: surrogates not allowed"
KEYS = ["null", "true", "2.5", str(2**70), "NaN"]


def said(code: str, *answers: dict[str, Any], tool: str = "look") -> tuple[dict[str, Any], list[Any]]:
    """The outcome of a piece of code, and the messages that went out, with these answers coming in."""
    incoming = io.BytesIO(b"".join(json.dumps(answer).encode() + b"\n" for answer in answers))
    outgoing = io.BytesIO()
    outcome = run(code, {tool: [["direction"], "Look."]}, Line(incoming, outgoing))
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
        ("", {"value": None}),
        ("result = 3; 4", {"result": 3}),
        ("result = None; 4", {"result": None}),
        ("3\n4", {"value": 4}),
        ("'text'", {"value": "text"}),
        ("x = 3", {"value": None}),
        ("x = 3\n[\n    x,\n]", {"value": [3]}),
        ("if True:\n    3", {"value": None}),
        ("result = 3\ndel result\n4", {"value": 4}),
        ("look(", {"error": "Syntax error: '(' was never closed (<code>, line 1)"}),
        ("raise SystemExit(0)", {"value": None}),
        ("raise SystemExit('no')", {"error": "the code exited with 'no'"}),
        ("raise KeyboardInterrupt", {"error": "KeyboardInterrupt (line 1)"}),
        ("look(1, 2)", {"error": "TypeError: look() takes 1 arguments, got 2 (line 1)"}),
        ("look(1, direction=2)", {"error": "TypeError: look() got two values for 'direction' (line 1)"}),
        ("look(object())", {"error": "TypeError: expected a value with a JSON form: object has none (line 1)"}),
        ("class E(Exception):\n    def __str__(self): raise SystemExit\nraise E", {"error": "E (line 3)"}),
        ("{}['missing']", {"error": "KeyError: 'missing' (line 1)"}),
        ("import json\ndef f():\n    json.loads(3)\nf()", {"error": JSON_ERROR + " (line 3)"}),
        ("exec('1 / 0')", {"error": "ZeroDivisionError: division by zero (line 1)"}),
        ("\nexec('1 +')", {"error": "SyntaxError: invalid syntax (<string>, line 1) (line 2)"}),
        ("'\ud800'", {"error": NO_TEXT}),
        ("class E(Exception):\n    __traceback__ = property(lambda self: 1 / 0)\nraise E('text')", {"error": "text"}),
    ],
)
def test_code_ends_with_a_result_a_value_or_an_error(code: str, outcome: dict[str, Any]) -> None:
    assert said(code)[0] == outcome


def test_a_tool_that_is_called_result_is_no_result() -> None:
    assert said("3", tool="result")[0] == {"value": 3}
    assert said("result = result('north')", {"value": "a door"}, tool="result")[0] == {"result": "a door"}


def test_code_is_compiled_by_its_own_future_alone() -> None:
    assert said("def f(a: 1 + 1): pass\nf.__annotations__")[0] == {"value": {"a": 2}}


@pytest.mark.parametrize(
    ("code", "plain"),
    [
        ("result = {b'\\x00'[0]: {3}}", {"0": [3]}),
        ("result = bytearray(b'a')", "YQ=="),
        ("import numpy; result = [numpy.zeros(2), numpy.int64(3)]", [[0.0, 0.0], 3]),
        ("import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int\nresult = A(1)", {"x": 1}),
        ("result = [float('nan'), float('inf'), -float('inf'), -0.0]", ["NaN", "Infinity", "-Infinity", -0.0]),
        ("result = {None: 1, True: 2, 2.5: 3, 2**70: 4, float('nan'): 5}", dict(zip(KEYS, range(1, 6), strict=True))),
        ("import numpy; result = {numpy.int64(3): numpy.bool_(1)}", {"3": True}),
        ("import enum\nE = enum.Enum('E', {'a': 'b'})\nresult = {E.a: [E.a, (2**70,)]}", {"b": ["b", [2**70]]}),
        ("'ü'", "ü"),
    ],
)
def test_values_leave_in_plain_json(code: str, plain: Any) -> None:
    text = code_child._outcome_text(said(code)[0])
    assert json.dumps(json.loads(text)["result"]) == json.dumps(plain)


COLLIDING = ["{1: 'a', '1': 'b'}", "[{None: 1, 'null': 2}]", "{True: 1, 'true': 2}", "{'a': {1.5: 1, '1.5': 2}}"]


@pytest.mark.parametrize("colliding", COLLIDING)
def test_keys_that_become_one_in_json_are_refused_and_none_is_lost(colliding: str) -> None:
    told = json.loads(code_child._outcome_text(said(f"result = {colliding}")[0]))["error"]
    assert "its result cannot be sent and is lost: " in told
    assert "expected keys that differ as JSON strings" in told
    outcome, sent = said(f"look({colliding})")
    assert outcome["error"].startswith("TypeError: ")
    assert "expected keys that differ as JSON strings" in outcome["error"]
    assert sent == []


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_an_argument_is_a_finite_number(number: str) -> None:
    outcome, sent = said(f"look(float('{number}'))")
    assert outcome["error"].endswith(f"expected a finite number, got {number} (line 1)")
    assert sent == []


@pytest.mark.parametrize(
    ("value", "too_much"),
    [("'a' * 2**21", "2 MiB"), ("[1] * 100_001", "100,000 values"), ("[[]] * 60_000", "100,000 values")],
)
def test_what_is_too_large_is_refused_before_it_is_sent(value: str, too_much: str) -> None:
    told = json.loads(code_child._outcome_text(said(f"result = {value}")[0]))["error"]
    assert told.endswith(f"is lost: the value's JSON is above the limit of {too_much}")
    outcome, sent = said(f"look({value})")
    assert outcome == {"error": f"ValueError: the value's JSON is above the limit of {too_much} (line 1)"}
    assert sent == []


@pytest.mark.parametrize("text", ["[,{" * 300_000, '"[' * 200_000, "\\" * 300_000, ',\\"' * 100_000])
def test_a_text_is_one_value_whatever_is_in_it(text: str) -> None:
    assert code_child.excess(json.dumps({"result": [text, "," * 100_001]}).encode()) is None


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("{1: 2, '1': 3}", "{1: 2, '1': 3}"),
        ("object", "<class 'object'>"),
        ("[1] * 100_001", str([1] * 2_000)[:4_000] + "... (296003 more characters are left out)"),
    ],
)
def test_a_last_expression_that_cannot_be_sent_is_told_as_python_writes_it(value: str, told: str) -> None:
    assert json.loads(code_child._outcome_text(said(value)[0])) == {"result": told}


def test_a_last_expression_that_python_cannot_write_is_told_by_its_class() -> None:
    code = "class T:\n    def __repr__(self): raise SystemExit\nT()"
    assert json.loads(code_child._outcome_text(said(code)[0]))["result"].startswith("<__main__.T object at 0x")


@pytest.mark.parametrize("result", ["object()", "type('T', (), {'tolist': lambda self: 1 / 0})()", "int", "{(1,): 2}"])
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
