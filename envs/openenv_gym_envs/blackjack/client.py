"""``BlackjackEnv``: the game's client."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import ValidationError

from openenv_gym.client import EnvClient
from openenv_gym.errors import ValueMappingError
from openenv_gym.types import State, StepResult
from openenv_gym_envs.blackjack.models import HIT, STAND, BlackjackAction, BlackjackObservation

__all__ = ["BlackjackEnv"]


class BlackjackEnv(EnvClient[BlackjackAction | Mapping[str, Any] | str, BlackjackObservation, State]):
    """Plays Blackjack on a server; without an address it starts one of its own. The arguments are ``EnvClient``'s.

    ``step`` takes a ``BlackjackAction``, a dictionary of its fields, or the bare word.

    Example:
        >>> with BlackjackEnv().sync() as client:    # doctest: +SKIP
        ...     result = client.reset(seed=3)
        ...     while not result.done:
        ...         result = client.step(BlackjackAction(move="stand"))
        ...     print(result.observation.text, result.reward)
    """

    target: ClassVar[str | None] = "openenv_gym_envs.blackjack"

    def _step_payload(self, action: BlackjackAction | Mapping[str, Any] | str) -> dict[str, Any]:
        if isinstance(action, BlackjackAction):
            return {"move": action.move}
        fields = {"move": action} if isinstance(action, str) else action
        if isinstance(fields, Mapping):
            with contextlib.suppress(ValidationError):
                return {"move": BlackjackAction.model_validate(dict(fields)).move}
        shown = repr(action)
        raise ValueMappingError(
            f"expected BlackjackAction(move={HIT!r}), {{'move': {HIT!r}}} or {HIT!r} itself, or {STAND!r} in its "
            f"place, got {shown if len(shown) <= 100 else type(action).__name__}",
            path="$.move",
        )

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[BlackjackObservation]:
        reward, done = payload["reward"], payload["done"]
        observation = BlackjackObservation(payload["observation"]["text"], reward, done)
        return StepResult(observation, reward, done, payload.get("metadata"))

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(**payload)
