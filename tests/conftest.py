"""What every test can count on: no window opens, the caller's shell sets nothing, hypothesis is patient and repeatable.

Fixtures that only some tests need live beside those tests.
"""

from __future__ import annotations

import os

import hypothesis

from tests.trainers import TRAINERS, WITH_TRAINERS

collect_ignore = [] if TRAINERS else WITH_TRAINERS

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
for name in [name for name in os.environ if name.startswith("OPENENV_")]:
    del os.environ[name]
for name in ("ENABLE_WEB_INTERFACE", "MAX_CONCURRENT_ENVS", "PORT"):
    os.environ.pop(name, None)

# A deadline measures the machine, not the code; a fixed seed makes a failure in a gate the same failure on a desk.
hypothesis.settings.register_profile("gate", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("search", deadline=None, max_examples=2000, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))
