"""An environment that renders and has methods and attributes to reach, and the terms of two kinds of connection."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import numpy as np

from openenv_gym_server.parsing import Terms
from tests.text_envs import Echo

STOCK = Terms()
OURS = Terms(session_id="s", extended=True, opened=True, remote_names=frozenset({"count", "label", "fail", "live"}))


class Rendering(Echo):
    render_mode = "rgb_array"
    label = "a label"
    live = object()

    def render(self) -> object:
        return np.zeros((2, 2, 3), dtype=np.uint8)

    def count(self, *numbers: int, start: int = 0) -> tuple[int, ...]:
        return tuple(start + number for number in numbers)

    def fail(self) -> None:
        raise OSError("no")


def no_wait(awaitable: Awaitable[Any]) -> Any:
    raise AssertionError("nothing here is asynchronous")
