"""``RemoteEnv``: an OpenEnv server as a ``gymnasium.Env``.

It turns Gymnasium's calls into requests and the answers into Gymnasium's tuples. What the server's environment looks
like (Spaces, render modes) is ``interface.py``; the session is ``shell.py``; where an address comes from is
``providers/``.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import EzPickle

from openenv_gym import messages
from openenv_gym.encodings import Answer
from openenv_gym.errors import (
    SessionLostError,
    SessionStateError,
    SettingsError,
    SpaceMappingError,
    ValueMappingError,
)
from openenv_gym.info import decode_exact, encode_exact
from openenv_gym.interface import Interface, SpaceOverrides
from openenv_gym.keywords import split_keywords
from openenv_gym.modes import Mode, read_mode
from openenv_gym.production_env import encoding_of, interface_of, require_tools_alone
from openenv_gym.production_shell import ProductionShell
from openenv_gym.providers.base import Lease, Provider
from openenv_gym.providers.leasing import lease_server, target_of
from openenv_gym.remote_access import RemoteAccess
from openenv_gym.shell import Shell
from openenv_gym.tool_catalogue import listed
from openenv_gym.transition import SeedWatch, warn_caller
from openenv_gym.viewer import FrameViewer

__all__ = ["RemoteEnv"]

_OWN_KEYWORDS = ("base_url", "provider", "target", "env_id", "env_kwargs", "render_mode", "mode")


class RemoteEnv(gymnasium.Env[Any, Any], RemoteAccess, EzPickle):
    """An environment that runs behind an OpenEnv server, stepped as if it were here.

    Spaces come from the session's own schema: exact where the server annotates it (this project's servers), else
    derived from the JSON Schema alone. ``terminated`` and ``truncated`` are the server's two flags; a server that
    knows only ``done`` has it taken for ``terminated``, unless its metadata says truncated. A reward the server
    leaves out is 0.0. ``info`` is what the environment said; everything else of the answer is in ``last_result``.

    After a timeout or a lost connection every call raises ``SessionLostError`` until ``reset()``, which opens a new
    session.

    Args:
        base_url: the server's address, e.g. ``"https://host/prefix"``. None: ``provider`` or ``target`` gives one.
        provider: a description of a server to start; it is copied, and the copy is stopped at ``close()``.
        target: what an embedded server on this machine serves, as ``openenv-gym serve`` takes it. The process is
            shared by all environments of this Python process with the same target, and gone when the last is closed.
        env_id: a Gymnasium id (``"module:namespace/Name-v0"`` imports the module there). Without an address it is
            the target; with one, the server must serve it.
        env_kwargs: keyword arguments for the environment's making; a remote server must allow their names.
        render_mode: a mode of the served environment ("rgb_array", "ansi" …), or "human", which shows the remote
            "rgb_array" frames in a local window. ``gymnasium.make`` collects the ``_list`` modes on this side.
        mode: "simulation" or "production" in any letter case; None: OPENENV_CLIENT_MODE, else simulation. In production
            a reset opens a fresh session, whose episode the server begins, and gives the empty observation and the
            tools in ``info["tools"]``; a step calls a tool; the reward is 0.0 and no episode ends.
        **settings: fields of ``ConnectionSettings`` (timeouts in seconds, headers, TLS, proxy, limits) and of
            ``SpaceOverrides`` (``action_space``, ``observation_space``, ``encode_action``, ``decode_observation``,
            ``flatten``, ``binary``).

    Raises:
        SettingsError: the arguments name no server, or contradict each other, the server or the mode.
        UnreachableError: no OpenEnv server answered.
        SpaceMappingError: the server's schema has no Space.
        ServerError: the server could not make the environment.

    Example:
        >>> import gymnasium, openenv_gym
        >>> env = gymnasium.make("openenv/gym-v0", env_id="CartPole-v1")
        >>> obs, info = env.reset(seed=0)
        >>> obs.dtype, obs.shape
        (dtype('float32'), (4,))
        >>> env.close()
    """

    # What may be asked for: every mode of Gymnasium's own environments but the lists, so that make() passes it on as it
    # is and collects lists on this side. What an environment offers, its instance's metadata says.
    metadata: dict[str, Any] = {  # noqa: RUF012  (Gymnasium declares it so: a default that instances replace)
        "render_modes": ["human", "rgb_array", "ansi", "depth_array", "rgbd_tuple", "state_pixels"],
    }

    def __init__(
        self,
        base_url: str | None = None,
        *,
        provider: Provider | None = None,
        target: str | None = None,
        env_id: str | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        render_mode: str | None = None,
        mode: str | None = None,
        **settings: Any,
    ) -> None:
        EzPickle.__init__(
            self,
            base_url,
            provider=provider,
            target=target,
            env_id=env_id,
            env_kwargs=env_kwargs,
            render_mode=render_mode,
            mode=mode,
            **settings,
        )
        self._target = target_of(target, env_id)
        self._overrides, self._connection = split_keywords(settings, _OWN_KEYWORDS)
        self.render_mode = render_mode
        self._env_id, self._env_kwargs = env_id, env_kwargs
        self._mode = self._playable(mode)
        self._spec: EnvSpec | None = None
        self._viewer: FrameViewer | None = None
        self._last_answer: Answer | None = None
        self._seeds = SeedWatch()
        self._steps = 0
        self._closed = False
        self._lease = lease_server(base_url, provider, self._target, self._mode)
        try:
            self._shell = self._open(self._mode, self._lease)
        except BaseException:
            self._lease.release()
            raise
        self._learn()

    def _playable(self, mode: str | None) -> Mode:
        wanted = read_mode(mode)
        if wanted == "production":
            require_tools_alone(self.render_mode, self._env_kwargs, self._overrides.binary)
        return wanted

    def _open(self, mode: Mode, lease: Lease) -> Shell | ProductionShell:
        """A session in that mode."""
        base_url, settings = lease.base_url, self._connection.with_headers(lease.headers)
        shell: Shell | ProductionShell
        if mode == "production":
            shell = ProductionShell(base_url, settings)
        else:
            env_kwargs = {name: encode_exact(value) for name, value in (self._env_kwargs or {}).items()}
            render_mode = "rgb_array" if self.render_mode == "human" else self.render_mode
            opening = messages.OpenSettings(render_mode=render_mode, env_kwargs=env_kwargs)
            shell = Shell(base_url, settings, opening)
        shell.open()
        return shell

    def _learn(self) -> None:
        try:
            self._describe(self._overrides, self._env_id, self._env_kwargs)
        except BaseException:
            self.close()
            raise

    def _describe(self, overrides: SpaceOverrides, env_id: str | None, env_kwargs: Mapping[str, Any] | None) -> None:
        """Learn the Spaces and the render modes, and check that the server does what was asked for."""
        if self._shell.opened is None and env_kwargs:
            raise SettingsError(
                f"env_kwargs {sorted(env_kwargs)} need a server that speaks {messages.SUBPROTOCOL}; "
                f"{self.base_url} does not: set them where it is started",
                setting="env_kwargs",
            )
        interface = interface_of(self._shell, overrides)
        if not self._lease.embedded:
            interface.check_env_id(env_id, self.base_url)
        interface.check_render_mode(self.render_mode)
        self._adopt(interface)

    def _adopt(self, interface: Interface) -> None:
        self._encoding = encoding_of(self._shell, interface, self._overrides.binary)
        self._interface = interface
        self.action_space = interface.action_space
        self.observation_space = interface.observation_space
        self.metadata = interface.metadata

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, in a new session if the last one was lost.

        Args:
            seed: seeds the environment and ``np_random``; later resets without one continue the environment's own
                generator.
            options: a Gymnasium server gets them as its ``options``, any other its entries as keyword arguments of
                reset.

        Returns:
            The first observation, a member of ``observation_space``, and the info.

        Raises:
            SessionStateError: the environment is closed.
            RequestTimeoutError: no answer within ``reset_timeout_s``.
            ServerError: the server refused the request or its environment raised.
        """
        self._require_open()
        super().reset(seed=seed)
        if not self._shell.alive:
            self._reopen()
        data: dict[str, Any] = {}
        if options is not None:
            data = self._interface.reset_options(options)
        if seed is not None:
            data["seed"] = int(seed)
        self._steps = 0
        try:
            answer = self._encoding.reset(data, self._connection.reset_timeout_s)
        except SessionLostError:
            # The connection ended unnoticed since the last call. A reset asks for a fresh episode, so a fresh session
            # will do; if that is lost too, there is more to it.
            self._reopen()
            answer = self._encoding.reset(data, self._connection.reset_timeout_s)
        self._last_answer = answer
        if seed is not None and isinstance(self._shell, Shell) and not self._shell.session.extended:
            self._seeds.note(int(seed), answer.outcome.observation, self.base_url)
        self._warn(answer)
        observation = self._decode(answer)
        self._show()
        return observation, answer.info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one action.

        Args:
            action: a member of ``action_space``.

        Returns:
            observation, reward (a Python float), terminated, truncated (Python bools), info.

        Raises:
            ValueMappingError: the action has no JSON form under the Space; nothing was sent.
            InvalidActionError: the server refused the action; the environment is as it was.
            EnvironmentExecutionError: the environment raised.
            RequestTimeoutError: no answer within ``step_timeout_s``; the session is lost.
            SessionLostError: the session is lost; call ``reset()``.
        """
        self._require_open()
        answer = self._encoding.step(action, self._connection.step_timeout_s)
        self._last_answer = answer
        self._steps += 1
        self._warn(answer)
        observation = self._decode(answer)
        terminated, truncated = answer.flags
        self._show()
        return observation, answer.reward, terminated, truncated, answer.info

    def _reopen(self) -> None:
        """A new session; the Spaces that the caller has built on must still be the server's."""
        base_url = self._lease.renew()
        self._shell.reopen(base_url, self._connection.with_headers(self._lease.headers))
        if not self._interface.describes(self._shell.opened):
            self._shell.abandon("the server now serves another environment")
            raise SpaceMappingError(
                f"expected {base_url} to serve the environment of the lost session, but it serves another: "
                "make a new one",
                path="$",
            )
        self._encoding = encoding_of(self._shell, self._interface, self._overrides.binary)

    def _decode(self, answer: Answer) -> Any:
        try:
            return answer.observation
        except ValueMappingError as error:
            raise ValueMappingError(
                f"the observation of {'reset' if not self._steps else f'step {self._steps}'} does not fit: {error}; "
                "observation_space and decode_observation say how to read what a schema does not describe",
                path=error.path,
            ) from error

    def _warn(self, answer: Answer) -> None:
        warn_caller(*(f"{self.base_url}: {note}" for note in answer.notes))

    def render(self) -> Any:
        """The remote environment's rendering.

        Returns:
            "rgb_array": an array of shape (height, width, 3), dtype uint8; "ansi": a string; a ``_list`` mode: the
            frames since the last call; "human" and no mode at all: None.

        Raises:
            EnvironmentExecutionError: the environment raised.
        """
        self._require_open()
        if self.render_mode is None:
            gymnasium.logger.warn(
                "You are calling render method without specifying any render mode. You can specify the render_mode at "
                'initialization, e.g. gym.make("openenv/gym-v0", env_id=…, render_mode="rgb_array")'
            )
            return None
        return None if self.render_mode == "human" else self._frame()

    def _frame(self) -> Any:
        reply = self._shell.request(messages.Render, self._connection.step_timeout_s)
        assert isinstance(reply, messages.RenderReply)
        return decode_exact(reply.data.value)

    def _show(self) -> None:
        if self.render_mode != "human":
            return
        if self._viewer is None:
            self._viewer = FrameViewer(self._interface.name, float(self.metadata.get("render_fps") or 30))
        self._viewer.show(np.asarray(self._frame()))

    def _ask(self, kind: type[messages.Message], **fields: Any) -> messages.Reply:
        self._require_open()
        return self._shell.request(kind, self._connection.step_timeout_s, **fields)

    @property
    def mode(self) -> Mode:
        """Whose the session is: a trainer's ("simulation") or an agent's ("production")."""
        return self._mode

    def set_mode(self, mode: str) -> None:
        """Play in that mode; unless it is the present one, close the session and open another by the same address.

        Raises:
            SettingsError: there is no such mode, or it has not what the environment was made with. Nothing is changed.
            UnreachableError, ServerError: no session is to be had in it; ``reset()`` opens one in the old.
        """
        self._require_open()
        wanted = self._playable(mode)
        if wanted == self._mode:
            return
        self._shell.close()
        lease = self._lease
        # An embedded server is no one's address but ours, and to change its mode is to start another.
        other = lease_server(None, None, self._target, wanted) if lease.embedded else lease
        try:
            self._shell, self._lease, self._mode = self._open(wanted, other), other, wanted
        finally:
            if other is not lease:
                (lease if self._lease is other else other).release()
        self._learn()

    def list_tools(self) -> list[dict[str, Any]]:
        """The tools of the environment, each ``{"name", "description", "input_schema"}``.

        In simulation it is a step that does not count, after a reset where none has been.

        Raises:
            SettingsError: the environment has no tools.
        """
        self._require_open()
        return listed(self._shell) if isinstance(self._shell, Shell) else copy.deepcopy(self._shell.tools)

    def speak(self, overrides: SpaceOverrides) -> None:
        """Take actions and give observations in other Spaces; for wrappers that know the server's JSON."""
        self._require_open()
        before, self._overrides = self._overrides, overrides
        try:
            self._adopt(self._interface.speaking(overrides))
        except BaseException:
            self._overrides = before
            raise

    @property
    def spec(self) -> EnvSpec | None:
        """The spec that ``gymnasium.make`` gave, with what the server knows: threshold, time limit, determinism."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        self._spec = None if spec is None else dataclasses.replace(spec, **self._interface.spec_fields)

    @property
    def last_result(self) -> messages.Outcome | None:
        """The whole last answer to reset or step as it was on the wire: observation, reward, done, metadata."""
        return None if self._last_answer is None else self._last_answer.outcome

    @property
    def base_url(self) -> str:
        """The server's address."""
        return self._lease.base_url

    def _require_open(self) -> None:
        if self._closed:
            raise SessionStateError(
                "expected an open environment, but it was closed; make a new one", expected="open", state="closed"
            )

    def close(self) -> None:
        """End the session, and with its last user the embedded or provided server. May be called again."""
        # Each of these may be repeated, so that a close that was interrupted can be finished by another.
        self._closed = True
        with contextlib.ExitStack() as stack:
            stack.callback(self._lease.release)
            stack.callback(self._shell.close)
            if self._viewer is not None:
                stack.callback(self._viewer.close)
