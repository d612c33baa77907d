"""Methods, attributes and renderings over several sessions."""

import gymnasium
import pytest

from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError
from openenv_gym.vector import RemoteVectorEnv
from openenv_gym_server import ServerSettings, create_gym_app
from tests.serving import serve


class Numbered(gymnasium.Env):
    """Knows how many were made before it."""

    observation_space = action_space = gymnasium.spaces.Discrete(3)
    made = 0
    mark = "none"

    def __init__(self):
        self.number = Numbered.made
        Numbered.made += 1

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return int(action), 0.0, False, False, {}

    def fail_where(self, mark):
        if self.mark == mark:
            raise ArithmeticError(f"{mark} cannot")
        return self.mark


@pytest.fixture
def envs():
    names = frozenset({"fail_where", "mark"})
    app = create_gym_app(Numbered, settings=ServerSettings(max_concurrent_envs=5, remote_names=names))
    with serve(app) as url:
        envs = RemoteVectorEnv(5, base_url=url, envs_per_session=2)
        yield envs
        envs.close()


def test_results_are_in_the_order_of_the_environments(envs):
    marks = tuple("abcde")
    envs.set_attr("mark", marks)
    assert envs.get_attr("mark") == envs.call("fail_where", "z") == envs.call("fail_where", mark="z") == marks


def test_values_are_seen_by_their_own_environment_alone(envs):
    envs.set_attr("mark", [1, None, {"deep": (1, 2.5)}, b"bytes", "text"])
    assert envs.get_attr("mark") == (1, None, {"deep": (1, 2.5)}, b"bytes", "text")


def test_a_method_that_raises_is_told_once_all_have_been_heard(envs):
    envs.reset()
    envs.set_attr("mark", list("abcde"))
    with pytest.raises(EnvironmentExecutionError, match="d cannot"):
        envs.call("fail_where", "d")


def test_a_refusal_leaves_every_session_as_it_was(envs):
    envs.reset()
    with pytest.raises(InvalidActionError):
        envs.call("reset")
    assert envs.step([0, 1, 2, 1, 0])[0].tolist() == [0, 1, 2, 1, 0]
