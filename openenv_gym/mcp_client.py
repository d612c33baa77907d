"""``MCPToolClient``: a client of environments whose steps are calls of tools.

Tools are listed and called through ``step``, in simulation mode. Not for serving such an environment
(``openenv_gym_server.mcp_environment``) nor for the ``/mcp`` endpoints.

Source of the methods: ``openenv`` 0.10.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from openenv_gym.client import EnvClient
from openenv_gym.errors import EnvironmentExecutionError, ModeError, ProtocolError, ToolCallError, ValueMappingError
from openenv_gym.loopless import loopless
from openenv_gym.providers.foreign import AnyProvider
from openenv_gym.tools import (
    CallToolAction,
    CallToolObservation,
    ListToolsAction,
    ListToolsObservation,
    Tool,
)
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

    The first thing is ``reset()``, as with every client: listing tools and calling them are steps.

    ``step`` takes a ``CallToolAction``, a ``ListToolsAction``, or any other action as a pydantic model or a dictionary.
    A call that failed is an observation with ``error``; ``call_tool`` raises it.

    Args:
        base_url: as for ``EnvClient``, like all others; their order is that of OpenEnv's own ``MCPToolClient``.
        connect_timeout_s: as for ``EnvClient``.
        message_timeout_s: as for ``EnvClient``.
        websocket_ping_interval_s: as for ``EnvClient``.
        websocket_ping_timeout_s: as for ``EnvClient``.
        provider: as for ``EnvClient``.
        **settings: whatever else ``EnvClient`` takes, by name.

    Raises:
        ModeError: ``mode`` (or OPENENV_CLIENT_MODE) is production, which this version does not have.

    Example:
        >>> with MCPToolClient("http://127.0.0.1:8000").sync() as client:    # doctest: +SKIP
        ...     client.reset()
        ...     [tool.name for tool in client.list_tools()]
        ...     client.call_tool("echo_message", message="Hello!")
        ['echo_message', 'echo_with_length']
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
        super().__init__(
            base_url,
            connect_timeout_s,
            message_timeout_s,
            websocket_ping_interval_s=websocket_ping_interval_s,
            websocket_ping_timeout_s=websocket_ping_timeout_s,
            provider=provider,
            **settings,
        )
        if self.mode == "production":
            raise ModeError(
                "expected mode='simulation': this version has no client for production, in which tools are called at "
                "/mcp; leave mode out, and OPENENV_CLIENT_MODE unset",
                mode="production",
            )
        self._tools: list[Tool] | None = None

    # ------------------------------------------------------------------------------------------------------- tools

    @loopless
    async def list_tools(self, use_cache: bool = True) -> list[Tool]:
        """The tools of the environment.

        Args:
            use_cache: whether the answer of an earlier call will do.

        Raises:
            InvalidActionError: the environment has no tools.
            EnvironmentExecutionError: the server could not list them.
            SessionStateError: no episode has begun; call ``reset()``.
        """
        if use_cache and self._tools is not None:
            return list(self._tools)
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
        self._tools = observation.tools
        return list(self._tools)

    @loopless
    async def call_tool(self, name: str | None = None, /, **arguments: Any) -> Any:
        """The plain value that a tool gives; the observation, where the environment answers with one of its own kind.

        Args:
            name: the tool; may be given by keyword where the tool itself has no argument of that name.
            **arguments: its arguments.

        Raises:
            ToolCallError: the call gave no result; ``error_type`` says why.
            SessionStateError: no episode has begun; call ``reset()``.
        """
        if name is None:
            name = arguments.pop("name", None)
        if not isinstance(name, str):
            raise TypeError(f"expected the name of a tool first, as in call_tool('look', …), got {name!r}")
        result = await self.step(CallToolAction(tool_name=name, arguments=arguments))
        observation = result.observation
        if not isinstance(observation, CallToolObservation):
            return observation
        if observation.error is not None:
            error = observation.error
            raise ToolCallError(
                f"Tool {name!r} failed: {error.message} (type: {error.error_type.value})",
                code="EXECUTION_ERROR",
                data=error.model_dump(mode="json"),
                error_type=error.error_type.value,
                tool_name=name,
            )
        return observation.result

    @loopless
    async def get_tool(self, name: str) -> Tool | None:
        """The tool of that name; None where there is none."""
        return next((tool for tool in await self.list_tools() if tool.name == name), None)

    @loopless
    async def has_tool(self, name: str) -> bool:
        """Whether there is a tool of that name."""
        return await self.get_tool(name) is not None

    # ------------------------------------------------------------------------------------------------------- hooks

    def _step_payload(self, action: object) -> dict[str, Any]:
        if isinstance(action, ListToolsAction | CallToolAction):
            return action.model_dump(exclude=None if action.metadata else {"metadata"})
        if isinstance(action, BaseModel):
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


def plain_value(result: Any) -> Any:
    """The value in a tool's result; its text, where the server gave nothing else."""
    if not isinstance(result, Mapping) or "data" not in result:
        return result
    data = result["data"]
    if data is None and result.get("structured_content") is None:
        parts = [part.get("text") for part in result.get("content") or () if isinstance(part, Mapping)]
        texts = [text for text in parts if isinstance(text, str)]
        return "\n".join(texts) if texts else None
    return data
