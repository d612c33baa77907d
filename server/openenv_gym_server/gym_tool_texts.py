"""What an agent reads of a Gymnasium environment's tools: written from its Spaces and from what its author says.

Not for the sentence of one Space (``space_tools.py``), nor for the tools (``gym_tools.py``).
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Mapping
from typing import Any, Protocol

from gymnasium.spaces import Discrete

from openenv_gym.json_text import JSON, encode_json
from openenv_gym.types import EnvironmentMetadata
from openenv_gym_server.legacy import AnyEnv
from openenv_gym_server.space_tools import words_for

__all__ = ["Described", "about_act", "about_named", "about_observe", "value_text"]

logger = logging.getLogger("openenv_gym_server")

MAX_SECTION = 1_500
"""Characters of a docstring's section that a description repeats."""

MAX_MEANINGS = 64
"""Actions whose meanings a description tells."""


class Described(Protocol):
    """What is asked of an environment that is described."""

    env_id: str

    @property
    def kind(self) -> type:
        """The class that its author wrote."""

    @property
    def gymnasium_env(self) -> AnyEnv:
        """The environment itself."""

    def get_metadata(self) -> EnvironmentMetadata:
        """What it says of itself."""


def about_act(env: Described, named: Mapping[str, JSON]) -> str:
    """The description of ``act``.

    Args:
        env: the environment.
        named: the JSON of each action that has a tool of its own, by the tool's name.
    """
    about = env.get_metadata().description.rstrip(".")
    spaces = env.gymnasium_env.action_space, env.gymnasium_env.observation_space
    parts = [
        f"Take one action in {env.env_id} and get the observation that follows. {about}.",
        f"The action is {words_for(spaces[0])}; the observation is {words_for(spaces[1])}.",
    ]
    if named:
        parts.append(f"Actions with a tool of their own: {_listing(named)}.")
    elif meanings := _meanings(env):
        parts.append(f"The actions: {_listing(meanings)}.")
    return "\n".join([*parts, *_section(env.kind, "Action Space")])


def about_named(env: Described, name: str, action: JSON) -> str:
    """The description of the tool of one action."""
    return f"Take the action {name} ({value_text(action)}) in {env.env_id} and get the observation that follows."


def about_observe(env: Described) -> str:
    """The description of ``observe``."""
    words = words_for(env.gymnasium_env.observation_space)
    sentence = f"Get the last observation of {env.env_id} again, without taking an action: {words}."
    return "\n".join([sentence, *_section(env.kind, "Observation Space")])


def value_text(value: JSON) -> str:
    """A value as text: itself where it is one, else its JSON."""
    return value if isinstance(value, str) else encode_json(value).decode()


def _listing(actions: Mapping[str, JSON]) -> str:
    return ", ".join(f"{value_text(action)} is {name}" for name, action in actions.items())


def _meanings(env: Described) -> dict[str, JSON]:
    """The names that an environment gives its own actions, as those of Atari games do."""
    space = env.gymnasium_env.action_space
    meanings: Any = getattr(env.gymnasium_env.unwrapped, "get_action_meanings", None)
    if not isinstance(space, Discrete) or not callable(meanings):
        return {}
    try:
        names = [str(name) for name in meanings()]
    except Exception:  # best effort with an author's own method: the description is there without it
        logger.debug("%s could not tell the meanings of its actions", env.env_id, exc_info=True)
        return {}
    return {name: int(space.start) + index for index, name in enumerate(names[:MAX_MEANINGS])}


def _section(kind: type, title: str) -> list[str]:
    """The section of a class's docstring under that heading, as Gymnasium's have them; empty where there is none."""
    found: list[str] = []
    inside = False
    for line in inspect.cleandoc(kind.__dict__.get("__doc__") or "").splitlines():
        if heading := re.fullmatch(r"\s*#+\s*(.+?)\s*", line):
            inside = heading[1].lower() == title.lower()
        elif inside:
            found.append(line)
    text = "\n".join(found).strip()
    return [text if len(text) <= MAX_SECTION else f"{text[:MAX_SECTION]} …"] if text else []
