"""An environment of the client's tests, whose step sleeps where it is told to."""

import threading

import gymnasium

release = threading.Event()
"""Lets the sleeping steps go on."""


class Sleepy(gymnasium.Env):
    """Sleeps where it is told to; counts in its observation how often it was stepped."""

    observation_space = gymnasium.spaces.Discrete(100)
    action_space = gymnasium.spaces.Discrete(2)
    metadata = {"render_modes": ["ansi"]}
    colour = "blue"

    def __init__(self, render_mode=None, start=0):
        self.render_mode = render_mode
        self.start = start

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = self.start
        return self.steps, {"options": options}

    def step(self, action):
        if action == 1:
            release.wait(20)
        self.steps += 1
        return self.steps, 0.5, False, False, {}

    def render(self):
        return f"{self.steps} steps"

    def add(self, left, right=1):
        return left + right

    def secret(self):
        return "hidden"
