"""``openenv-gym serve --workers``: real processes, each found by its parent and ended by its id."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path

import gymnasium
import httpx
import pytest
from typer.testing import CliRunner

import openenv_gym  # noqa: F401  (registers the ids)
from openenv_gym.cli import app
from openenv_gym.cli.workers import _FIRST_DELAY_S, _LONGEST_DELAY_S, _told, _Worker
from openenv_gym.errors import SettingsError

WAIT_S = 30
# Click's status of an interrupt; a shell starts what runs in its background with interrupts ignored.
INTERRUPTED = 0 if signal.getsignal(signal.SIGINT) is signal.SIG_IGN else 130
COMMAND = [sys.executable, "-m", "openenv_gym.cli", "serve", "--log-level", "warning"]


@contextmanager
def serving(*arguments, cwd=None, port="0"):
    """The command with two workers, in a process of its own, for as long as the block lasts."""
    process = subprocess.Popen(
        [*COMMAND, *arguments, "--workers", "2", "--port", port],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(WAIT_S)
        process.stdout.close()
        process.stderr.close()


def urls_of(process):
    line = process.stdout.readline()
    # The last one is that of the example.
    found = re.findall(r"http://[\w.:\[\]]+", line)
    assert found, line + process.stderr.read()
    return found[:-1]


def children_of(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def family_of(pid):
    """The process's children and theirs: the workers and their guards."""
    workers = children_of(pid)
    return workers + [guard for worker in workers for guard in children_of(worker)]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def assert_gone(pids):
    deadline = time.monotonic() + WAIT_S
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < deadline, "a process was left behind"
        time.sleep(0.05)


def metadata(url):
    return httpx.get(f"{url}/metadata", trust_env=False).json()


def test_every_worker_has_a_port_and_publishes_all_of_them():
    with serving("CartPole-v1") as process:
        urls = urls_of(process)
        ports = [f":{url.rpartition(':')[2]}" for url in urls]
        assert len(set(ports)) == 2
        assert [metadata(url)["gymnasium"]["shards"] for url in urls] == [ports, ports]


def test_ports_follow_one_another_from_the_one_that_is_given():
    while True:
        with socket.create_server(("127.0.0.1", 0)) as first:
            port = first.getsockname()[1]
            try:
                socket.create_server(("127.0.0.1", port + 1)).close()
            except (OSError, OverflowError):
                continue
        break
    with serving("openenv_gym_envs.echo", port=str(port)) as process:
        urls = urls_of(process)
        assert urls == [f"http://127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}"]
        assert metadata(urls[1])["shards"] == [f":{port}", f":{port + 1}"]


def test_whole_urls_are_published_where_the_operator_gives_them():
    shards = ["https://host/one", "https://host/two"]
    with serving("openenv_gym_envs.echo", "--shard-url", shards[0], "--shard-url", shards[1]) as process:
        assert [metadata(url)["shards"] for url in urls_of(process)] == [shards, shards]


def test_a_worker_that_dies_starts_again_on_its_own_port_and_disturbs_no_other():
    with serving("CartPole-v1") as process:
        urls = urls_of(process)
        with gymnasium.make("openenv/remote-v0", base_url=urls[1]) as env:
            env.reset(seed=0)
            os.kill(children_of(process.pid)[0], signal.SIGKILL)
            port = urls[0].rpartition(":")[2]
            assert f"port {port} ended (killed by SIGKILL); it starts again in 0.5 s" in process.stderr.readline()
            assert f"port {port} answers again" in process.stderr.readline()
            assert metadata(urls[0])["gymnasium"]["shards"] == [f":{url.rpartition(':')[2]}" for url in urls]
            assert env.step(1)[0] in env.observation_space


