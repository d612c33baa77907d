"""Code in a process of its own: what it gives, what it may use, and how it ends."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from openenv_gym.errors import EnvironmentExecutionError
from openenv_gym.json_text import JSONObject
from openenv_gym.tools import CallToolObservation, Tool, ToolErrorType
from openenv_gym_server import code_act
from openenv_gym_server.code_act import CodeLimits, CodeOutcome, run_code
from openenv_gym_server.code_child import MAX_MESSAGE
from openenv_gym_server.errors import MAX_TEXT
from openenv_gym_server.tool_results import failure, success

LOOK = Tool(
    name="look",
    description="Look around.",
    input_schema={"type": "object", "properties": {"direction": {"type": "string"}, "far": {"type": "boolean"}}},
)

CTYPES = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def called(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
"""

linux = pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")


class Calls:
    def __init__(self, value: Any = "a door") -> None:
        self.value = value
        self.made: list[tuple[str, JSONObject]] = []
        self.threads: set[int] = set()

    def __call__(self, name: str, arguments: JSONObject, seconds: float) -> CallToolObservation:
        assert 0 < seconds <= 30.0
        self.made.append((name, arguments))
        self.threads.add(threading.get_ident())
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value if isinstance(self.value, CallToolObservation) else success(name, self.value)


def ran(code: str, calls: Calls | None = None, **limits: Any) -> CodeOutcome:
    return run_code(code, [LOOK], calls or Calls(), CodeLimits(**limits))


def error_of(outcome: CodeOutcome) -> tuple[str, str]:
    assert outcome.error is not None
    assert outcome.result is None
    return outcome.error.error_type.value, outcome.error.message


def test_code_calls_tools_as_functions_on_the_callers_thread() -> None:
    calls = Calls([1, {"a": 2.5}])
    code = "def twice():\n    return look('north'), look(far=True, direction='east')\nresult = twice()[1], look.__doc__"
    assert ran(code, calls).result == [[1, {"a": 2.5}], "Look around."]
    assert calls.made == [("look", {"direction": "north"}), ("look", {"direction": "east", "far": True})]
    assert calls.threads == {threading.get_ident()}


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("", None),
        ("look()", "a door"),
        ("x = 6\nx * 7", 42),
        ("result = (1, {2}, b'\\xff', 2.5, None)", [1, [2], "/w==", 2.5, None]),
        ("import numpy; result = {1: numpy.arange(2), 'b': numpy.float32(0.5)}", {"1": [0, 1], "b": 0.5}),
        ("import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int\nresult = A(1)", {"x": 1}),
        ("result = 'ü'; raise SystemExit", "ü"),
        ("import asyncio\nasync def f():\n    return look()\nresult = asyncio.run(f())", "a door"),
        ("result = __name__", "__main__"),
    ],
)
def test_a_result_comes_back_as_plain_json(code: str, result: Any) -> None:
    assert ran(code) == CodeOutcome(result=result)


def test_what_code_prints_is_kept_up_to_a_limit() -> None:
    assert ran("print('ü')\nimport sys; print('no', file=sys.stderr)").output == "ü\nno\n"
    assert ran("print('a' * 1_023)", output_kb=1) == CodeOutcome(output="a" * 1_023 + "\n")


