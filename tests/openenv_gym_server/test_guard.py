"""The guard of an embedded server: however the server is stuck, it does not outlive its parent."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

PARENT = """
    import os, signal, sys, threading, time
    from openenv_gym.providers import process
    {before}
    lease = process.lease_embedded({target!r})
    child = process._shared[{target!r}, 'simulation'].provider._process.pid
    print(child, flush=True)
    {then}
    os.kill(os.getpid(), signal.SIGKILL)
"""
STUCK = """
import ctypes, threading
from openenv_gym_envs.echo import create_app
def hold():
    ctypes.PyDLL(None).sleep(600)
threading.Timer(0.5, hold).start()
"""


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def run_parent(target, *, then="", cwd=None):
    program = textwrap.dedent(PARENT).format(before="sys.path.insert(0, '')", target=target, then=then)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=cwd)
    return int(done.stdout)


def assert_gone(pid):
    deadline = time.monotonic() + 20
    while alive(pid):
        assert time.monotonic() < deadline, "the server outlived its parent"
        time.sleep(0.05)


def test_a_stopped_server_does_not_outlive_its_parent():
    assert_gone(run_parent("openenv_gym_envs.echo", then="os.kill(child, signal.SIGSTOP)"))


def test_a_server_stuck_in_c_code_does_not_outlive_its_parent(tmp_path):
    (tmp_path / "stuck_module.py").write_text(STUCK)
    assert_gone(run_parent("stuck_module:create_app", then="time.sleep(1.5)", cwd=tmp_path))


def test_a_server_that_is_still_loading_does_not_outlive_its_parent(tmp_path):
    (tmp_path / "slow_module.py").write_text(
        "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    )
    program = textwrap.dedent(
        """
        import os, signal, sys, threading, time
        sys.path.insert(0, "")
        from openenv_gym.providers.process import lease_embedded
        threading.Thread(target=lease_embedded, args=("slow_module:app",), daemon=True).start()
        deadline = time.monotonic() + 30
        while not (os.path.exists("pid") and open("pid").read()) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=60, cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL
    assert_gone(int((tmp_path / "pid").read_text()))
