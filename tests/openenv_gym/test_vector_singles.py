"""One environment in a session of its own: autoreset, the time limit and the last observation are made here."""

import gymnasium
import pytest

from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError, OpenEnvGymWarning, SessionLostError
from openenv_gym.vector import RemoteVectorEnv
from tests.exactness.stock_gym import SPACES, stock_walks
from tests.interop.test_stock_server import Dice, Heard, Move, Parrot, Place, Say
from tests.openenv_gym.talking import serve_talk
from tests.serving import serve


@pytest.fixture(scope="module")
def parrots():
    from openenv.core.env_server import create_fastapi_app

    with serve(create_fastapi_app(Parrot, Say, Heard, max_concurrent_envs=4)) as url:
        yield url


def test_options_of_a_stock_server_are_its_keywords(parrots):
    envs = RemoteVectorEnv(2, base_url=parrots)
    observations, infos = envs.reset(seed=[4, None], options={"split": "test"})
    assert observations == ("ready 4 test", "ready None test")
    assert infos["hint"].tolist() == ["say something"] * 2
    envs.close()


def test_a_truncation_that_the_metadata_tells_is_one(parrots):
    envs = RemoteVectorEnv(2, base_url=parrots, autoreset_mode="SameStep")
    envs.reset(seed=1)
    observations, rewards, terminations, truncations, infos = envs.step(("limit", "go on"))
    assert observations == ("ready None None", "go on")
    assert (terminations.tolist(), truncations.tolist()) == ([False, False], [True, False])
    assert rewards.tolist() == [0.0, 1.0]
    assert infos["final_obs"].tolist() == ["late", None]
    assert infos["final_info"] == {}
    assert infos["_final_info"].tolist() == [True, False]
    assert infos["n"].tolist() == [0, 1]
    envs.close()


def test_an_environment_that_raises_is_named(parrots):
    envs = RemoteVectorEnv(3, base_url=parrots)
    envs.reset()
    with pytest.raises(EnvironmentExecutionError, match=r"environment 2 failed.*parrots cannot count") as caught:
        envs.step(("a", "b", "raise"))
    assert caught.value.env_index == 2
    assert envs.reset(seed=0)[0][2] == "ready 2 None"
    envs.close()


def test_a_reset_that_raises_is_named_too():
    with serve_talk("stock") as url:
        envs = RemoteVectorEnv(2, base_url=url)
        with pytest.raises(EnvironmentExecutionError, match="no reset today") as caught:
            envs.reset(options={"fail": True})
        assert caught.value.env_index in {0, 1}
        envs.close()


def test_a_seed_that_is_ignored_is_told():
    from openenv.core.env_server import create_fastapi_app

    with serve(create_fastapi_app(Dice, Move, Place, max_concurrent_envs=1)) as url:
        box = gymnasium.spaces.Box(0.0, 1.0, (1,))
        envs = RemoteVectorEnv(1, base_url=url, observation_space=box)
        envs.reset(seed=1)
        envs.reset()
        envs.reset(seed=2)
        with pytest.warns(OpenEnvGymWarning, match="seed=2 gave different"):
            envs.reset(seed=2)
        envs.close()


def test_the_time_limit_counts_each_episode_by_itself():
    with serve(stock_walks(2)) as url:
        envs = RemoteVectorEnv(2, base_url=url, autoreset_mode="Disabled", max_episode_steps=3, **SPACES)
        envs.reset(seed=1)
        over = [0, 0]
        for _ in range(30):
            *_, terminations, truncations, _ = envs.step([0, 0])
            over = [steps + 1 for steps in over]
            # The environment itself truncates now and then, and never later than the limit.
            assert all(truncations[env_id] for env_id in (0, 1) if over[env_id] == 3)
            assert max(over) <= 3
            ended = terminations | truncations
            if ended.any():
                envs.reset(options={"reset_mask": ended})
                over = [0 if end else steps for steps, end in zip(over, ended, strict=True)]
        envs.close()


def test_a_refused_reset_behind_the_last_step_ends_the_session(parrots, monkeypatch):
    envs = RemoteVectorEnv(1, base_url=parrots, autoreset_mode="SameStep")
    envs.reset()
    session = envs._episodes.rollout.sessions[0]
    answered = session.shell.finish

    def refusing(timeout_s):
        reply = answered(timeout_s)
        if session._last is not None:
            raise InvalidActionError("no reset without a task", errors=[], code="VALIDATION_ERROR", data={})
        return reply

    monkeypatch.setattr(session.shell, "finish", refusing)
    with pytest.raises(InvalidActionError):
        envs.step(("limit",))
    with pytest.raises(SessionLostError, match="no reset without a task"):
        envs.step(("go on",))
    assert envs.reset()[0] == ("ready None None",)
    envs.close()
