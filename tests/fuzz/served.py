"""What is served while it is fuzzed: an environment of each kind, none of which fails of itself.

Not the fuzzing, which is in the test files beside this one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from openenv_gym_server import ServerSettings, create_gym_app
from tests.interop.flavours import our_kit, text_case, tools_case

SETTINGS = ServerSettings(max_concurrent_envs=8)


class Served(NamedTuple):
    """An application, the name of its environment and an action that it takes."""

    make: Callable[[], Any]
    name: str
    action: dict[str, Any]


class Tasks:
    """What an environment with tasks adds; one split has three of them."""

    def list_splits(self) -> list[Any]:
        return ["train", {"name": "held back", "type": "test"}]

    def list_tasks(self, split: str) -> list[Any]:
        return [self.get_task(split, index) for index in range(self.num_tasks(split))]

    def num_tasks(self, split: str) -> int:
        return 3 if split == "train" else 0

    def get_task(self, split: str, index: int) -> Any:
        return {"split": split, "index": range(self.num_tasks(split))[index]}

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[Any]:
        return self.list_tasks(split)[start:stop]


def text_app() -> Any:
    case = text_case(our_kit())
    tasked = type("Text", (Tasks, case.environment), {})
    return case.kit.create_app(tasked, case.action, case.observation, env_name="text", settings=SETTINGS)


def tools_app() -> Any:
    case = tools_case(our_kit())
    return case.kit.create_app(case.environment, case.action, case.observation, env_name="tools", settings=SETTINGS)


def gym_app() -> Any:
    return create_gym_app("CartPole-v1", settings=SETTINGS)


SERVED = {
    "text": Served(text_app, "text", {"message": "on"}),
    "gym": Served(gym_app, "CartPole-v1", {"action": 1}),
    "tools": Served(tools_app, "tools", {"type": "call_tool", "tool_name": "roll", "arguments": {"sides": 6}}),
}
