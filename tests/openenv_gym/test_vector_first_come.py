"""Tests of ``openenv_gym.vector_first_come``: one session whose server answers first come, first served."""

from __future__ import annotations

import time

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from openenv_gym import frames, messages
from openenv_gym.errors import ProtocolError, RequestTimeoutError, SessionLostError
from openenv_gym.vector import RemoteVectorEnv
from openenv_gym.vector_rows import Actions
from openenv_gym_server import ServerSettings, create_gym_app
from tests.openenv_gym.talking import gate, gates, serve_talk
from tests.openenv_gym_server.vectors import Moody
from tests.serving import serve

SETTINGS = {"binary": [True, False], "mode": list(AutoresetMode)}


@pytest.fixture(scope="module")
def talk():
    with serve_talk("ours", capacity=64) as url:
        yield url


@pytest.fixture(scope="module")
def moody():
    with serve(create_gym_app(Moody, settings=ServerSettings(max_concurrent_envs=64))) as url:
        yield url


@pytest.mark.parametrize("binary", SETTINGS["binary"])
@pytest.mark.parametrize("mode", SETTINGS["mode"], ids=str)
def test_the_rows_are_those_of_a_vector_environment_here(moody, mode, binary):
    random = np.random.default_rng(3)
    local = SyncVectorEnv([Moody] * 3, autoreset_mode=mode)
    remote = RemoteVectorEnv(3, base_url=moody, vectorization="threads", autoreset_mode=mode, binary=binary)
    local.reset(seed=5)
    remote.reset(seed=5)
    for _ in range(12):
        actions = random.integers(0, 4, 3)
        wanted = local.step(actions)
        for part in np.split(random.permutation(3), [int(random.integers(1, 3))]):
            remote.send(actions[part], part)
        seen, rows = 0, {}
        while seen < 3:
            observations, rewards, terminations, truncations, infos, ids = remote.recv(
                min_envs=int(random.integers(1, 4))
            )
            seen += len(ids)
            for row, env_id in enumerate(ids.tolist()):
                values = observations["a"][row], observations["say"][row], rewards[row], terminations[row]
                rows[env_id] = (*values, truncations[row], taken(infos, row))
        for env_id in range(3):
            values = wanted[0]["a"][env_id], wanted[0]["say"][env_id], wanted[1][env_id], wanted[2][env_id]
            assert rows[env_id] == (*values, wanted[3][env_id], taken(wanted[4], env_id))
        if mode is AutoresetMode.DISABLED and (over := wanted[2] | wanted[3]).any():
            local.reset(options={"reset_mask": over.copy()})
            remote.reset(options={"reset_mask": over.copy()})
    remote.close()


def taken(infos, row):
    """One environment's part of a batched info, as text."""
    keys = [key for key in ("action", "began", "array", "final_obs") if key in infos and infos[f"_{key}"][row]]
    found = {key: infos[key][row] for key in keys}
    if "final_obs" in found:
        final = found["final_obs"]
        found["final_obs"] = int(final["a"]), final["z"].tolist(), final["say"]
    return repr(found)


def test_what_is_sent_while_another_waits_begins_at_once(talk):
    envs = RemoteVectorEnv(3, base_url=talk, vectorization="threads")
    envs.reset()
    with gate("first"), gate("second") as second:
        envs.send(("wait first",), [0])
        with pytest.raises(RequestTimeoutError):
            envs.recv(timeout=0.02)
        envs.send(("wait second",), [1])
        assert second.wait(10)
        gates["second"].set()
        assert envs.recv()[0] == ("wait second",)
        gates["first"].set()
        assert envs.recv(timeout=20)[0] == ("wait first",)
    envs.close()


def test_a_step_that_takes_too_long_ends_all_whoever_else_answers(talk):
    envs = RemoteVectorEnv(2, base_url=talk, vectorization="threads", step_timeout_s=0.3)
    envs.reset()
    begun = time.monotonic()
    with gate("slow"):
        envs.send(("wait slow",), [0])
        with pytest.raises(RequestTimeoutError):
            _keep_stepping(envs, begun + 20)
        with pytest.raises(SessionLostError):
            envs.step(("a", "b"))
    envs.close()


def _keep_stepping(envs, until):
    while time.monotonic() < until:
        envs.send(("a",), [1])
        assert envs.recv(min_envs=1)[5].tolist() == [1]


def test_steps_without_a_limit_have_none(talk):
    envs = RemoteVectorEnv(2, base_url=talk, vectorization="threads", step_timeout_s=0)
    envs.reset()
    envs.send(("a", "b"), [1, 0])
    assert sorted(envs.recv(min_envs=2)[0]) == ["a", "b"]
    assert envs.step(("c", "d"))[0] == ("c", "d")
    envs.close()


@pytest.mark.parametrize("named", [None, [1], [0, 0], [7]])
def test_an_answer_about_anybody_else_ends_the_session(moody, monkeypatch, named):
    envs = RemoteVectorEnv(3, base_url=moody, vectorization="threads")
    envs.reset()
    session = envs._episodes.rollout.sessions[0]
    session.prepare_send(_actions(envs), np.array([0]), np.array([0]))()
    count = 3 if named is None else len(named)
    frame = frames.write_outcome(2, count, named, observations=[b""], stepped=([0.0] * count, [0] * count, [0] * count))
    reply = messages.PackedReply(frames.read_frame(frame))
    monkeypatch.setattr(session.shell, "finish", lambda _: reply)
    with pytest.raises(ProtocolError, match="with a step under way"):
        session.finish(10)
    assert not session.shell.alive
    envs.close()


def _actions(envs):
    return Actions(envs.single_action_space, np.array([1]), 1)
