"""``GenericEnvClient``: plain dictionaries in and out, for servers whose own classes are not installed here."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from openenv_gym.client import EnvClient
from openenv_gym.errors import ValueMappingError
from openenv_gym.json_text import require_distinct_keys
from openenv_gym.types import StepResult

__all__ = ["GenericAction", "GenericEnvClient"]


class GenericAction(dict[str, Any]):
    """An action as its fields.

    Example:
        >>> GenericAction(message="hello")
        GenericAction(message='hello')
        >>> GenericAction(message="hello") == {"message": "hello"}
        True
    """

    def __init__(self, **fields: Any) -> None:
        super().__init__(fields)

    def __repr__(self) -> str:
        return f"GenericAction({', '.join(f'{name}={value!r}' for name, value in self.items())})"


class GenericEnvClient(EnvClient[Mapping[str, Any] | BaseModel, dict[str, Any], dict[str, Any]]):
    """A client of any OpenEnv server; observations and states are dictionaries, as they are on the wire.

    Actions are dictionaries, ``GenericAction``, pydantic models, or dataclasses.

    Example:
        >>> with GenericEnvClient("http://127.0.0.1:8000").sync() as client:    # doctest: +SKIP
        ...     client.reset(seed=7)
        ...     client.step({"message": "hello"}).observation
        {'echo': 'hello'}
    """

    def _step_payload(self, action: object) -> dict[str, Any]:
        if isinstance(action, Mapping):
            return dict(action)
        if isinstance(action, BaseModel):
            # Here, for as JSON values one of two such keys is gone already.
            require_distinct_keys(action.model_dump(warnings=False))
            return action.model_dump(mode="json")
        if dataclasses.is_dataclass(action) and not isinstance(action, type):
            return dataclasses.asdict(action)
        raise ValueMappingError(
            f"expected an action as a dictionary, a pydantic model or a dataclass, got {type(action).__name__}",
            path="$",
        )

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[dict[str, Any]]:
        return StepResult(
            observation=payload["observation"],
            reward=payload["reward"],
            done=payload["done"],
            metadata=payload.get("metadata"),
        )

    def _parse_state(self, payload: dict[str, Any]) -> dict[str, Any]:
        return payload
