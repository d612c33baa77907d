"""An agent's Python code, run in a process of its own with an environment's tools as functions (CodeAct).

The process is begun anew for each piece of code, has none of the server's environment variables, files or memory, and
is ended with it (``code_child.py``, ``code_confinement.py``). Its calls come back over a pipe and are made here, on the
caller's thread. Not for what a call does to the episode (``mcp_environment.py``).
"""

from __future__ import annotations

import codecs
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from openenv_gym.errors import EnvironmentExecutionError, ProtocolError, ValueMappingError
from openenv_gym.json_text import JSON, JSONObject, decode_json, encode_json
from openenv_gym.tools import CallToolObservation, Tool, ToolError, ToolErrorType
from openenv_gym_server.code_child import MAX_MESSAGE, excess
from openenv_gym_server.errors import MAX_TEXT, text_of
from openenv_gym_server.plain import plain_json

__all__ = ["CodeLimits", "CodeOutcome", "run_code"]

logger = logging.getLogger("openenv_gym_server")

_CHILD = Path(__file__).with_name("code_child.py")
_EXPECTED = frozenset({"rlimits", "landlock", "seccomp"})

Call = Callable[[str, JSONObject, float], CallToolObservation]
"""Calls a tool with arguments, within so many seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLimits:
    """What a piece of code may use.

    Attributes:
        time_s: seconds, the calls of tools included.
        memory_mb: address space of its process, in MiB; Python and numpy take some 300.
        output_kb: how much of what it prints is kept, in KiB; what comes later is counted and left out.

    Raises:
        ValueError: one is not above 0.
    """

    time_s: float = 30.0
    memory_mb: int = 1024
    output_kb: int = 64

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise ValueError(f"expected a {name} above 0 as a limit of code, got {getattr(self, name)!r}")


class CodeOutcome(NamedTuple):
    """How a piece of code ended.

    Attributes:
        result: what it assigned to ``result``, else the value of its last expression, as plain JSON.
        error: why it has no result; its error_type is ``timeout`` where it took too long.
        output: what it printed, up to the limit.
        output_left_out: characters that it printed beyond the limit.
    """

    result: JSON = None
    error: ToolError | None = None
    output: str = ""
    output_left_out: int = 0


def run_code(code: str, tools: Iterable[Tool], call: Call, limits: CodeLimits) -> CodeOutcome:
    r"""Run a piece of code to its end, or to that of its time.

    Args:
        code: Python; the tools are functions in it.
        tools: which ones; positional arguments of a function are told by the order of its schema's properties.
        call: makes a call; what it raises ends the code.
        limits: what the code may use.

    Raises:
        EnvironmentExecutionError: no process can be begun.

    Example:
        >>> run_code("print('so'); result = 6 * 7", [], call=lambda name, arguments, seconds: None, limits=CodeLimits())
        CodeOutcome(result=42, error=None, output='so\n', output_left_out=0)
    """
    with tempfile.TemporaryFile() as output:
        process = _begun(output)
        execution = _Execution(process, call, limits)
        try:
            outcome = execution.run(code, tools)
        finally:
            execution.end()
        kept, left_out = _printed(output, limits.output_kb * 2**10)
        return outcome._replace(output=kept, output_left_out=left_out)


def _printed(output: IO[bytes], limit: int) -> tuple[str, int]:
    """The beginning of what was printed, and the number of characters after it; no more than a part is in memory."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    output.seek(0)
    kept = decoder.decode(output.read(limit))
    left_out = 0
    while part := output.read(2**16):
        left_out += len(decoder.decode(part))
    cut_short = decoder.decode(b"", final=True)
    return (kept, left_out + len(cut_short)) if left_out else (kept + cut_short, 0)


