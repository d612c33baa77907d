"""What somebody else's module raised, told short."""

import importlib
import sys

import pytest

from openenv_gym.cli.failures import told_short


def raised_by(monkeypatch, folder, text):
    """The error of importing a module of that text."""
    (folder / "a_failing_module.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "a_failing_module", raising=False)
    with pytest.raises(Exception) as caught:
        importlib.import_module("a_failing_module")
    # What the command line sees begins with frames of ours; here they are this test's, which is the user's code too.
    return caught.value


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("x = 1\nint('x')\n", "ValueError: invalid literal for int() with base 10: 'x'", 2),
        ("def f():\n    raise RuntimeError('no licence')\nf()\n", "RuntimeError: no licence", 2),
        ("import json\njson.loads('{')\n", "json.decoder.JSONDecodeError: Expecting property name", 2),
        ("import a_library_that_is_missing\n", "ModuleNotFoundError: No module named 'a_library_that_is_missing'", 1),
        (
            "from openenv_gym_server import create_app\ncreate_app(3, dict, dict)\n",
            "TypeError: expected a callable that makes",
            2,
        ),
    ],
)
def test_the_message_comes_first_and_then_the_line_of_the_users_own(monkeypatch, tmp_path, text, message, line):
    told = told_short(raised_by(monkeypatch, tmp_path, text))
    assert told.startswith(message)
    place, code = told.splitlines()[-2:]
    assert place.startswith(f'  File "{tmp_path}/a_failing_module.py", line {line}, in ')
    assert code.strip() == text.splitlines()[line - 1].strip()


def test_a_syntax_error_has_its_place_already(monkeypatch, tmp_path):
    told = told_short(raised_by(monkeypatch, tmp_path, "def f(:\n"))
    assert told.count("a_failing_module.py") == 1
    assert told.endswith("SyntaxError: invalid syntax")


def test_what_no_frame_is_known_of_is_its_message():
    assert told_short(ValueError("alone")) == "ValueError: alone"


def test_a_failure_in_an_installed_package_alone_is_told_by_its_own_line():
    namespace: dict[str, object] = {}
    source = compile("def fail():\n    raise ValueError('deep')", importlib.__file__, "exec")
    exec(source, namespace)
    with pytest.raises(ValueError, match="deep") as caught:
        namespace["fail"]()
    error = caught.value
    error.__traceback__ = error.__traceback__.tb_next
    assert importlib.__file__ in told_short(error)
