"""``MCPToolClient``: a client of environments whose steps are calls of tools.

In simulation, tools are listed and called through ``step``, over ``/ws``, with rewards; in production by requests to
``/mcp`` and by nothing else (``transports/mcp.py``). Not for serving such an environment
(``openenv_gym_server.mcp_environment``).

Source of the methods: ``openenv`` 0.10.0.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from openenv_gym.client import EnvClient
from openenv_gym.errors import (
    EnvironmentExecutionError,
    ProtocolError,
    SessionStateError,
    SettingsError,
    ValueMappingError,
)
from openenv_gym.json_text import require_distinct_keys
from openenv_gym.loopless import loopless
from openenv_gym.mcp_answers import texts_of, tool_call_error
from openenv_gym.modes import Mode
from openenv_gym.providers.foreign import AnyProvider
from openenv_gym.tool_catalogue import read_tools
from openenv_gym.tools import (
    CallToolAction,
    CallToolObservation,
    ListToolsAction,
    ListToolsObservation,
    Tool,
)
from openenv_gym.transports.mcp import McpCalls
from openenv_gym.types import Observation, State, StepResult

__all__ = ["CalledToolObservation", "MCPToolClient", "OpenObservation"]


class CalledToolObservation(CallToolObservation):
    """What a call gave, as a client has it: ``result`` is the plain value, ``tool_result`` all that the server sent.

    Example:
        >>> CalledToolObservation(tool_name="look", result="a door", tool_result={"data": "a door"}).result
        'a door'
    """

    tool_result: Any = Field(default=None, description="The whole result as it was on the wire")


class OpenObservation(Observation):
    """Any other observation; the fields that the server sent are its attributes.

    Example:
        >>> OpenObservation.model_validate({"room": "hall"}).room
        'hall'
    """

    model_config = ConfigDict(extra="allow")


class MCPToolClient(EnvClient[Any, Any, State]):
    """A client that lists and calls the tools of an environment.

    In simulation the first thing is ``reset()``, as with every client: listing tools and calling them are steps.
    ``step`` takes a ``CallToolAction``, a ``ListToolsAction``, or any other action as a pydantic model or a dictionary.
    A call that failed is an observation with ``error``; ``call_tool`` raises it.

    In production there are tools alone. One session, made by ``connect()`` or by the first call, is one environment
    and one episode, which the server begins; ``reset``, ``step`` and ``state`` raise ``ModeError``. A call that fails
    or times out leaves the session as it is.

    Args:
        base_url: as for ``EnvClient``, like all others; their order is that of OpenEnv's own ``MCPToolClient``.
        connect_timeout_s: as for ``EnvClient``.
        message_timeout_s: as for ``EnvClient``.
        websocket_ping_interval_s: as for ``EnvClient``.
        websocket_ping_timeout_s: as for ``EnvClient``.
        provider: as for ``EnvClient``.
        **settings: whatever else ``EnvClient`` takes, by name; and ``tool_timeout_s``, seconds for a call of a tool,
            where it is not ``message_timeout_s`` (in production a server of this project takes it in place of its
            environment's limit of a call).

    Raises:
        SettingsError: as ``EnvClient``; there is no such ``mode``, for example.

    Example:
        >>> with MCPToolClient("http://127.0.0.1:8000").sync() as client:    # doctest: +SKIP
        ...     client.reset()
        ...     [tool.name for tool in client.list_tools()]
        ...     client.call_tool("echo_message", message="Hello!")
        ['echo_message', 'echo_with_length']
        'Hello!'
        >>> with MCPToolClient("http://127.0.0.1:8000", mode="production").sync() as client:    # doctest: +SKIP
        ...     client.call_tool("echo_message", message="Hello!")
        'Hello!'
    """

    def __init__(  # noqa: PLR0917 - openenv 0.10.0: clients written for it are made so
        self,
        base_url: str | None = None,
        connect_timeout_s: float = 10.0,
        message_timeout_s: float | None = 60.0,
        websocket_ping_interval_s: float | str | None = 20.0,
        websocket_ping_timeout_s: float | str | None = 20.0,
        provider: AnyProvider | None = None,
        **settings: Any,
    ) -> None:
        self.tool_timeout_s = _checked_limit(settings.pop("tool_timeout_s", None))
        super().__init__(
            base_url,
            connect_timeout_s,
            message_timeout_s,
            websocket_ping_interval_s=websocket_ping_interval_s,
            websocket_ping_timeout_s=websocket_ping_timeout_s,
            provider=provider,
            **settings,
        )
        self._tools: list[Tool] | None = None

    def _begin(self) -> None:
        super()._begin()
        self._mcp = McpCalls(self._link.address, session_id=self._given["session_id"])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_mcp"}

    @property
    def use_production_mode(self) -> bool:
        """Whether the client is for production. Can be set as long as there is no session.

        Raises:
            SessionStateError: on setting another mode while there is a session.
        """
        return self.mode == "production"

    @use_production_mode.setter
    def use_production_mode(self, production: bool) -> None:
        mode: Mode = "production" if production else "simulation"
        if mode == self.mode:
            return
        if self._mcp.opened or self._link.connected:
            raise SessionStateError(
                f"expected no session: this client is connected for {self.mode}, and tools of one mode may not be "
                "there in the other; set use_production_mode before connect(), or after disconnect()",
                expected="not connected",
                state="connected",
            )
        self._mode, self._tools = mode, None

    # ------------------------------------------------------------------------------------------------- the session

    @loopless
    async def connect(self) -> Self:
        """Start the provider, where there is one, and open a session; see ``EnvClient.connect``.

        In production this is one request, ``openenv/session/create``.
        """
        if self.mode == "simulation":
            return await super().connect()
        hired = self._link.hired
        try:
            await self._mcp.open()
        except BaseException:
            if not hired:
                # What was begun for a first connection is undone; why that failed is what the caller is told.
                with contextlib.suppress(Exception):
                    await self._link.close()
            raise
        return self

    @loopless
    async def disconnect(self) -> None:
        """End the session; what a provider started stays. ``connect()`` opens another."""
        await self._mcp.close()
        await super().disconnect()

    @loopless
    async def close(self) -> None:
        """End the session and stop what a provider started; see ``EnvClient.close``."""
        try:
            await self._mcp.close()
        finally:
            await super().close()

    # ------------------------------------------------------------------------------------------------------- tools

    @loopless
    async def list_tools(self, use_cache: bool = True) -> list[Tool]:
        """The tools of the environment, those of the client's mode.

        Args:
            use_cache: whether the answer of an earlier call will do.

        Raises:
            InvalidActionError: the environment has no tools.
            EnvironmentExecutionError: the server could not list them.
            SessionStateError: no episode has begun, call ``reset()``; in production: the client was closed.
            SessionLostError: the session is lost.
        """
        if not use_cache or self._tools is None:
            self._tools = await (self._list_in_session() if self.use_production_mode else self._list_by_step())
        return list(self._tools)

    @loopless
    async def call_tool(self, name: str | None = None, /, **arguments: Any) -> Any:
        """The plain value that a tool gives; the observation, where the environment answers with one of its own kind.

        Args:
            name: the tool; may be given by keyword where the tool itself has no argument of that name.
            **arguments: its arguments.

        Raises:
            ToolCallError: the call gave no result; ``error_type`` says why.
            SessionStateError: no episode has begun, call ``reset()``; in production: the client was closed.
            SessionLostError: the session is lost.
        """
        if name is None:
            name = arguments.pop("name", None)
        if not isinstance(name, str):
            raise TypeError(f"expected the name of a tool first, as in call_tool('look', …), got {name!r}")
        if not self.use_production_mode:
            return await self._call_by_step(name, arguments)
        await self._begin_session()
        # As in simulation: models and dataclasses among them travel as their fields.
        fields = CallToolAction(tool_name=name, arguments=arguments).model_dump()["arguments"]
        return plain_value(await self._mcp.call_tool(name, fields, self.tool_timeout_s))

    @loopless
    async def get_tool(self, name: str) -> Tool | None:
        """The tool of that name; None where there is none."""
        return next((tool for tool in await self.list_tools() if tool.name == name), None)

    @loopless
    async def has_tool(self, name: str) -> bool:
        """Whether there is a tool of that name."""
        return await self.get_tool(name) is not None

    # ----------------------------------------------------------------------------------------------- in production

    async def _begin_session(self) -> None:
        """The first call connects; what comes after a ``close()`` does not."""
        if self._mcp.fresh:
            await self.connect()

    async def _list_in_session(self) -> list[Tool]:
        await self._begin_session()
        return [Tool(**each) for each in read_tools(await self._mcp.list_tools(), str(self.base_url))]

    # ----------------------------------------------------------------------------------------------- in simulation

    async def _list_by_step(self) -> list[Tool]:
        observation = (await self.step(ListToolsAction())).observation
        if not isinstance(observation, ListToolsObservation):
            raise ProtocolError(
                f"expected {self.base_url} to answer list_tools with its tools, got an observation of another kind; "
                "is it an environment with tools?",
                received=str(observation)[:200],
            )
        if "error" in observation.metadata:
            raise EnvironmentExecutionError(
                f"the server could not list its tools: {observation.metadata['error']}", code="EXECUTION_ERROR"
            )
        return observation.tools

    async def _call_by_step(self, name: str, arguments: dict[str, Any]) -> Any:
        limit = {} if self.tool_timeout_s is None else {"timeout_s": self.tool_timeout_s}
        result = await self.step(CallToolAction(tool_name=name, arguments=arguments), **limit)
        observation = result.observation
        if not isinstance(observation, CallToolObservation):
            return observation
        if observation.error is not None:
            error = observation.error
            raise tool_call_error(name, error.message, error.error_type.value)
        return observation.result

    # ------------------------------------------------------------------------------------------------------- hooks

    def _step_payload(self, action: object) -> dict[str, Any]:
        if isinstance(action, ListToolsAction | CallToolAction):
            return action.model_dump(exclude=None if action.metadata else {"metadata"})
        if isinstance(action, BaseModel):
            # Here, for as JSON values one of two such keys is gone already.
            require_distinct_keys(action.model_dump(warnings=False))
            return action.model_dump(mode="json")
        if isinstance(action, Mapping):
            return dict(action)
        raise ValueMappingError(
            f"expected a CallToolAction, a ListToolsAction, a pydantic model or a dictionary, got "
            f"{type(action).__name__}",
            path="$",
        )

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[Any]:
        fields = dict(payload["observation"])
        metadata = payload.get("metadata") or fields.pop("metadata", None) or {}
        fields |= {"metadata": metadata, "reward": payload["reward"], "done": payload["done"]}
        try:
            observation = self._parse_observation(fields)
        except ValidationError as error:
            raise ProtocolError(
                f"expected an observation from {self.base_url} as {error.title} has it: {error}",
                received=str(payload["observation"])[:200],
            ) from error
        return StepResult(observation, payload["reward"], payload["done"], payload.get("metadata"))

    def _parse_observation(self, fields: dict[str, Any]) -> Observation:
        """The observation in the class of its kind.

        Args:
            fields: its fields, ``metadata``, ``reward`` and ``done`` among them.
        """
        if "tool_name" in fields:
            return CalledToolObservation.model_validate(
                {**fields, "result": plain_value(fields.get("result")), "tool_result": fields.get("result")}
            )
        if isinstance(fields.get("tools"), list):
            return ListToolsObservation.model_validate(fields)
        return OpenObservation.model_validate(fields)

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State.model_validate(payload)


def _checked_limit(seconds: float | None) -> float | None:
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is not None and not (number and math.isfinite(seconds) and seconds > 0):
        raise SettingsError(
            f"expected tool_timeout_s to be a finite number of seconds above 0, or None, got {seconds!r}",
            setting="tool_timeout_s",
        )
    return seconds


def plain_value(result: Any) -> Any:
    """The value in a tool's result; its text, where the server gave nothing else."""
    if not isinstance(result, Mapping) or "data" not in result:
        return result
    data = result["data"]
    if data is None and result.get("structured_content") is None:
        texts = texts_of(result)
        return "\n".join(texts) if texts else None
    return data
