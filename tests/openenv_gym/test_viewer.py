"""The window for remote frames, on SDL's dummy screen."""

import sys

import numpy as np
import pytest

from openenv_gym.errors import MissingExtraError, ValueMappingError
from openenv_gym.viewer import FrameViewer


@pytest.fixture
def viewer(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    viewer = FrameViewer("test", fps=1000)
    yield viewer
    viewer.close()


def test_a_frame_is_shown_pixel_for_pixel(viewer):
    frame = np.random.default_rng(0).integers(0, 256, (30, 40, 3), np.uint8)
    viewer.show(frame)
    assert viewer._window.get_size() == (40, 30)
    assert viewer._window.get_at((5, 7))[:3] == tuple(frame[7, 5])


def test_the_window_follows_the_size_of_the_frames(viewer):
    viewer.show(np.zeros((30, 40, 3), np.uint8))
    viewer.show(np.zeros((50, 60, 3), np.uint8))
    assert viewer._window.get_size() == (60, 50)


@pytest.mark.parametrize("frame", [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 4), np.uint8), np.zeros((4, 4, 3))])
def test_what_is_no_frame_is_refused(viewer, frame):
    with pytest.raises(ValueMappingError) as caught:
        viewer.show(frame)
    assert str(frame.shape) in str(caught.value)


def test_without_pygame_the_error_names_the_extra(viewer, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(MissingExtraError) as caught:
        viewer.show(np.zeros((4, 4, 3), np.uint8))
    assert caught.value.extra == "render"


def test_closing_twice_is_allowed(viewer):
    viewer.show(np.zeros((4, 4, 3), np.uint8))
    viewer.close()
    viewer.close()
    assert viewer._window is None