@pytest.mark.parametrize(
    ("code", "output", "left_out"),
    [
        ("print('a' * 10_000)", "a" * 1_024, 8_977),
        ("print('a' + 'ü' * 100_000)", "a" + "ü" * 511, 99_490),
        ("import os; os.write(1, b'a' * 1_023 + b'\\xc3')", "a" * 1_023 + "\ufffd", 0),
        ("import os; os.write(1, b'a' * 1_023 + b'\\xc3b')", "a" * 1_023, 2),
    ],
)
def test_of_what_is_printed_beyond_the_limit_the_number_of_characters_is_told(
    code: str, output: str, left_out: int
) -> None:
    outcome = ran(f"{code}; result = 1", output_kb=1)
    assert outcome == CodeOutcome(result=1, output=output, output_left_out=left_out)
    assert ran(f"{code}\nraise SystemExit(1)", output_kb=1).output_left_out == left_out


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("look(", "Syntax error: '(' was never closed (<code>, line 1)"),
        ("x = 1\nx / 0", "ZeroDivisionError: division by zero (line 2)"),
        ("raise KeyError", "KeyError (line 1)"),
        ("raise SystemExit(3)", "the code exited with 3"),
        ("raise ValueError('\\ud800')", "ValueError: \\ud800 (line 1)"),
        ("class E(Exception):\n    def __str__(self): 1 / 0\nraise E", "E (line 3)"),
        ("look(1, 2, 3)", "TypeError: look() takes 2 arguments, got 3 (line 1)"),
        ("look('a', direction='b')", "TypeError: look() got two values for 'direction' (line 1)"),
        ("look(object())", "TypeError: expected a value with a JSON form: object has none (line 1)"),
        ("result = object()", "the code has run, but its result cannot be sent and is lost: expected a value with"),
        ("result = []; result.append(result)", "the code has run, but its result cannot be sent and is lost"),
        ("class T:\n    def tolist(self): raise SystemExit\nresult = T()", "the code has run, but its result cannot"),
        ("result = '\\ud800'", "the code has run, but its result cannot be sent"),
        ("raise BaseException('x' * 9_000)", "BaseException: " + "x" * 3_985 + " (line 1)"),
    ],
)
def test_whatever_the_code_raises_is_its_error(code: str, message: str) -> None:
    kind, told = error_of(ran(code))
    assert kind == "execution_error"
    assert told.startswith(message)
    assert len(told) < 5_000


def test_a_tools_failure_is_an_exception_with_its_kind() -> None:
    calls = Calls(failure("look", ToolErrorType.INVALID_ARGS, "direction: wrong"))
    caught = "try:\n    look(3)\nexcept ToolError as error:\n    result = [error.error_type, str(error)]"
    assert ran(caught, calls).result == ["invalid_args", "direction: wrong"]
    assert error_of(ran("look(3)", calls)) == ("execution_error", "ToolError: direction: wrong (line 1)")


def test_what_a_step_raises_ends_the_code_and_is_raised() -> None:
    with pytest.raises(LookupError, match="the author's"):
        ran("look()", Calls(LookupError("the author's")))


def test_nothing_of_the_servers_environment_variables_is_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hush")
    result = ran("import os; result = dict(os.environ)").result
    assert isinstance(result, dict)
    assert set(result) <= {"LC_ALL", "LC_CTYPE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "SYSTEMROOT"}


@linux
@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.socket()",
        "import socket; socket.socket(socket.AF_UNIX)",
        "import os; os.fork()",
        "import os; os.execv('/bin/true', ['true'])",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.kill(os.getppid(), 0)",
        "import os; os.kill(os.getppid(), 9)",
        "import os; open(f'/proc/{os.getppid()}/environ').read()",
        "import os; open(f'/proc/{os.getppid()}/mem', 'rb')",
        "open('/etc/passwd')",
        "import os; os.listdir('/')",
        "import tempfile; tempfile.TemporaryFile(dir='/tmp')",
        "import sys; open(sys.prefix + '/lib/written', 'w')",
        "import resource, os; resource.prlimit(os.getppid(), resource.RLIMIT_CPU)",
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (100, 100))",
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9))",
        "import os; os.open(os.__file__, os.O_RDONLY | os.O_TRUNC)",
        "import os; os.ftruncate(2, 0)",
        "import termios; termios.tcflush(2, termios.TCIFLUSH)",
        CTYPES + "called(libc.inotify_init())",
        CTYPES + "called(libc.inotify_init1(0))",
        CTYPES + "called(libc.syscall(467, -100, b'/', 0x80001, 0, 0))  # open_tree_attr",
        CTYPES + "called(libc.syscall(447, 0))  # memfd_secret",
        "import os; os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
        "import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
        "import fcntl, os; fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, os.getppid())",
        f"import os; os.chmod({__file__!r}, 0o644)",
        f"import os; os.chown({__file__!r}, -1, -1)",
        f"import os; os.utime({__file__!r})",
        f"import os; os.setxattr({__file__!r}, 'user.written', b'1')",
        "import multiprocessing; multiprocessing.Process(target=print).start()",
    ],
)
def test_code_reaches_no_file_no_network_and_no_other_process(code: str) -> None:
    denied = (
        f"DENIED = (PermissionError, FileNotFoundError, ValueError)\ntry:\n    exec({code!r})\n"
        "except DENIED as error:\n    result = 1\n"
        "except Exception as error:\n    result = 1 if error.args[0] == 1 else repr(error)"
    )
    assert ran(denied).result == 1


