"""``RemoteEnv``: an OpenEnv server as a ``gymnasium.Env``.

It turns Gymnasium's calls into requests and the answers into Gymnasium's tuples. What the server's environment looks
like (Spaces, render modes) is ``interface.py``; the session is ``shell.py``; where an address comes from is
``providers/``.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import EzPickle

from openenv_gym import messages
from openenv_gym.encodings import Answer, choose
from openenv_gym.errors import (
    SessionLostError,
    SessionStateError,
    SettingsError,
    SpaceMappingError,
    ValueMappingError,
)
from openenv_gym.exact import exact_call
from openenv_gym.info import decode_exact, encode_exact
from openenv_gym.interface import Interface, SpaceOverrides
from openenv_gym.keywords import split_keywords
from openenv_gym.providers.base import Provider
from openenv_gym.providers.leasing import lease_server
from openenv_gym.shell import Shell
from openenv_gym.transition import SeedWatch, warn_caller
from openenv_gym.viewer import FrameViewer

__all__ = ["RemoteEnv"]

_OWN_KEYWORDS = ("base_url", "provider", "target", "env_id", "env_kwargs", "render_mode")


class RemoteEnv(gymnasium.Env[Any, Any], EzPickle):
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
        **settings: fields of ``ConnectionSettings`` (timeouts in seconds, headers, TLS, proxy, limits) and of
            ``SpaceOverrides`` (``action_space``, ``observation_space``, ``encode_action``, ``decode_observation``,
            ``flatten``, ``binary``).

    Raises:
        SettingsError: the arguments name no server, or contradict each other or the server.
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
            **settings,
        )
        if env_id is not None and not isinstance(env_id, str):
            raise SettingsError(
                f"expected env_id to be a string such as 'CartPole-v1', got {env_id!r}; a class or a function is "
                "served with openenv_gym_server.create_gym_app and reached by its base_url",
                setting="env_id",
            )
        overrides, self._connection = split_keywords(settings, _OWN_KEYWORDS)
        self.render_mode = render_mode
        self._spec: EnvSpec | None = None
        self._viewer: FrameViewer | None = None
        self._binary = overrides.binary
        self._last_answer: Answer | None = None
        self._seeds = SeedWatch()
        self._steps = 0
        self._closed = False
        if target is not None and env_id is not None:
            raise SettingsError(f"expected target or env_id, got both: {target!r} and {env_id!r}", setting="env_id")
        self._lease = lease_server(base_url, provider, target or env_id)
        try:
            self._shell = Shell(
                self._lease.base_url,
                self._connection.with_headers(self._lease.headers),
                messages.OpenSettings(
                    render_mode="rgb_array" if render_mode == "human" else render_mode,
                    env_kwargs={name: encode_exact(value) for name, value in (env_kwargs or {}).items()},
                ),
            )
            self._shell.open()
        except BaseException:
            self._lease.release()
            raise
        try:
            self._describe(overrides, env_id, env_kwargs)
        except BaseException:
            self.close()
            raise

    def _describe(self, overrides: SpaceOverrides, env_id: str | None, env_kwargs: Mapping[str, Any] | None) -> None:
        """Learn the Spaces and the render modes, and check that the server does what was asked for."""
        opened = self._shell.opened
        if opened is None and env_kwargs:
            raise SettingsError(
                f"env_kwargs {sorted(env_kwargs)} need a server that speaks {messages.SUBPROTOCOL}; "
                f"{self.base_url} does not: set them where it is started",
                setting="env_kwargs",
            )
        self._interface = Interface.of(opened, self._shell.base_url, self._shell.settings, overrides)
        if not self._lease.embedded:
            self._interface.check_env_id(env_id, self.base_url)
        self._interface.check_render_mode(self.render_mode)
        self._encoding = choose(self._shell, self._interface, self._binary)
        self.action_space = self._interface.action_space
        self.observation_space = self._interface.observation_space
        self.metadata = self._interface.metadata

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
        if seed is not None and not self._shell.session.extended:
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
        self._encoding = choose(self._shell, self._interface, self._binary)

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

    def state(self) -> dict[str, Any]:
        """The server's state of this session: ``episode_id``, ``step_count`` and what the environment adds.

        Raises:
            SessionLostError: the session is lost; call ``reset()``.
        """
        self._require_open()
        reply = self._shell.request(messages.State, self._connection.step_timeout_s)
        assert isinstance(reply, messages.StateReply)
        return reply.data

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the remote environment; the server must allow its name.

        Raises:
            InvalidActionError: the server does not allow the name.
            EnvironmentExecutionError: the method raised.
        """
        self._require_open()
        data = exact_call(name, args, kwargs)
        reply = self._shell.request(messages.Call, self._connection.step_timeout_s, data=data)
        assert isinstance(reply, messages.CallReply)
        return decode_exact(reply.data.value)

    def get_attr(self, name: str) -> Any:
        """Read an attribute of the remote environment; the server must allow its name.

        Raises:
            InvalidActionError: the server does not allow the name.
        """
        self._require_open()
        data = messages.AttributeSettings(name=name)
        reply = self._shell.request(messages.GetAttr, self._connection.step_timeout_s, data=data)
        assert isinstance(reply, messages.GetAttrReply)
        return decode_exact(reply.data.value)

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
