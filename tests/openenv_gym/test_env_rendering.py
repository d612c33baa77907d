"""``RemoteEnv.render`` in every mode, and the wrappers of Gymnasium that build on it."""

import gymnasium
import numpy as np
import pytest

from openenv_gym.env import RemoteEnv
from openenv_gym.errors import SettingsError


@pytest.mark.parametrize("mode", ["rgb_array", "rgb_array_list"])
def test_frames_are_those_of_the_local_environment(cartpole, mode):
    with (
        gymnasium.make("openenv/gym-v0", env_id="CartPole-v1", base_url=cartpole, render_mode=mode) as env,
        gymnasium.make("CartPole-v1", render_mode=mode) as local,
    ):
        env.reset(seed=0), local.reset(seed=0)
        env.step(1), local.step(1)
        remote, here = env.render(), local.render()
    assert np.shape(remote) == np.shape(here)
    assert np.asarray(remote).dtype == np.uint8
    np.testing.assert_array_equal(remote, here)


def test_text_renderings_cross_the_wire(sleepy):
    with RemoteEnv(sleepy, render_mode="ansi") as env:
        env.reset()
        assert env.render() == "0 steps"


def test_human_mode_shows_the_remote_frames_here(cartpole, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    with gymnasium.make("openenv/gym-v0", env_id="CartPole-v1", base_url=cartpole, render_mode="human") as env:
        env.reset(seed=0)
        env.step(0)
        assert env.render() is None
        assert env.unwrapped._viewer._window.get_size() == (600, 400)


def test_rendering_without_a_mode_warns_as_gymnasium_does(env):
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="without specifying any render mode"):
        assert env.render() is None


@pytest.mark.parametrize("mode", ["human", "rgb_array"])
def test_a_mode_the_environment_lacks_is_refused_and_no_session_is_left(sleepy, mode):
    for _ in range(3):
        with pytest.raises(SettingsError) as caught:
            RemoteEnv(sleepy, render_mode=mode)
        assert caught.value.setting == "render_mode"
    RemoteEnv(sleepy).close()


def test_a_video_of_remote_frames_can_be_recorded(cartpole, tmp_path):
    env = gymnasium.make("openenv/gym-v0", env_id="CartPole-v1", base_url=cartpole, render_mode="rgb_array")
    with gymnasium.wrappers.RecordVideo(env, str(tmp_path / "videos"), disable_logger=True) as recorder:
        recorder.reset(seed=0)
        terminated = False
        while not terminated:
            terminated = recorder.step(0)[2]
    assert [path.suffix for path in (tmp_path / "videos").iterdir() if path.stat().st_size > 1000] == [".mp4"]