@linux
def test_code_may_ask_for_its_limits_and_what_its_output_is() -> None:
    code = "import os, resource, sys\nos.set_inheritable(2, False)\n"
    code += (
        "[resource.getrlimit(resource.RLIMIT_CORE), sys.stdout.isatty(), os.get_blocking(2), open(os.devnull).read()]"
    )
    assert ran(code).result == [[0, 0], False, True, ""]


@linux
def test_code_may_begin_threads() -> None:
    code = "import threading\nt = threading.Thread(target=lambda: globals().update(result=look()))\nt.start(); t.join()"
    assert ran(code).result == "a door"


@linux
def test_memory_is_limited() -> None:
    assert error_of(ran("bytearray(2 * 10**9)"))[1] == "MemoryError (line 1)"


@pytest.mark.parametrize(
    "code", ["while True: pass", "import time; time.sleep(60)", "import sys; sys.stdin.read(); input()"]
)
def test_code_that_takes_too_long_is_ended(code: str) -> None:
    if "stdin" in code:
        assert error_of(ran(code))[1] == "EOFError: EOF when reading a line (line 1)"
        return
    kind, message = error_of(ran(f"print('before')\n{code}", time_s=0.5))
    assert (kind, message) == ("timeout", "the code took longer than 0.5 seconds and was ended")
    assert ran(f"print('before')\n{code}", time_s=0.5).output == "before\n"


@pytest.mark.parametrize(
    "code",
    [
        "import os; os._exit(0)",
        "import os; os.abort()",
        "import ctypes; ctypes.string_at(0)",
        "import os\nfor number in range(3, 20):\n    try: os.close(number)\n    except OSError: pass",
    ],
)
def test_a_process_that_ends_early_is_an_error(code: str) -> None:
    kind, message = error_of(ran(code))
    assert kind == "execution_error"
    assert "ended before its time: it ended" in message


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"{", "cannot be read"),
        (b"[1]", "cannot be read"),
        (b'{"call": 1}', "cannot be read"),
        (b'{"call": "look", "arguments": 3}', "cannot be read"),
        (b"[" * 90_000, "cannot be read"),
        (b'{"result": NaN}', "cannot be read"),
        (b'{"result": 1e999}', "cannot be read"),
        (b"[" * 100_001, "a call's arguments are above the limit of 100,000 values"),
        (b" " * (2 * 2**20 + 1), "a call's arguments are above the limit of 2 MiB"),
    ],
)
def test_a_process_that_speaks_otherwise_is_ended(said: bytes, why: str) -> None:
    forged = f"import os\nleft = {said!r} + b'\\n'\nwhile left: left = left[os.write(4, left):]\nlook()"
    kind, message = error_of(ran(forged))
    assert kind == "execution_error"
    assert why in message


def test_a_forged_outcome_is_no_more_than_an_outcome() -> None:
    assert ran("import os\nos.write(4, b'{\"result\": 7}\\n')\nwhile True: pass").result == 7
    assert error_of(ran("import os\nos.write(4, b'{\"error\": [1]}\\n')\nwhile True: pass"))[1] == "[1]"


