"""The process in which an agent's code runs: its tools are functions that ask the server, over a pipe.

Run by file, ``python -I code_child.py``, without the package: the standard library alone, so that it is there within
some 20 ms. One line of JSON each way a message: first the order comes in, then calls go out and their answers come in,
at last the outcome goes out. Not for what the server makes of it (``code_act.py``).
"""

from __future__ import annotations

import ast
import base64
import contextlib
import dataclasses
import importlib.util
import json
import math
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

__all__ = ["MAX_MESSAGE", "MAX_VALUES", "Line", "ToolError", "excess", "run"]

MAX_MESSAGE = 2 * 2**20
"""Bytes of one message of this process: of a result, or of a call's arguments."""

MAX_VALUES = 100_000
"""Values in one message, each of which takes far more memory than its text."""

MAX_TEXT = 4_000
"""Characters of an error's text that are told."""

_MODULE = "<code>"
_NOTHING = object()
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


class ToolError(RuntimeError):
    """What a tool raises in the code that called it.

    Attributes:
        error_type: why it failed, as in a tool's observation.
    """

    def __init__(self, message: str, error_type: str = "execution_error") -> None:
        super().__init__(message)
        self.error_type = error_type


class Line:
    """The pipe to the server; one message at a time, whichever thread sends it."""

    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._turn = threading.Lock()

    def receive(self) -> Any:
        """The next message."""
        return json.loads(self._incoming.readline())

    def send(self, text: bytes) -> None:
        """Send a message's text."""
        self._outgoing.write(text + b"\n")
        self._outgoing.flush()

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """What a tool gives.

        Raises:
            ToolError: it failed.
            ValueError: the arguments are too large.
            TypeError: one of them has no JSON form. NaN and the infinities have none here, since no tool takes the
                strings that stand for them in results.
        """
        text = _text({"call": name, "arguments": arguments}, finite=True)
        with self._turn:
            self.send(text)
            answer = self.receive()
        if "error" in answer:
            raise ToolError(answer["error"], answer["error_type"])
        return answer["value"]


def run(code: str, tools: dict[str, list[Any]], line: Line) -> dict[str, Any]:
    """Run the code; what it assigned to ``result``, else the value of its last expression, or its error.

    Args:
        code: what to run.
        tools: each tool's parameters, in order, and its description.
        line: where calls go.

    Returns:
        One of ``result``, ``value`` (of the last expression) and ``error``.
    """
    names: dict[str, Any] = {"__name__": "__main__", "ToolError": ToolError}
    for name, (parameters, description) in tools.items():
        names[name] = _function(name, parameters, description, line.call)
    before = names.get("result", _NOTHING)
    try:
        run_it = _compiled(code)
    except SyntaxError as error:
        return {"error": _bounded(f"Syntax error: {error}")}
    except BaseException as error:  # noqa: BLE001 - the compiler has limits of many kinds
        return {"error": _located(error)}
    value = None
    try:
        value = run_it(names)
    except SystemExit as error:
        if error.code not in {None, 0}:
            return {"error": _bounded(f"the code exited with {error.code!r}")}
    except BaseException as error:  # noqa: BLE001 - the code may raise anything
        return {"error": _located(error)}
    assigned = names.get("result", before)
    return {"value": value} if assigned is before else {"result": assigned}


def _compiled(code: str) -> Callable[[dict[str, Any]], Any]:
    """What runs the code with these names, and gives the value of its last statement where that is an expression.

    Raises:
        SyntaxError: it is no Python.
    """
    body = ast.parse(code, _MODULE)
    last = body.body[-1] if body.body else None
    value = ast.Expression(last.value) if isinstance(last, ast.Expr) else None
    if value is not None:
        body.body.pop()
    # Both before either runs, so that what cannot be compiled has called no tool.
    statements = compile(body, _MODULE, "exec", dont_inherit=True)
    expression = None if value is None else compile(value, _MODULE, "eval", dont_inherit=True)

    def run_it(names: dict[str, Any]) -> Any:
        exec(statements, names)  # noqa: S102 - this is what the process is for
        return None if expression is None else eval(expression, names)  # noqa: S307 - and so is this

    return run_it


def _function(
    name: str, parameters: list[str], description: str, call: Callable[[str, dict[str, Any]], Any]
) -> Callable[..., Any]:
    def tool(*args: Any, **arguments: Any) -> Any:
        if len(args) > len(parameters):
            raise TypeError(f"{name}() takes {len(parameters)} arguments, got {len(args)}")
        given = dict(zip(parameters, args, strict=False))
        both = sorted(given.keys() & arguments.keys())
        if both:
            raise TypeError(f"{name}() got two values for {both[0]!r}")
        return call(name, given | arguments)

    tool.__name__ = tool.__qualname__ = name
    tool.__doc__ = description
    return tool


def excess(text: bytes) -> str | None:
    """What a message has too much of, by its JSON text alone; None where it may be read."""
    if len(text) > MAX_MESSAGE:
        return f"above the limit of {MAX_MESSAGE >> 20} MiB"
    # Strings may hold these characters too, but to look for strings takes longer.
    if _values(text) > MAX_VALUES and _has_too_many_values(text):
        return f"above the limit of {MAX_VALUES:,} values"
    return None


