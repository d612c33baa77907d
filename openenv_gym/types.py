"""The data classes of OpenEnv, for authors of environments and for typed clients.

An environment's author subclasses ``Action``, ``Observation`` and ``State``; the rest describes servers and sessions.
Not for the wire's messages (``messages.py``) nor for Gymnasium's Spaces (``spaces``). Importing this module loads
pydantic, so ``import openenv_gym`` does not.

Source of names and fields: ``openenv`` 0.10.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = [
    "Action",
    "ConcurrencyConfig",
    "EnvironmentMetadata",
    "GetTaskRangeRequest",
    "GetTaskRequest",
    "HealthResponse",
    "HealthStatus",
    "ListTasksRequest",
    "NumTasksRequest",
    "Observation",
    "ResetRequest",
    "SchemaResponse",
    "ServerCapacityStatus",
    "ServerMode",
    "SessionInfo",
    "State",
    "StepRequest",
    "StepResponse",
    "StepResult",
    "WSErrorCode",
]

ObservationT = TypeVar("ObservationT")


class ServerMode(StrEnum):
    """Who a server is for: a trainer (simulation) or an agent, which sees no reset, step and state (production)."""

    SIMULATION = "simulation"
    PRODUCTION = "production"


class HealthStatus(StrEnum):
    """What ``/health`` may say."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    DEGRADED = "degraded"


class WSErrorCode(StrEnum):
    """What an error frame may say in ``code``.

    Attributes:
        INVALID_JSON: the message is no JSON.
        UNKNOWN_TYPE: its type does not exist on this connection.
        VALIDATION_ERROR: it is not as its type wants it; the environment has not seen it.
        EXECUTION_ERROR: the environment raised, or what it gave cannot be sent.
        CAPACITY_REACHED: the server has as many sessions as it may.
        FACTORY_ERROR: the environment could not be made.
        SESSION_ERROR: there is no such session, or it has ended.
    """

    INVALID_JSON = "INVALID_JSON"
    UNKNOWN_TYPE = "UNKNOWN_TYPE"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    EXECUTION_ERROR = "EXECUTION_ERROR"
    CAPACITY_REACHED = "CAPACITY_REACHED"
    FACTORY_ERROR = "FACTORY_ERROR"
    SESSION_ERROR = "SESSION_ERROR"


class Action(BaseModel):
    """What an agent does; subclasses declare the fields. Unknown fields are refused.

    Example:
        >>> class Say(Action):
        ...     message: str
        >>> Say(message="hello").message
        'hello'
    """

    model_config = ConfigDict(extra="forbid", validate_assignment=True, arbitrary_types_allowed=True)

    metadata: dict[str, Any] = Field(default_factory=dict, description="Anything that goes along with the action")


class Observation(BaseModel):
    """What an environment answers; subclasses declare the fields. Unknown fields are refused.

    ``done`` and ``reward`` travel beside the observation on the wire, not inside it.

    Example:
        >>> class Heard(Observation):
        ...     echo: str
        >>> Heard(echo="hello", reward=1.0).done
        False
    """

    model_config = ConfigDict(extra="forbid", validate_assignment=True, arbitrary_types_allowed=True)

    done: bool = Field(default=False, description="Whether the episode is over")
    reward: bool | int | float | None = Field(default=None, description="Reward of the last action; null at reset")
    metadata: dict[str, Any] = Field(
        default_factory=dict,
        description='Anything that goes along; "terminated" and "truncated" say how an episode ended',
    )


class State(BaseModel):
    """Where an environment is in its episode; subclasses and instances may add fields.

    Example:
        >>> State(episode_id="one", score=3).model_dump()
        {'episode_id': 'one', 'step_count': 0, 'score': 3}
    """

    model_config = ConfigDict(extra="allow", validate_assignment=True, arbitrary_types_allowed=True)

    episode_id: str | None = Field(default=None, description="Name of the current episode")
    step_count: int = Field(default=0, ge=0, description="Steps taken in the current episode, 0 at reset")


class EnvironmentMetadata(BaseModel):
    """What an environment says about itself at ``/metadata``."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    name: str = Field(description="Name of the environment")
    description: str = Field(description="What the environment does")
    readme_content: str | None = Field(default=None, description="Text of its README")
    version: str | None = Field(default=None, description="Version of the environment")
    author: str | None = Field(default=None, description="Who wrote it")
    documentation_url: str | None = Field(default=None, description="Where it is documented")


class SchemaResponse(BaseModel):
    """The body of ``/schema``: JSON Schemas of everything that crosses the wire."""

    model_config = ConfigDict(extra="forbid")

    action: dict[str, Any] = Field(description="JSON Schema of an action")
    observation: dict[str, Any] = Field(description="JSON Schema of a step's observation")
    state: dict[str, Any] = Field(description="JSON Schema of the state")
    reset_observation: dict[str, Any] | None = Field(default=None, description="JSON Schema of reset's observation")


class HealthResponse(BaseModel):
    """The body of ``/health``: the process lives, nothing more."""

    model_config = ConfigDict(extra="forbid")

    status: HealthStatus = Field(default=HealthStatus.HEALTHY, description="State of the server process")


class ResetRequest(BaseModel):
    """The body of ``POST /reset``; whatever else it has goes to the environment's ``reset`` as keywords."""

    model_config = ConfigDict(extra="allow")

    seed: int | None = Field(default=None, ge=0, description="Seed of the episode")
    episode_id: str | None = Field(default=None, max_length=255, description="Name of the episode")


