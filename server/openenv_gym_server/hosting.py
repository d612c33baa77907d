"""One environment as its server knows it: its methods by what they take, its codec, its episode.

Everything here runs on the session's worker thread (or, for an ``INLINE`` environment's steps, on the event loop). It
knows Python objects and plain JSON, no frames and no HTTP: ``dispatch.py`` does.
"""

from __future__ import annotations

import dataclasses
import inspect
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import msgspec
from pydantic import BaseModel

from openenv_gym.errors import EnvironmentExecutionError, OpenEnvGymError
from openenv_gym.json_text import JSONObject
from openenv_gym.messages import Outcome
from openenv_gym.tools import CallToolAction, ListToolsAction
from openenv_gym.transition import NOTES_KEY
from openenv_gym.types import ServerMode
from openenv_gym_server.codec import Codec
from openenv_gym_server.environment import default_metadata
from openenv_gym_server.errors import (
    encoding,
    fault,
    invalid_message,
    raise_as_environments,
    raise_as_unsendable,
    rejected,
    user_code,
)
from openenv_gym_server.factories import Method, is_async
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.models import Models, codec_by_models
from openenv_gym_server.notes import Notes, quoted
from openenv_gym_server.plain import plain_json
from openenv_gym_server.remote_target import RemoteTarget
from openenv_gym_server.reports import report
from openenv_gym_server.space_codec import SpaceCodec
from openenv_gym_server.tool_codec import ToolCodec, called_tool
from openenv_gym_server.tool_results import timed_out
from openenv_gym_server.tool_waiting import run_now

__all__ = ["HostedEnvironment"]

WaitFor = Callable[[Awaitable[Any]], Any]