def test_a_result_is_sent_up_to_the_limit() -> None:
    longest = MAX_MESSAGE - len('{"result":""}')
    assert ran(f"result = 'a' * {longest}").result == "a" * longest
    assert error_of(ran(f"result = 'a' * {longest + 1}"))[1].endswith("the value's JSON is above the limit of 2 MiB")


MEASURED = """
import json, os, sys, time
from pathlib import Path
from openenv_gym_server.code_act import CodeLimits, run_code

def most_mb():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024

run_code("1", [], print, CodeLimits())
memory, took = most_mb(), time.process_time()
unit = sys.argv[1].encode()
code = "import os\\nleft = %r * %d + b'0]}\\\\n'\\nleft = b'{\\"result\\":[' + left\\n"
code = code % (unit, int(sys.argv[2]) // len(unit)) + "while left: left = left[os.write(4, left):]\\nwhile True: pass"
outcome = run_code(code, [], print, CodeLimits(time_s=20, memory_mb=512))
print(json.dumps([outcome.error and outcome.error.message, most_mb() - memory, time.process_time() - took]))
"""


@linux
@pytest.mark.parametrize(
    ("unit", "size"),
    [
        ("[],", 15_000_000),
        ("[],", 2_000_000),
        ("[],", 140_000),
        ('{"":0},', 2_000_000),
        ('{"":0},', 340_000),
        ('"",', 2_000_000),
        (',"",\\"', 2_000_000),
        ("0,", 190_000),
    ],
)
def test_whatever_a_process_says_costs_the_server_little_memory_and_time(unit: str, size: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, unit, str(size)], capture_output=True, timeout=100, check=True
    )
    error, grown_mb, took_s = json.loads(done.stdout)
    assert error is None or "limit" in error or "cannot be read" in error
    assert grown_mb < 30
    assert took_s < 1.5


def test_a_process_that_stops_listening_is_ended_with_its_time() -> None:
    calls = Calls("a" * 2**20)
    code = 'import os, time\nos.write(4, b\'{"call": "look", "arguments": {}}\\n\')\ntime.sleep(60)'
    assert error_of(ran(code, calls, time_s=1.0))[0] == "timeout"


def test_a_system_that_begins_no_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(EnvironmentExecutionError, match="No such file"):
        ran("")


def test_what_a_system_does_not_have_is_told_once(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.setattr(code_act, "_EXPECTED", frozenset({"rlimits", "magic"}))
    monkeypatch.setattr(code_act, "_warned", threading.Event())
    with caplog.at_level(logging.WARNING, "openenv_gym_server"):
        ran("")
        ran("")
    assert [record.message.count("without magic") for record in caplog.records] == [1]


@pytest.mark.parametrize("name", ["time_s", "memory_mb", "output_kb"])
def test_limits_are_above_0(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        CodeLimits(**{name: 0})


def test_nothing_is_left_of_a_process() -> None:
    own = Path("/proc/self/fd")
    before = len(list(own.iterdir())) if own.exists() else 0
    ran("look()")
    ran("while True: pass", time_s=0.2)
    assert not [each for each in threading.enumerate() if each.name == "openenv-code-clock"]
    assert before >= (len(list(own.iterdir())) if own.exists() else 0)


def test_an_error_of_a_forged_outcome_is_cut_short() -> None:
    code = "import json, os\nos.write(4, json.dumps({'error': 'x' * 1_000_000}).encode() + b'\\n')"
    assert len(error_of(ran(code))[1]) == MAX_TEXT


def test_nothing_is_left_of_a_process_whose_time_cannot_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    begin = code_act._begun

    def remembered(output: Any) -> Any:
        begun.append(begin(output))
        return begun[0]

    def refuse(clock: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(code_act, "_begun", remembered)
    monkeypatch.setattr(threading.Timer, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        ran("result = 1")
    assert begun[0].returncode is not None