def _has_too_many_values(text: bytes) -> bool:
    values, end = 0, 0
    for count, string in enumerate(_STRING.finditer(text)):
        values += _values(text[end : string.start()])
        end = string.end()
        # A value has two strings at most, itself and its key.
        if values > MAX_VALUES or count > 2 * MAX_VALUES:
            return True
    return values + _values(text[end:]) > MAX_VALUES


def _values(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _text(message: dict[str, Any], *, finite: bool = False) -> bytes:
    try:
        text = json.dumps(_json(message, finite), ensure_ascii=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"expected a value with a JSON form: {error}") from error
    too_much = excess(text)
    if too_much is not None:
        raise ValueError(f"the value's JSON is {too_much}")
    return text


def _json(value: Any, finite: bool) -> Any:
    """The value as JSON, where nothing is lost: what the server's own results hold, in the same spelling."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return _json(value.value, finite)
    if isinstance(value, float) and not math.isfinite(value):
        if finite:
            raise TypeError(f"expected a finite number, got {value!r}")
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        return _object(value, finite)
    if isinstance(value, list | tuple):
        return [_json(item, finite) for item in value]
    return _json(_plain(value), finite)


def _object(value: dict[Any, Any], finite: bool) -> dict[str, Any]:
    named = {_key(key): _json(item, finite) for key, item in value.items()}
    if len(named) != len(value):
        raise TypeError(f"expected keys that differ as JSON strings, got {list(value)!r:.200}")
    return named


def _key(key: Any) -> str:
    if isinstance(key, Enum):
        key = key.value
    as_list = getattr(key, "tolist", None)
    if callable(as_list):
        key = as_list()
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, int | float):
        return json.dumps(key)
    raise TypeError(f"expected keys of strings or numbers, got {type(key).__name__}")


def _plain(value: Any) -> Any:
    """What JSON does not know, as the server says it: arrays are lists, bytes are base64."""
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, set | frozenset):
        return list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    as_list = getattr(value, "tolist", None)
    if callable(as_list):
        return as_list()
    raise TypeError(f"{type(value).__name__} has none")


def _located(error: BaseException) -> str:
    """The exception's type and text, and the line of the code itself on which it came; no path of this machine's."""
    with contextlib.suppress(BaseException):  # the class is the code's own, and so is what its attributes raise
        lines = [at.tb_lineno for at in _traceback(error) if at.tb_frame.f_code.co_filename == _MODULE]
        place = f" (line {lines[-1]})" if lines else ""
        name, text = type(error).__name__, _error_text(error)
        return _bounded(name if text == name else f"{name}: {text}") + place
    return _error_text(error)


def _traceback(error: BaseException) -> Iterator[TracebackType]:
    at = error.__traceback__
    while at is not None:
        yield at
        at = at.tb_next


def _error_text(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - the exception is the code's own, and so is what its __str__ raises
        text = ""
    return _bounded(text or type(error).__name__)


def _bounded(text: str) -> str:
    return text[:MAX_TEXT].encode("utf-8", "backslashreplace").decode()


def _outcome_text(outcome: dict[str, Any]) -> bytes:
    if "value" in outcome:
        return _value_text(outcome["value"])
    try:
        return _text(outcome)
    except BaseException as error:  # noqa: BLE001 - what makes JSON of the code's object may be the code's too
        return _text({"error": f"the code has run, but its result cannot be sent and is lost: {_error_text(error)}"})


def _value_text(value: Any) -> bytes:
    """Of a last expression: what cannot be sent is told as Python writes it, since it may be meant as no result."""
    try:
        return _text({"result": value})
    except BaseException:  # noqa: BLE001 - as above
        return _text({"result": _written(value)})


def _written(value: Any) -> str:
    try:
        text = repr(value)
    except BaseException:  # noqa: BLE001 - its text may be the code's, too
        text = object.__repr__(value)
    left_out = len(text) - MAX_TEXT
    return _bounded(text) + (f"... ({left_out} more characters are left out)" if left_out > 0 else "")


def _taken_over() -> Line:
    """The pipe of this process, which the code finds no more as its input and output."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)  # the file in which the server finds what the code prints
    return Line(incoming, outgoing)


def _confined(limits: dict[str, Any]) -> list[str]:
    path = Path(__file__).with_name("code_confinement.py")
    spec = importlib.util.spec_from_file_location("code_confinement", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.confine(**limits))


def main() -> None:
    """Run what the server orders, and end at once, whatever threads the code has left."""
    line = _taken_over()
    order = line.receive()
    line.send(_text({"holding": _confined(order["limits"])}))
    text = _outcome_text(run(order["code"], order["tools"], line))
    for stream in (sys.stdout, sys.stderr):
        # The streams are the code's by now, and what it broke is its own loss.
        with contextlib.suppress(BaseException):
            stream.flush()
    # So is the pipe, should the code have looked for it.
    with contextlib.suppress(OSError):
        line.send(text)
    os._exit(0)


if __name__ == "__main__":
    main()