def test_who_connects_while_a_worker_is_away_waits_for_it():
    with serving("openenv_gym_envs.echo") as process:
        url = urls_of(process)[0]
        os.kill(children_of(process.pid)[0], signal.SIGKILL)
        assert "ended" in process.stderr.readline()
        assert httpx.get(f"{url}/health", trust_env=False, timeout=WAIT_S).status_code == 200


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_and_the_status_says_which(number):
    with serving("openenv_gym_envs.echo") as process:
        urls_of(process)
        family = family_of(process.pid)
        assert len(family) == 4
        process.send_signal(number)
        assert process.wait(WAIT_S) == (-signal.SIGTERM if number is signal.SIGTERM else INTERRUPTED)
        assert_gone(family)


def test_the_parents_sudden_death_leaves_nothing_behind():
    with serving("openenv_gym_envs.echo") as process:
        urls = urls_of(process)
        family = family_of(process.pid)
        os.kill(family[0], signal.SIGSTOP)  # one that cannot see to its own end
        process.kill()
        process.wait(WAIT_S)
        assert_gone(family)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{urls[0]}/health", trust_env=False)


STUBBORN = """
import signal
from openenv_gym_envs.echo import create_app as create
def create_app(settings):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    import uvicorn
    uvicorn.Server.handle_exit = lambda self, sig, frame: None
    return create(settings=settings)
"""


def test_a_second_signal_ends_a_worker_that_does_not_heed_the_first(tmp_path):
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    with serving("stubborn:create_app", cwd=tmp_path) as process:
        urls_of(process)
        family = family_of(process.pid)
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == -signal.SIGTERM
        assert_gone(family)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("raise RuntimeError('its own words')", "cannot be loaded: RuntimeError"),
        ("import os; os._exit(3)", "exit status 3"),
    ],
)
def test_what_cannot_be_served_is_said_once_and_ends_the_command(tmp_path, text, told):
    (tmp_path / "broken.py").write_text(text)
    with serving("broken:app", cwd=tmp_path) as process:
        assert process.wait(WAIT_S) == 1
        said = process.stderr.read()
        assert said.count(told) == 1
        assert "ended at its start" in said
        assert process.stdout.read() == ""


def test_an_error_of_this_projects_is_one_line_of_the_worker(tmp_path):
    with serving("no_such_module_anywhere") as process:
        assert process.wait(WAIT_S) == 1
        assert process.stderr.read().count("openenv-gym: expected a Gymnasium id") == 1


@pytest.mark.parametrize(
    ("arguments", "setting"),
    [
        (["--shard-url", "http://a"], "shards"),
        (["--shard-url", "a:1", "--shard-url", "b:1"], "shards"),
        (["--step-timeout", "-1"], "step_timeout_s"),
        (["--env-kwarg", "novalue"], "env_kwargs"),
    ],
)
def test_a_wrong_option_is_refused_before_any_worker_starts(arguments, setting):
    result = CliRunner().invoke(app, ["serve", "CartPole-v1", "--workers", "2", "--port", "0", *arguments])
    assert isinstance(result.exception, SettingsError)
    assert result.exception.setting == setting


def test_the_delay_before_a_new_start_doubles_up_to_a_bound():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        worker = _Worker(None, listener)
        worker._began = time.monotonic()
        delays = [worker.ended() for _ in range(20)]
        worker._began -= 3600
        assert worker.ended() == _FIRST_DELAY_S
    assert delays[:3] == [_FIRST_DELAY_S, 2 * _FIRST_DELAY_S, 4 * _FIRST_DELAY_S]
    assert delays[-1] == _LONGEST_DELAY_S


def test_the_end_of_a_process_is_told_in_words():
    assert [_told(status) for status in (3, -9, -64 - 60)] == [
        "exit status 3",
        "killed by SIGKILL",
        "killed by signal 124",
    ]


def test_a_vector_that_is_told_of_one_worker_is_spread_over_all():
    with (
        serving("CartPole-v1", "--max-concurrent-envs", "2") as process,
        closing(gymnasium.make_vec("openenv/remote-v0", num_envs=4, base_url=urls_of(process)[0])) as envs,
    ):
        assert envs.reset(seed=0)[0].shape == (4, 4)