class HostedEnvironment:
    """An environment and everything its server adds: counting, naming episodes, filtering keywords, notes.

    Args:
        env: the environment, or anything with ``reset`` and ``step``.
        models: the classes of its objects, unless it has a codec of its own.
        wait_for: gives what an awaitable gives, on the environment's own event loop.
        mode: the server's mode, which an environment with tools is told.

    Attributes:
        env: the environment.
        codec: how its objects become JSON.
        finite: whether its codec says that no answer need be searched for a NaN or an infinity.
        asynchronous: whether it has anything to await.
        mode: the server's mode; ``production``: whether that is production.
        opening: keywords of the reset that the server makes itself; None where a client makes it.
        over: whether a call of a tool has ended the episode.
        offers_tools: whether a step may list and call tools: those of an ``MCPEnvironment``; of any environment whose
            ``has_tools`` is True and whose codec reads and writes such steps; of one whose actions are calls of tools.
        binary: whether resets and steps may be binary frames, which need the Spaces of a Gymnasium environment.
        steps: steps of the current episode; ``total_steps``: since it was made.
    """

    failed = False  # an environment that raises may go on; a vector of them does not

    def __init__(self, env: Any, models: Models, wait_for: WaitFor, mode: str = ServerMode.SIMULATION.value) -> None:
        self.env = env
        self.mode = mode
        self.production = mode == ServerMode.PRODUCTION
        self.opening: JSONObject | None = None
        self.over = False
        self.asynchronous = is_async(env)
        self._tools = env.tool_caller if isinstance(env, MCPEnvironment) else None
        if self._tools is not None:
            self._tools.mode, self._tools.wait_for = mode, wait_for
            self.asynchronous |= self._tools.awaits
        self.episode_id: str | None = None
        self.steps = 0
        self.total_steps = 0
        self.wait_for = wait_for
        self._notes = Notes()
        self._reset = Method(env, "reset")
        self._step = Method(env, "step")
        # Of a call, MCPEnvironment's own step passes nothing else on; a step of an author's may.
        plain_calls = getattr(self._step.call, "__func__", None) is MCPEnvironment.step
        self._calls_take = {"timeout_s"}.__contains__ if plain_calls else self._step.takes
        self._settled_kind: type[Any] | None = None
        own = getattr(env, "codec", None)
        is_codec = hasattr(own, "encode_observation")
        self.codec: Codec = cast("Codec", own) if is_codec else codec_by_models(env, models)
        self.offers_tools = (
            self._tools is not None or isinstance(self.codec, ToolCodec) or getattr(env, "has_tools", False) is True
        )
        self.finite = bool(getattr(self.codec, "finite", False))
        self.binary = isinstance(self.codec, SpaceCodec)

    @property
    def environment_type(self) -> str:
        """The name of the environment's class."""
        return type(self.env).__name__

    @property
    def inline(self) -> bool:
        """Whether its steps may run on the event loop."""
        env = self.env
        bound = self.asynchronous or getattr(env, "REQUIRES_SINGLE_THREAD_EXECUTOR", False)
        return bool(getattr(env, "INLINE", False)) and not bound

    def go_on(self, earlier: HostedEnvironment) -> None:
        """Go on with the episode in which another session left the same environment."""
        self.episode_id, self.steps, self.over = earlier.episode_id, earlier.steps, earlier.over

    # ------------------------------------------------------------------------------------------- an episode

    def reset(self, keywords: JSONObject) -> Outcome:
        """Begin an episode with those of the keywords that reset takes.

        Raises:
            EnvironmentExecutionError: the environment raised, or its observation cannot be sent.
        """
        return self.outcome(self.begin(keywords))

    def begin(self, keywords: JSONObject) -> object:
        """Begin an episode, as ``reset``; the first observation as the environment gave it.

        Raises:
            EnvironmentExecutionError: the environment raised.
        """
        accepted = self._accepted(self._reset, keywords, self._reset.takes)
        with user_code:
            observation = self._settled(self._reset.call(**accepted))
        episode_id = keywords.get("episode_id")
        self.episode_id = episode_id if isinstance(episode_id, str) else str(uuid.uuid4())
        self.steps, self.over = 0, False
        return observation

    def step(self, data: JSONObject, keywords: JSONObject | None = None) -> Outcome:
        """Take the action in ``data``.

        Raises:
            InvalidActionError: the action is refused; the environment has not seen it.
            EnvironmentExecutionError: the environment raised, or its observation cannot be sent.
        """
        return self.outcome(self.act(self.decoded(data), keywords))

    def act(self, action: object, keywords: JSONObject | None = None) -> object:
        """Take a decoded action; the observation as the environment gave it.

        Raises:
            EnvironmentExecutionError: the environment raised.
        """
        if self._tools is not None:
            self._tools.mode = self.mode  # a lent instance may be another application's too, of another mode
        try:
            if keywords:
                is_tool_action = isinstance(action, CallToolAction | ListToolsAction)
                takes = self._calls_take if is_tool_action else self._step.takes
                observation = self._step.call(action, **self._accepted(self._step, keywords, takes))
            else:
                observation = self._step.call(action)
            if type(observation) is not self._settled_kind:
                observation = self._settled(observation)
        except BaseException as error:  # noqa: BLE001 - an environment may raise anything; all of it is its own error
            raise_as_environments(error)
        if not isinstance(action, ListToolsAction):
            self.counted()
        return observation

    def counted(self) -> None:
        """One more step was taken."""
        self.steps += 1
        self.total_steps += 1

    @property
    def limits_tools(self) -> bool:
        """Whether steps may be calls of tools that have limits of their own."""
        return self._tools is not None

    def called_tool(self, data: JSONObject) -> str | None:
        """The tool that an action calls; None where it calls none, or this environment has none."""
        if self._tools is None:
            return None
        return self.codec.called_tool(data) if isinstance(self.codec, ToolCodec) else called_tool(data)

    def tool_timeout_s(self, name: str, timeout_s: float | None = None) -> float | None:
        """Seconds that a call of the tool may take; None for ever."""
        asked = timeout_s if self.offers_tools else None
        return asked if self._tools is None else self._tools.limit_s(name, timeout_s)

    def timed_out(self, name: str, seconds: float, *, begun: bool) -> Outcome:
        """What is said of a call that has not ended in time, while it may still run on the environment's thread."""
        return self.codec.encode_observation(timed_out(name, seconds, begun=begun))

    def give_up(self, name: str, seconds: float) -> Outcome | None:
        """What is said of the running call once nobody waits for it, with the reward that ``after_tool`` gives it.

        On another thread than the environment's, which the tool still has. None where no call runs any more, or the
        environment may be used on its own thread alone.
        """
        if self._tools is None or getattr(self.env, "REQUIRES_SINGLE_THREAD_EXECUTOR", False):
            return None
        action = self._tools.running.give_up()
        if action is None or self._tools.runs_code(action.tool_name):
            return None
        # Of code that called a tool which does not return, it is that tool.
        observation = timed_out(action.tool_name, seconds)
        try:
            # Within a loop of its own, so that nothing in it is awaited on the environment's.
            after = run_now(_awaited(lambda: self.env.after_tool(action, observation)))
            return self.codec.encode_observation(observation if after is None else after)
        except BaseException as error:  # noqa: BLE001 - an author's code may raise anything; the timeout is told all the same
            report(error, None, f"after_tool of {name!r}, which timed out")
            return self.timed_out(name, seconds, begun=True)

    def decoded(self, data: JSONObject) -> object:
        """The action in ``data``.

        Raises:
            InvalidActionError: it is refused.
        """
        try:
            return self.codec.decode_action(data)
        except RecursionError as error:
            message = "expected an action of fewer levels, got one nested too deeply to be read"
            raise invalid_message(fault("recursion", ["data"], message, None)) from error
        except OpenEnvGymError as error:
            raise_as_environments(error)
        except BaseException as error:
            raise rejected(error, data) from error

    def state(self) -> JSONObject:
        """The environment's own state; what it does not say, the server's count and name of the episode."""
        with user_code:
            state = getattr(self.env, "state", None)
            state = self._settled(state() if callable(state) else state)
        counted: JSONObject = {"episode_id": self.episode_id, "step_count": self.steps}
        if not _is_record(state):
            return counted
        with encoding("state", advanced=False):
            own = self.codec.encode_state(state)
        if isinstance(state, BaseModel):
            # A field that was never set is the class's default, not something the environment says.
            untouched = counted.keys() - state.model_fields_set
            return own | {name: counted[name] for name in untouched}
        return counted | own

    def outcome(self, observation: object) -> Outcome:
        """What is said of an observation that the environment gave.

        Raises:
            EnvironmentExecutionError: it cannot be sent.
        """
        try:
            outcome = self.codec.encode_observation(observation)
        except BaseException as error:  # noqa: BLE001 - a codec may be an environment's own, and raise anything
            raise_as_unsendable(error, "observation", advanced=True)
        if not self._notes.waiting:
            return outcome
        metadata = outcome.metadata or {}
        earlier = metadata.get(NOTES_KEY)
        notes = [*(earlier if isinstance(earlier, list) else []), *self.take_notes()]
        return msgspec.structs.replace(outcome, metadata=metadata | {NOTES_KEY: notes})

    def take_notes(self) -> list[str]:
        """What the client should hear of keywords that were left out."""
        return self._notes.take()

    def _accepted(self, method: Method, keywords: Mapping[str, Any], takes: Callable[[str], bool]) -> dict[str, Any]:
        accepted = {}
        for name, value in keywords.items():
            if takes(name):
                accepted[name] = value
            elif value is not None and name not in {"episode_id", "timeout_s", "request_id"}:
                self._notes.add(
                    f"{method.name}() of {type(self.env).__name__} takes no {quoted(name)}; it was not passed on"
                    + (", so this episode is not seeded" if name == "seed" else "")
                )
        return accepted

    def _settled(self, value: Any) -> Any:
        """The value, awaited where it can be; its kind is remembered, since an environment gives one kind as a rule."""
        if inspect.isawaitable(value):
            return self.wait_for(value)
        # Whether a generator can be awaited is told by each one, not by its kind.
        self._settled_kind = None if inspect.isgenerator(value) else type(value)
        return value

    # ------------------------------------------------------------------------------------ what it is, and more

    def metadata(self) -> JSONObject:
        """The ``/metadata`` document."""
        with user_code:
            describe = getattr(self.env, "get_metadata", None)
            described = self._settled(describe()) if callable(describe) else None
        if described is None:
            described = default_metadata(self.env)
        with encoding("metadata", advanced=False):
            return cast("JSONObject", plain_json(described))

    def schema(self) -> JSONObject:
        """The ``/schema`` document."""
        with encoding("schema", advanced=False):
            return self.codec.schema()

    @property
    def render_mode(self) -> str | None:
        """What ``render`` gives."""
        mode = getattr(self.env, "render_mode", None)
        return mode if isinstance(mode, str) else None

    def render(self) -> object:
        """The environment's current rendering."""
        render = getattr(self.env, "render", None)
        if not callable(render):
            raise EnvironmentExecutionError(f"{type(self.env).__name__} does not render", code="EXECUTION_ERROR")
        with user_code:
            return self._settled(render())

    def consult(self, name: str, *args: object) -> object:
        """What the environment's own method of that name gives; whatever it raises is let through.

        Raises:
            NotImplementedError: it has no such method.
        """
        method = getattr(self.env, name, None)
        if not callable(method):
            raise NotImplementedError(name)
        return self._settled(method(*args))

    @property
    def remote(self) -> RemoteTarget:
        """Those of its methods and attributes that have no message of their own."""
        return RemoteTarget(self.env, self._settled)

    def close(self) -> None:
        """Close the environment, if it can be closed."""
        close = getattr(self.env, "close", None)
        if callable(close):
            with user_code:
                self._settled(close())


async def _awaited(begin: Callable[[], Any]) -> Any:
    value = begin()
    return await value if inspect.isawaitable(value) else value


def _is_record(state: object) -> bool:
    return isinstance(state, BaseModel | Mapping) or (dataclasses.is_dataclass(state) and not isinstance(state, type))
