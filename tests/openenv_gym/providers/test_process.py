"""Server processes: start, failure, sharing, and the ways to die."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import httpx
import pytest

from openenv_gym.errors import ProviderError
from openenv_gym.providers import process as process_module
from openenv_gym.providers.process import ProcessProvider, lease_embedded

ECHO = "openenv_gym_envs.echo"


def answers(base_url):
    """Whether a server is there; one that wants a token is."""
    try:
        return httpx.get(f"{base_url}/health", trust_env=False, timeout=5).status_code in {200, 401}
    except httpx.TransportError:
        return False


def wait_until(condition, timeout_s=20):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def run(program, **kwargs):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, **kwargs
    )


def test_a_server_listens_when_start_returns_and_is_gone_after_stop():
    provider = ProcessProvider(ECHO)
    base_url = provider.start()
    assert base_url.startswith("http://127.0.0.1:")
    assert answers(base_url)
    provider.wait_for_ready(base_url)
    provider.stop()
    provider.stop()
    assert not answers(base_url)


def test_a_private_server_wants_the_token_that_its_provider_knows():
    with ProcessProvider(ECHO, private=True) as provider:
        base_url = provider.start()
        provider.wait_for_ready(base_url)
        assert httpx.get(f"{base_url}/metadata", trust_env=False).status_code == 401
        assert httpx.get(f"{base_url}/metadata", trust_env=False, headers=provider.headers).status_code == 200
    assert "Bearer" not in repr(provider)


def test_starting_twice_is_refused():
    with ProcessProvider(ECHO) as provider:
        provider.start()
        with pytest.raises(ProviderError):
            provider.start()


def test_waiting_for_a_server_that_was_not_started_is_an_error():
    with pytest.raises(ProviderError) as caught:
        ProcessProvider(ECHO).wait_for_ready("http://127.0.0.1:9")
    assert caught.value.output == "it was not started"


def test_a_target_that_cannot_be_served_shows_the_childs_own_error(tmp_path, monkeypatch):
    (tmp_path / "broken_module.py").write_text("raise ZeroDivisionError('in the module')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ProviderError) as caught:
        ProcessProvider("broken_module:app").start()
    assert "ZeroDivisionError: in the module" in str(caught.value)
    assert "broken_module.py" in caught.value.output


def test_an_unknown_environment_is_named():
    with pytest.raises(ProviderError) as caught:
        ProcessProvider("CartPoole-v1").start()
    assert "CartPoole" in str(caught.value)


def test_a_child_that_dies_at_once_is_reported_with_its_status(tmp_path, monkeypatch):
    (tmp_path / "exiting_module.py").write_text("import os\nos._exit(7)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ProviderError) as caught:
        ProcessProvider("exiting_module:app").start()
    assert "status 7" in str(caught.value)


def test_a_child_that_never_listens_is_ended(tmp_path, monkeypatch):
    (tmp_path / "hanging_module.py").write_text("import time\ntime.sleep(60)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    provider = ProcessProvider("hanging_module:app", start_timeout_s=1.5)
    with pytest.raises(ProviderError) as caught:
        provider.start()
    assert "within 1.5 s" in str(caught.value)
    assert provider.ended() == "it was not started"


def test_a_training_script_that_is_its_own_environments_module_is_refused_and_not_run_for_ever(tmp_path, monkeypatch):
    script = """
        import gymnasium, openenv_gym
        from gymnasium.envs.classic_control import CartPoleEnv
        gymnasium.register("Own-v0", entry_point=CartPoleEnv)
        env = gymnasium.make("openenv/gym-v0", env_id="script:Own-v0")
    """
    (tmp_path / "script.py").write_text(textwrap.dedent(script))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ProviderError, match="if __name__ == '__main__'"):
        ProcessProvider("script:Own-v0").start()


def test_a_child_imports_what_its_parent_can(tmp_path, monkeypatch):
    (tmp_path / "local_env_module.py").write_text(
        textwrap.dedent(
            """
            import gymnasium
            from gymnasium.envs.classic_control import CartPoleEnv
            gymnasium.register("local/Pole-v0", CartPoleEnv)
            """
        )
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with ProcessProvider("local_env_module:local/Pole-v0") as provider:
        base_url = provider.start()
        metadata = httpx.get(f"{base_url}/metadata", trust_env=False).json()
    assert metadata["gymnasium"]["env_id"] == "local/Pole-v0"


def test_what_the_child_prints_does_not_disturb_the_report(tmp_path, monkeypatch, capfd):
    (tmp_path / "talking_module.py").write_text("print('hello from the module')\nfrom openenv_gym_envs.echo import *\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with ProcessProvider("talking_module:create_app") as provider:
        assert answers(provider.start())
    assert "hello from the module" in capfd.readouterr().err


def test_all_who_ask_for_one_target_share_one_process():
    first, second = lease_embedded(ECHO), lease_embedded(ECHO)
    assert first.base_url == second.base_url
    first.release()
    assert answers(second.base_url)
    second.release()
    second.release()
    assert not answers(second.base_url)


def test_a_server_that_died_is_started_again_on_renewal():
    lease = lease_embedded(ECHO)
    try:
        child = process_module._shared[ECHO, "simulation"].provider._process
        child.kill()
        child.wait()
        assert answers(lease.renew())
    finally:
        lease.release()


def test_a_start_that_fails_leaves_no_entry_behind():
    with pytest.raises(ProviderError):
        lease_embedded("CartPoole-v1")
    assert ("CartPoole-v1", "simulation") not in process_module._shared


@pytest.mark.parametrize("how", ["exit", "kill", "exception"])
def test_the_server_dies_with_its_parent_however_it_dies(how):
    program = f"""
        import os, signal, sys
        from openenv_gym.providers.process import lease_embedded
        lease = lease_embedded({ECHO!r})
        print(lease.base_url, flush=True)
        if {how!r} == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif {how!r} == "exception":
            raise SystemExit(3)
    """
    base_url = run(program).stdout.strip()
    wait_until(lambda: not answers(base_url))


def test_the_server_dies_with_its_parent_though_a_forked_sibling_lives_on():
    program = f"""
        import os, signal, sys, time
        from openenv_gym.providers.process import lease_embedded
        lease = lease_embedded({ECHO!r})
        pid = os.fork()
        if pid == 0:
            os.close(1)
            os.close(2)
            time.sleep(60)
            os._exit(0)
        print(lease.base_url, pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    base_url, sibling = run(program).stdout.split()
    try:
        wait_until(lambda: not answers(base_url))
    finally:
        os.kill(int(sibling), signal.SIGKILL)


def _release_in_child(lease, provider):
    lease.release()
    provider.stop()


def test_a_forked_child_does_not_end_its_parents_server():
    lease = lease_embedded(ECHO)
    try:
        provider = process_module._shared[ECHO, "simulation"].provider
        child = multiprocessing.get_context("fork").Process(target=_release_in_child, args=(lease, provider))
        child.start()
        child.join(20)
        assert child.exitcode == 0
        assert answers(lease.base_url)
    finally:
        lease.release()


def test_nothing_is_left_to_the_garbage_collector():
    lease = lease_embedded(ECHO)
    pid = process_module._shared[ECHO, "simulation"].provider._process.pid
    lease.release()
    del lease
    gc.collect()
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_forked_child_that_lets_go_leaves_nothing_to_warn_about():
    finished = run(
        f"""
        import gc, os, warnings
        from openenv_gym.providers.process import ProcessProvider
        warnings.simplefilter("error")
        provider = ProcessProvider({ECHO!r})
        provider.start()
        if os.fork() == 0:
            provider.stop()
            gc.collect()
            os._exit(0)
        assert os.wait()[1] == 0
        assert provider.ended() is None
        provider.stop()
        """
    )
    assert (finished.stderr, finished.returncode) == ("", 0)
