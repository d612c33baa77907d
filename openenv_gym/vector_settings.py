"""The keywords of a vector environment, checked, and the servers that they mean.

Not for opening sessions there (``vector_opening.py``).
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from gymnasium.vector import AutoresetMode

from openenv_gym import messages
from openenv_gym.errors import SettingsError
from openenv_gym.info import encode_exact
from openenv_gym.interface import Interface, SpaceOverrides
from openenv_gym.keywords import split_keywords
from openenv_gym.modes import Mode, mode_of_vector
from openenv_gym.providers.base import Lease, Provider
from openenv_gym.providers.leasing import lease_server, target_of
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.vector_opening import Server, VectorPlan, find_servers, open_sessions
from openenv_gym.vector_rollout import EnvSession

__all__ = ["Sources", "VectorSettings"]

_VECTORIZATIONS = ("sync", "async", "threads", "vector_entry_point")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class VectorSettings:
    """What a vector environment was asked to be; the fields are ``RemoteVectorEnv``'s own arguments.

    Raises:
        SettingsError: an argument that cannot be, or two that contradict each other.
    """

    num_envs: int
    base_url: str | Sequence[str] | None
    provider: Provider | None
    target: str | None
    env_id: str | None
    env_kwargs: Mapping[str, Any] | None
    render_mode: str | None
    autoreset_mode: AutoresetMode
    vectorization: Literal["sync", "async", "threads", "vector_entry_point"] | None
    envs_per_session: int | None
    max_episode_steps: int | None
    copy: bool
    binary: bool
    mode: Mode
    overrides: SpaceOverrides
    connection: ConnectionSettings

    @classmethod
    def of(cls, num_envs: int, own: Mapping[str, Any], others: Mapping[str, Any]) -> VectorSettings:
        """From the arguments as they were given.

        Args:
            num_envs: how many environments.
            own: ``RemoteVectorEnv``'s own keywords.
            others: those of ``ConnectionSettings`` and ``SpaceOverrides``.

        Raises:
            SettingsError: as the class; a keyword is nobody's.
            ModeError: the mode is production.
        """
        overrides, connection = split_keywords(others, ("num_envs", *own))
        modes = {"autoreset_mode": _autoreset_mode(own["autoreset_mode"]), "mode": mode_of_vector(own["mode"])}
        given = {**own, **modes}
        return cls(num_envs=num_envs, **given, overrides=overrides, connection=connection)

    def __post_init__(self) -> None:
        for name, optional in (("num_envs", False), ("envs_per_session", True), ("max_episode_steps", True)):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            if not (whole or (optional and value is None)):
                raise SettingsError(f"expected {name} to be an integer of 1 or more, got {value!r}", setting=name)
        target_of(self.target, self.env_id)
        if self.vectorization is not None and self.vectorization not in _VECTORIZATIONS:
            raise SettingsError(
                f"expected vectorization to be one of {_VECTORIZATIONS}, got {self.vectorization!r}",
                setting="vectorization",
            )
        if self.render_mode == "human":
            raise SettingsError(
                'expected a render_mode that gives values, such as "rgb_array", got "human": a window an environment '
                "is no use; make a single environment to watch",
                setting="render_mode",
            )

    @property
    def addresses(self) -> list[str]:
        """The addresses that were named.

        Raises:
            SettingsError: an empty list of them, or one beside a provider.
        """
        if self.base_url is None:
            return []
        addresses = [self.base_url] if isinstance(self.base_url, str) else list(self.base_url)
        if not addresses:
            raise SettingsError("expected base_url to be an address or several, got an empty list", setting="base_url")
        return addresses

    def plan(self) -> VectorPlan:
        """What is to be opened."""
        return VectorPlan(
            num_envs=self.num_envs,
            envs_per_session=self.envs_per_session,
            autoreset_mode=self.autoreset_mode,
            open_settings=messages.OpenSettings(
                autoreset_mode=self.autoreset_mode.value,
                vectorization=self.vectorization,
                max_episode_steps=self.max_episode_steps,
                render_mode=self.render_mode,
                env_kwargs={name: encode_exact(value) for name, value in (self.env_kwargs or {}).items()},
            ),
            overrides=self.overrides,
            binary=self.binary,
        )


def _autoreset_mode(value: object) -> AutoresetMode:
    try:
        return AutoresetMode(value)
    except ValueError:
        raise SettingsError(
            f"expected autoreset_mode to be one of {[mode.value for mode in AutoresetMode]}, got {value!r}",
            setting="autoreset_mode",
        ) from None


class Sources:
    """The servers' addresses, for as long as they are used.

    Args:
        settings: which; a provider or an embedded server is started at once.

    Raises:
        SettingsError: none is named, or more than one kind.
        ProviderError: a server could not be started.
    """

    def __init__(self, settings: VectorSettings) -> None:
        self._settings = settings
        self._leases: list[Lease] = []
        target = target_of(settings.target, settings.env_id)
        named: Sequence[str | None] = settings.addresses or (None,)
        for address in named:
            self._leases.append(lease_server(address, settings.provider, target))

    @property
    def embedded(self) -> bool:
        """Whether the server is an embedded one, so that what it serves is known."""
        return self._leases[0].embedded

    def open(self, check: Callable[[Interface, str], None]) -> tuple[list[EnvSession], Interface]:
        """Open all sessions, or none; an embedded server that died is started again.

        Args:
            check: raises where the interface of the server at an address is not what is wanted.

        Raises:
            OpenEnvGymError: as ``vector_opening.open_sessions``.
        """
        servers = [
            Server(lease.renew(), self._settings.connection.with_headers(lease.headers)) for lease in self._leases
        ]
        if not self.embedded:
            servers = find_servers(servers)
        return open_sessions(servers, self._settings.plan(), lambda face, server: check(face, server.base_url))

    def release(self) -> None:
        """Give the addresses back. May be called again."""
        with contextlib.ExitStack() as stack:
            for lease in self._leases:
                stack.callback(lease.release)