class StepRequest(BaseModel):
    """The body of ``POST /step``; whatever else it has goes to the environment's ``step`` as keywords."""

    model_config = ConfigDict(extra="allow")

    action: dict[str, Any] = Field(description="The action's fields, as /schema describes them")
    timeout_s: float | None = Field(
        default=None, gt=0, description="Seconds the step may take; the session of a longer one ends"
    )
    request_id: str | None = Field(default=None, max_length=255, description="A name to trace the request by")


class StepResponse(BaseModel):
    """The body of an answer to ``POST /reset`` and ``POST /step``."""

    model_config = ConfigDict(extra="forbid")

    observation: dict[str, Any] = Field(description="The observation's fields without reward and done")
    reward: float | None = Field(default=None, description="Reward of the action; null at reset")
    done: bool = Field(default=False, description="Whether the episode is over")
    metadata: dict[str, Any] | None = Field(default=None, description="What goes along with the observation")


class ListTasksRequest(BaseModel):
    """The body of ``POST /{env}/tasks``."""

    model_config = ConfigDict(extra="forbid")

    split: str = Field(description="Name of the split")


class NumTasksRequest(BaseModel):
    """The body of ``POST /{env}/num_tasks``."""

    model_config = ConfigDict(extra="forbid")

    split: str = Field(description="Name of the split")


class GetTaskRequest(BaseModel):
    """The body of ``POST /{env}/task``."""

    model_config = ConfigDict(extra="forbid")

    split: str = Field(description="Name of the split")
    index: int = Field(description="Place of the task in the split")


class GetTaskRangeRequest(BaseModel):
    """The body of ``POST /{env}/task_range``; the bounds are those of a Python slice."""

    model_config = ConfigDict(extra="forbid")

    split: str = Field(description="Name of the split")
    start: int | None = Field(default=None, description="Place of the first task; null is the split's beginning")
    stop: int | None = Field(default=None, description="Place after the last task; null is the split's end")


class ConcurrencyConfig(BaseModel):
    """How many sessions a server holds, and for how long an idle one is kept.

    Example:
        >>> ConcurrencyConfig(max_concurrent_envs=8, session_timeout=600.0).max_concurrent_envs
        8
    """

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    max_concurrent_envs: int = Field(default=1, ge=1, description="Sessions at a time")
    session_timeout: float | None = Field(
        default=None, gt=0, description="Seconds after which an idle session is ended; None: see ServerSettings"
    )


class ServerCapacityStatus(BaseModel):
    """How full a server is.

    Example:
        >>> ServerCapacityStatus.from_counts(active=3, max_sessions=4).available_slots
        1
    """

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    active_sessions: int = Field(ge=0, description="Sessions in use")
    max_sessions: int = Field(ge=1, description="Sessions at most")

    @model_validator(mode="after")
    def _within_bounds(self) -> ServerCapacityStatus:
        if self.active_sessions > self.max_sessions:
            raise ValueError(
                f"expected at most max_sessions={self.max_sessions} active sessions, got {self.active_sessions}"
            )
        return self

    @property
    def available_slots(self) -> int:
        """Sessions that could still be opened."""
        return self.max_sessions - self.active_sessions

    @property
    def is_at_capacity(self) -> bool:
        """Whether the next session would be refused."""
        return self.available_slots == 0

    @classmethod
    def from_counts(cls, active: int, max_sessions: int) -> ServerCapacityStatus:
        """The status of a server with so many sessions of so many."""
        return cls(active_sessions=active, max_sessions=max_sessions)


class SessionInfo(BaseModel):
    """What is known of one live session; times are Unix times in seconds."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    session_id: str = Field(description="Name of the session")
    created_at: float = Field(description="When the session began")
    last_activity_at: float = Field(description="When it last did something")
    step_count: int = Field(default=0, ge=0, description="Steps taken in the session, over all its episodes")
    environment_type: str = Field(description="Class name of the environment")


@dataclass
class StepResult(Generic[ObservationT]):
    """What a client's ``reset`` and ``step`` return.

    Attributes:
        observation: the observation, in the client's own type.
        reward: reward of the action; None at reset.
        done: whether the episode is over.
        metadata: what the server sent along; ``terminated`` and ``truncated`` where the server tells the two apart.

    Example:
        >>> StepResult(observation={"echo": "hello"}, reward=1.0).done
        False
    """

    observation: ObservationT
    reward: float | None = None
    done: bool = False
    metadata: dict[str, Any] | None = None
