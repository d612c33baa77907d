"""A local window for frames that were rendered elsewhere: ``render_mode="human"`` of a remote environment.

Not for fetching frames; ``env.py`` does that. pygame is imported when the first frame is shown.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from openenv_gym.errors import MissingExtraError, ValueMappingError

__all__ = ["FrameViewer"]


class FrameViewer:
    """Shows one frame after another in one window.

    Args:
        title: the window's title.
        fps: at most so many frames are shown a second.

    Example:
        >>> viewer = FrameViewer("demo", fps=50)
        >>> viewer.close()
    """

    def __init__(self, title: str, fps: float) -> None:
        self._title = title
        self._fps = fps
        self._window: Any = None
        self._clock: Any = None

    def show(self, frame: NDArray[np.uint8]) -> None:
        """Show one frame.

        Args:
            frame: shape (height, width, 3), dtype uint8.

        Raises:
            MissingExtraError: pygame is not installed.
            ValueMappingError: the frame has another shape or dtype.
        """
        try:
            import pygame  # noqa: PLC0415
        except ImportError as error:
            raise MissingExtraError(
                'render_mode="human" shows frames with pygame, which is not installed: '
                'pip install "openenv-gym[render]"',
                extra="render",
            ) from error
        if frame.ndim != 3 or frame.shape[2] != 3 or frame.dtype != np.uint8:
            raise ValueMappingError(
                f"expected a frame of shape (height, width, 3) and dtype uint8, got {frame.shape} {frame.dtype}",
                path="$",
            )
        size = (frame.shape[1], frame.shape[0])
        if self._window is None or self._window.get_size() != size:
            pygame.display.init()
            pygame.display.set_caption(self._title)
            self._window = pygame.display.set_mode(size)
            self._clock = pygame.time.Clock()
        # pygame's surfaces are indexed (x, y), frames (row, column).
        self._window.blit(pygame.surfarray.make_surface(frame.swapaxes(0, 1)), (0, 0))
        pygame.event.pump()
        self._clock.tick(self._fps)
        pygame.display.flip()

    def close(self) -> None:
        """Close the window. May be called again."""
        if self._window is not None:
            import pygame  # noqa: PLC0415

            pygame.display.quit()
            self._window = None