def _begun(output: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - this Python, with a file of this package
            [sys.executable, "-I", "-B", "-u", "-X", "utf8", str(_CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            env=_environment(),
            cwd=os.sep,
            start_new_session=True,
        )
    except OSError as error:
        raise EnvironmentExecutionError(
            f"no process can be begun to run code in: {error.strerror or 'the system refuses'}", code="EXECUTION_ERROR"
        ) from error


def _environment() -> dict[str, str]:
    # Nothing of this process's: its variables may hold secrets. Threads of numerical libraries take address space.
    own = {"LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    # Without it, Windows begins no sockets, which asyncio needs.
    system_root = os.environ.get("SYSTEMROOT")
    return own if system_root is None else own | {"SYSTEMROOT": system_root}


class _BrokenError(Exception):
    """The code's process has ended, or said what it should not."""


class _Execution:
    """One process while it runs; whatever it says is an agent's, and believed in nothing."""

    def __init__(self, process: subprocess.Popen[bytes], call: Call, limits: CodeLimits) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._call, self._limits = process, call, limits
        self._to, self._from = process.stdin, process.stdout
        self._deadline = time.monotonic() + limits.time_s
        self._too_late = threading.Event()
        # Ended, it closes its pipes, so that no reading or writing here outlasts the time.
        self._clock = threading.Timer(limits.time_s, self._time_is_up)
        self._clock.name = "openenv-code-clock"
        self._clock.daemon = True

    def run(self, code: str, tools: Iterable[Tool]) -> CodeOutcome:
        order = {
            "code": code,
            "tools": {tool.name: [list(tool.input_schema.get("properties", {})), tool.description] for tool in tools},
            "limits": {"time_s": self._limits.time_s, "memory_mb": self._limits.memory_mb},
        }
        self._clock.start()
        try:
            self._send(order)
            _warn_of(self._receive().get("holding"))
            while True:
                message = self._receive()
                if "call" not in message:
                    return _outcome(message)
                self._send(self._answer(message))
        except _BrokenError as error:
            return CodeOutcome(error=self._why(error))

    def end(self) -> None:
        self._clock.cancel()
        with contextlib.suppress(RuntimeError):  # there was no thread to be had for it
            self._clock.join()
        self._kill()
        self._process.wait()
        for pipe in (self._to, self._from):
            with contextlib.suppress(OSError):  # what is left to write has no reader
                pipe.close()

    def _time_is_up(self) -> None:
        self._too_late.set()
        self._kill()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":  # pragma: no cover
                self._process.kill()
            elif self._process.returncode is None:
                os.killpg(self._process.pid, signal.SIGKILL)

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._to.write(json.dumps(message).encode() + b"\n")
            self._to.flush()
        except OSError as error:
            raise _BrokenError("it ended") from error

    def _receive(self) -> dict[str, Any]:
        line = self._from.readline(MAX_MESSAGE + 1).removesuffix(b"\n")
        # An honest process refuses these itself. Read, the values would take this one's memory and time.
        too_much = excess(line)
        if too_much is not None:
            raise _BrokenError(f"its result or a call's arguments are {too_much}")
        try:
            message = decode_json(line)
        except ProtocolError as error:
            raise _BrokenError("it ended" if not line else "it said what cannot be read") from error
        if not isinstance(message, dict):
            raise _BrokenError("it said what cannot be read")
        return message

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        name, arguments = message["call"], message.get("arguments")
        if not (isinstance(name, str) and isinstance(arguments, dict)):
            raise _BrokenError("it said what cannot be read")
        observation = self._call(name, arguments, max(self._deadline - time.monotonic(), 0.001))
        if observation.error is not None:
            return {"error": observation.error.message, "error_type": observation.error.error_type.value}
        result = observation.result
        return {"value": result.get("data") if isinstance(result, dict) else result}

    def _why(self, error: _BrokenError) -> ToolError:
        if self._too_late.is_set():
            message = f"the code took longer than {self._limits.time_s:g} seconds and was ended"
            return ToolError(error_type=ToolErrorType.TIMEOUT, message=message)
        return _failed(
            f"the code's process was ended before its time: {error}; it may use {self._limits.memory_mb} MiB"
        )


def _outcome(message: dict[str, Any]) -> CodeOutcome:
    error = message.get("error")
    if error is not None:
        return CodeOutcome(error=_failed(str(error)[:MAX_TEXT]))
    result = message.get("result")
    try:
        encode_json(plain_json(result))
    except (ValueMappingError, RecursionError) as problem:
        return CodeOutcome(error=_failed(f"the code has run, but its result cannot be sent: {text_of(problem)}"))
    return CodeOutcome(result=result)


def _failed(message: str) -> ToolError:
    text = message.encode("utf-8", "backslashreplace").decode()
    return ToolError(error_type=ToolErrorType.EXECUTION_ERROR, message=text)


_warned = threading.Event()


def _warn_of(holding: Any) -> None:
    """Say once what the system does not have of that which confines code."""
    missing = sorted(_EXPECTED - set(holding if isinstance(holding, list) else ()))
    if missing and not _warned.is_set():
        _warned.set()
        logger.warning(
            "code runs in a process without %s, which this system does not have: it may reach files, the network and "
            "other processes of this user; serve such an environment in a container of its own",
            " and ".join(missing),
        )
