"""What a Gymnasium environment in production answers: its Spaces, resets and steps.

In production an agent calls tools and nothing else; reward and the end of an episode are none of its business. What
stands there in place of ``interface.py`` and ``encodings.py``, for ``RemoteEnv``. The session is
``production_shell.py``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from gymnasium.spaces import Text
from typing_extensions import override

from openenv_gym import messages
from openenv_gym.encodings import Answer, Encoding, choose
from openenv_gym.errors import SettingsError
from openenv_gym.interface import Interface, SpaceOverrides
from openenv_gym.json_text import JSON
from openenv_gym.production_shell import ProductionShell, refuse
from openenv_gym.shell import Shell
from openenv_gym.transports.base import ConnectionSettings

__all__ = [
    "ProductionAnswer",
    "ProductionEncoding",
    "ProductionInterface",
    "encoding_of",
    "interface_of",
    "require_tools_alone",
]

_CALLS: Mapping[str, Any] = {
    "action": {
        "type": "object",
        "properties": {
            "type": {"const": "call_tool"},
            "tool_name": {"type": "string"},
            "arguments": {"type": "object"},
        },
        "required": ["tool_name", "arguments"],
    },
    "observation": {"type": "object", "properties": {"tool_name": {"type": "string"}, "result": {}, "error": {}}},
}
"""What an agent's actions and observations look like on every server."""


class ProductionInterface(Interface):
    """The Spaces of calls of tools, which are the same on every server; asks nobody for a schema.

    Args:
        overrides: what the caller decides instead.
        settings: how to ask the server which environment it serves, where the caller wants a certain one.
    """

    def __init__(self, overrides: SpaceOverrides, settings: ConnectionSettings) -> None:
        super().__init__(_CALLS, {"name": "environment with tools"}, overrides)
        self._settings = settings

    @override
    def speaking(self, overrides: SpaceOverrides) -> Interface:
        return ProductionInterface(overrides, self._settings)

    @override
    def check_env_id(self, env_id: str | None, base_url: str) -> None:
        if env_id is None:
            return
        # Here and not at the top: HTTP is heavy, and this is seldom needed.
        from openenv_gym.transports.http import fetch_json  # noqa: PLC0415

        description = fetch_json(base_url, "/metadata", self._settings)
        served = Interface(_CALLS, description if isinstance(description, dict) else {}, SpaceOverrides())
        served.check_env_id(env_id, base_url)

    @override
    def check_render_mode(self, render_mode: str | None) -> None:
        if render_mode is not None:
            raise _needs_simulation("render_mode", render_mode)

    @override
    def reset_options(self, options: Mapping[str, Any]) -> dict[str, JSON]:
        if options:
            refuse(f"options {sorted(map(str, options))} cannot be given to reset")
        return {}

    @property
    def first_observation(self) -> Any:
        """What a reset gives, of which the server says nothing: the empty text, or a call that has not been made."""
        space = self.observation_space
        if isinstance(space, Text) and "" in space:
            return ""
        return self.decode_observation({"tool_name": "", "result": None, "error": None})


def require_tools_alone(render_mode: str | None, env_kwargs: Mapping[str, Any] | None, binary: bool | None) -> None:
    """Make sure that nothing is asked for that production has not.

    Raises:
        SettingsError: it is; ``setting`` says what.
    """
    for setting, value in (("render_mode", render_mode), ("env_kwargs", env_kwargs), ("binary", binary)):
        if value:
            raise _needs_simulation(setting, value)


def _needs_simulation(setting: str, value: object) -> SettingsError:
    return SettingsError(
        f"{setting}={value!r} needs mode='simulation': in production the server alone makes its environments, and an "
        "agent has their tools alone. Its operator says how they are made: openenv-gym serve … --env-kwarg, --seed",
        setting=setting,
    )


class ProductionAnswer(Answer):
    """What came of a call, or of a reset; production tells neither reward nor end."""

    __slots__ = ("_decode", "_fields", "_info", "_notes")

    def __init__(
        self,
        decode: Callable[[dict[str, Any]], Any],
        fields: dict[str, Any],
        info: dict[str, Any],
        notes: list[str],
    ) -> None:
        self._decode = decode
        self._fields = fields
        self._info = info
        self._notes = notes

    @property
    @override
    def observation(self) -> Any:
        return self._decode(self._fields)

    @property
    @override
    def reward(self) -> float:
        return 0.0

    @property
    @override
    def flags(self) -> tuple[bool, bool]:
        return False, False

    @property
    @override
    def info(self) -> dict[str, Any]:
        return self._info

    @property
    @override
    def notes(self) -> list[str]:
        return self._notes

    @property
    @override
    def outcome(self) -> messages.Outcome:
        return messages.Outcome(observation=self._fields)


class ProductionEncoding(Encoding):
    """Resets as new sessions, steps as calls of tools.

    Args:
        shell: the session.
        interface: the Spaces and their JSON.
    """

    __slots__ = ("_interface", "_shell")

    def __init__(self, shell: ProductionShell, interface: ProductionInterface) -> None:
        self._shell = shell
        self._interface = interface

    @override
    def reset(self, data: Mapping[str, Any], timeout_s: float | None) -> Answer:
        self._shell.begin()
        info = {"tools": copy.deepcopy(self._shell.tools)}
        notes = self._shell.notes_of(data)
        return ProductionAnswer(lambda _: self._interface.first_observation, {}, info, notes)

    @override
    def step(self, action: Any, timeout_s: float | None) -> Answer:
        fields = self._interface.encode_action(action)
        name, arguments = fields.get("tool_name"), fields.get("arguments", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            refuse(f"an action that is no call of a tool does not exist ({str(fields)[:100]})")
        answer = self._shell.call(name, arguments)
        info = {} if answer["error"] is None else {"tool_error": answer["error"]}
        return ProductionAnswer(self._interface.decode_observation, answer, info, [])


def interface_of(shell: Shell | ProductionShell, overrides: SpaceOverrides) -> Interface:
    """What the environment of an open session looks like.

    Raises:
        UnreachableError: the server does not say.
        SpaceMappingError: its schema has no Space.
    """
    if isinstance(shell, ProductionShell):
        return ProductionInterface(overrides, shell.settings)
    return Interface.of(shell.opened, shell.base_url, shell.settings, overrides)


def encoding_of(shell: Shell | ProductionShell, interface: Interface, binary: bool | None) -> Encoding:
    """The encoding of an open session.

    Raises:
        SettingsError: binary frames are asked for where there are none.
    """
    if isinstance(shell, ProductionShell):
        assert isinstance(interface, ProductionInterface)
        return ProductionEncoding(shell, interface)
    return choose(shell, interface, binary)
