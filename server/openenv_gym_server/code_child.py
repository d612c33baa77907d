"""The process in which an agent's code runs: its tools are functions that ask the server, over a pipe.

Run by file, ``python -I code_child.py``, without the package: the standard library alone, so that it is there within
some 20 ms. One line of JSON each way a message: first the order comes in, then calls go out and their answers come in,
at last the outcome goes out. Not for what the server makes of it (``code_act.py``).
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import importlib.util
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["Line", "ToolError", "run"]

MAX_TEXT = 4_000
"""Characters of an error's text that are told."""

_MODULE = "<code>"


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

    def send(self, text: str) -> None:
        """Send a message's text."""
        self._outgoing.write(text.encode() + b"\n")
        self._outgoing.flush()

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """What a tool gives.

        Raises:
            ToolError: it failed.
            TypeError: an argument has no JSON form.
        """
        text = _text({"call": name, "arguments": arguments})
        with self._turn:
            self.send(text)
            answer = self.receive()
        if "error" in answer:
            raise ToolError(answer["error"], answer["error_type"])
        return answer["value"]


def run(code: str, tools: dict[str, list[Any]], line: Line) -> dict[str, Any]:
    """Run the code; its ``result``, or its error.

    Args:
        code: what to run.
        tools: each tool's parameters, in order, and its description.
        line: where calls go.
    """
    names: dict[str, Any] = {"__name__": "__main__", "ToolError": ToolError}
    for name, (parameters, description) in tools.items():
        names[name] = _function(name, parameters, description, line.call)
    try:
        exec(compile(code, _MODULE, "exec"), names)  # noqa: S102 - this is what the process is for
    except SyntaxError as error:
        return {"error": _bounded(f"Syntax error: {error}")}
    except SystemExit as error:
        if error.code not in {None, 0}:
            return {"error": _bounded(f"the code exited with {error.code!r}")}
    except BaseException as error:  # noqa: BLE001 - the code may raise anything
        return {"error": _told(error)}
    return {"result": names.get("result")}


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


def _text(message: dict[str, Any]) -> str:
    try:
        return json.dumps(message, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"expected a value with a JSON form: {error}") from error


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


def _told(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - the exception is the code's own, and so is what its __str__ raises
        text = ""
    return _bounded(text or type(error).__name__)


def _bounded(text: str) -> str:
    return text[:MAX_TEXT].encode("utf-8", "backslashreplace").decode()


def _outcome_text(outcome: dict[str, Any]) -> str:
    try:
        return _text(outcome)
    except BaseException as error:  # noqa: BLE001 - what makes JSON of the code's object may be the code's too
        return _text({"error": f"the code has run, but its result cannot be sent and is lost: {_told(error)}"})


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
