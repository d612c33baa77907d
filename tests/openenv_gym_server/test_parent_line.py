"""The line to the parent ends its process; whole servers are tested with those who start them."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

PROGRAM = textwrap.dedent("""
    import os, sys, time
    from types import SimpleNamespace
    from openenv_gym_server.parent_line import ParentLine

    line = ParentLine(int(sys.argv[1]), 0.1)
    server = SimpleNamespace(should_exit=False)
    if sys.argv[2] == "served":
        line.ends(server)
    print("here", flush=True)
    while not server.should_exit:
        time.sleep(0.01)
    print("asked", flush=True)
    if sys.argv[3] == "stays":
        time.sleep(60)
    os._exit(0)
""")


def start(parent, *arguments):
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(parent), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "here\n"
    return process


@pytest.mark.parametrize(
    ("arguments", "said", "status"),
    [
        (("served", "ends"), "asked\n", 0),
        (("served", "stays"), "asked\n", 1),
        (("loading", "ends"), "", 1),
    ],
    ids=["a server is asked first", "one that stays is ended", "what does not serve yet is ended at once"],
)
def test_the_end_of_the_line_ends_the_process(arguments, said, status):
    process = start(os.getpid(), *arguments)
    process.stdin.close()
    assert process.stdout.read() == said
    assert process.wait(20) == status
    process.stdout.close()


def test_the_parents_end_is_noticed_where_another_holds_the_line():
    process = start(1, "served", "ends")  # whose parent is another already
    assert process.wait(20) == 0
    process.stdin.close()
    process.stdout.close()


def test_it_stays_while_the_parent_is_there():
    process = start(os.getpid(), "served", "ends")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.5)
    process.send_signal(signal.SIGKILL)
    process.wait(20)
    process.stdin.close()
    process.stdout.close()
