"""What a vector environment says when something cannot be, or goes wrong."""

import multiprocessing
import threading

import gymnasium
import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector import SyncVectorEnv

from openenv_gym.errors import (
    EnvironmentExecutionError,
    InvalidActionError,
    OpenEnvGymError,
    OpenEnvGymWarning,
    SessionLostError,
    SessionStateError,
    ValueMappingError,
)
from openenv_gym.vector import RemoteVectorEnv
from openenv_gym_server import ServerSettings, create_gym_app
from tests.openenv_gym.sleepy import Sleepy, release
from tests.openenv_gym.talking import serve_talk
from tests.serving import serve


def masked(*rows):
    return {"reset_mask": np.array(rows, np.bool_)}


@pytest.mark.parametrize(
    ("mask", "error"),
    [
        ([True, False, False], TypeError),
        (np.array([1, 0, 0]), TypeError),
        (np.array([True, False]), ValueError),
        (np.array([[True, False, False]]), ValueError),
        (np.zeros(3, np.bool_), ValueError),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(envs, mask, error):
    envs.reset(seed=0)
    with pytest.raises(error, match="reset_mask"):
        envs.reset(options={"reset_mask": mask})
    envs.step([0, 0, 0])


def test_gymnasiums_errors_tell_of_calls_out_of_order(pairs):
    for wait, name in ((pairs.reset_wait, "reset"), (pairs.step_wait, "step")):
        with pytest.raises(NoAsyncCallError) as missing:
            wait()
        assert missing.value.name == name
    for begin, name in ((pairs.reset_async, "reset"), (lambda: pairs.step_async([0, 0, 0]), "step")):
        begin()
        for call in (pairs.reset_async, lambda: pairs.step([0, 0, 0]), lambda: pairs.call("add", 1), pairs.render):
            with pytest.raises(AlreadyPendingCallError) as pending:
                call()
            assert pending.value.name == name
        getattr(pairs, f"{name}_wait")()


def test_a_closed_environment_says_so(roomy):
    envs = RemoteVectorEnv(2, base_url=roomy)
    envs.close()
    envs.close()
    for call in (envs.reset, envs.reset_wait, lambda: envs.step([0, 0]), envs.step_wait, envs.recv, envs.render):
        with pytest.raises(ClosedEnvironmentError):
            call()


def test_a_late_answer_is_both_errors_of_a_timeout(pairs):
    pairs.step_async([0, 1, 0])
    with pytest.raises(multiprocessing.TimeoutError) as caught:
        pairs.step_wait(timeout=0.05)
    assert isinstance(caught.value, TimeoutError)
    assert isinstance(caught.value, OpenEnvGymError)
    with pytest.raises(SessionLostError):
        pairs.step([0, 0, 0])
    with pytest.raises(SessionLostError):
        pairs.reset(options=masked(1, 0, 0))
    assert pairs.reset()[0].tolist() == [0, 0, 0]


def test_an_answer_later_than_the_settings_allow_is_such_an_error_too(several):
    envs = RemoteVectorEnv(2, base_url=several, step_timeout_s=0.05)
    envs.reset()
    with pytest.raises(TimeoutError):
        envs.step([1, 0])
    release.set()
    envs.close()
    release.clear()


def test_a_name_that_is_not_allowed_is_refused_and_all_goes_on(pairs):
    for call in (lambda: pairs.call("secret"), lambda: pairs.get_attr("secret"), lambda: pairs.set_attr("secret", 1)):
        with pytest.raises(InvalidActionError):
            call()
    assert pairs.step([0, 0, 0])[0].tolist() == [1, 1, 1]


def test_a_server_of_another_make_has_no_such_things_and_goes_on():
    with serve_talk("stock") as url:
        envs = RemoteVectorEnv(2, base_url=url)
        envs.reset()
        for call in (lambda: envs.call("add"), lambda: envs.get_attr("x"), lambda: envs.set_attr("x", 1)):
            with pytest.raises(SessionStateError):
                call()
        assert envs.step(("a", "b"))[0] == ("a", "b")
        envs.close()


@pytest.mark.parametrize("settings", [{}, {"binary": False}, {"envs_per_session": 2}])
def test_an_environment_that_raises_is_named_and_all_are_begun_anew(settings):
    app = create_gym_app(
        "tests.exactness.synthetic:synthetic/Failing-v0", settings=ServerSettings(max_concurrent_envs=4)
    )
    with serve(app) as url:
        envs = RemoteVectorEnv(4, base_url=url, **settings)
        local = SyncVectorEnv([lambda: gymnasium.make("synthetic/Failing-v0")] * 4)
        np.testing.assert_array_equal(envs.reset(seed=0)[0], local.reset(seed=0)[0])
        for fail in (lambda: envs.step([0, 1, 0, 3]), lambda: envs.reset(options={"fail": True})):
            with pytest.raises(EnvironmentExecutionError, match="ArithmeticError: synthetic failure") as caught:
                fail()
            assert caught.value.env_index in {0, 2, 3}
            with pytest.raises(SessionLostError, match="synthetic failure"):
                envs.step([0, 0, 0, 0])
            envs.reset(seed=0)
        np.testing.assert_array_equal(envs.step([0, 1, 0, 1])[0], local.step([0, 1, 0, 1])[0])
        envs.close()


def test_the_environment_that_raises_is_the_one_that_is_named():
    app = create_gym_app(
        "tests.exactness.synthetic:synthetic/Failing-v0", settings=ServerSettings(max_concurrent_envs=5)
    )
    with serve(app) as url:
        envs = RemoteVectorEnv(5, base_url=url, envs_per_session=2)
        for index in range(5):
            envs.reset()
            with pytest.raises(EnvironmentExecutionError) as caught:
                envs.step([3 if index == env_id else 0 for env_id in range(5)])
            assert caught.value.env_index == index
            assert caught.value.message.startswith(f"environment {index} failed in step: ArithmeticError")
        envs.close()


def test_actions_that_are_none_are_refused_and_nothing_moves(envs):
    envs.reset(seed=0)
    for actions in ([0, 1], [0, 1, 0, 1], 5, [[0, 1, 0]], [0, 1, "left"], [0, 1, 0.5]):
        with pytest.raises(ValueError):
            envs.step(actions)
    after = envs.step([0, 1, 0])[0]
    envs.reset(seed=0)
    np.testing.assert_array_equal(envs.step(np.array([0, 1, 0], np.int32))[0], after)


def test_warnings_of_a_server_reach_the_caller(roomy):
    class Rounding(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return np.zeros(1, np.float64), {}

    with serve(create_gym_app(Rounding, settings=ServerSettings(max_concurrent_envs=2))) as url:
        for binary in (True, False):
            envs = RemoteVectorEnv(2, base_url=url, binary=binary)
            with pytest.warns(OpenEnvGymWarning, match="float64"):
                envs.reset()
            envs.close()


def test_an_observation_that_does_not_fit_names_its_environment():
    with serve_talk("stock") as url:
        envs = RemoteVectorEnv(
            2, base_url=url, observation_space=gymnasium.spaces.Dict({"text": gymnasium.spaces.Discrete(2)})
        )
        with pytest.raises(ValueMappingError, match=r"observation of environment [01] does not fit"):
            envs.reset()
        envs.close()


@pytest.mark.parametrize("seed", [-1, [0, -2, None]])
def test_a_seed_that_cannot_be_is_refused_and_all_goes_on(envs, seed):
    envs.reset(seed=0)
    with pytest.raises(gymnasium.error.Error, match="0 or more"):
        envs.reset(seed=seed)
    envs.step([0, 0, 0])


@pytest.mark.parametrize("settings", [{}, {"envs_per_session": 1}])
def test_the_places_of_lost_sessions_are_waited_for(settings):
    with serve(create_gym_app(Sleepy, settings=ServerSettings(max_concurrent_envs=2))) as url:
        envs = RemoteVectorEnv(2, base_url=url, **settings)
        envs.reset()
        envs.step_async([1, 1])
        with pytest.raises(TimeoutError):
            envs.step_wait(timeout=0.05)
        timer = threading.Timer(0.2, release.set)
        timer.start()
        assert envs.reset()[0].tolist() == [0, 0]
        timer.join()
        release.clear()
        envs.close()


def test_all_answers_to_a_call_have_one_deadline():
    class Slower(Sleepy):
        made = 0

        def __init__(self):
            super().__init__()
            Slower.made += 1
            self.wait_s = 0.4 * Slower.made

        def add(self, left, right=1):
            release.wait(self.wait_s)
            return left + right

    settings = ServerSettings(max_concurrent_envs=8, remote_names=frozenset({"add"}))
    with serve(create_gym_app(Slower, settings=settings)) as url:
        Slower.made = 0
        envs = RemoteVectorEnv(3, base_url=url, envs_per_session=1, step_timeout_s=0.7)
        with pytest.raises(multiprocessing.TimeoutError):
            envs.call("add", 1)
        assert not envs._episodes.rollout.alive
        envs.close()


@pytest.mark.parametrize("point", ["begin", "between", "gather"])
@pytest.mark.parametrize("settings", [{}, {"envs_per_session": 1}])
def test_an_interrupt_at_any_point_of_a_step_leaves_nothing_under_way(several, monkeypatch, settings, point):
    envs = RemoteVectorEnv(2, base_url=several, **settings)
    envs.reset()

    def interrupted(*_args, **_keywords):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        if point == "begin":
            last = envs._episodes.rollout.sessions[-1].shell
            patched.setattr(last.session, "packed", interrupted)
        elif point == "between":
            patched.setattr(envs, "step_wait", interrupted)
        else:
            patched.setattr("openenv_gym.vector_rollout.finish_all", interrupted)
        with pytest.raises(KeyboardInterrupt):
            envs.step([0, 0])
    with pytest.raises(SessionLostError):
        envs.step([0, 0])
    assert envs.reset()[0].tolist() == [0, 0]
    assert envs.step([0, 0])[0].tolist() == [1, 1]
    envs.close()
