"""Tests of ``openenv_gym_server.hosting``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from openenv_gym.errors import EnvironmentExecutionError, InvalidActionError
from openenv_gym.messages import Outcome
from openenv_gym.types import EnvironmentMetadata, Observation, State
from openenv_gym_server.environment import Environment
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.models import Models
from openenv_gym_server.settings import Names
from tests.text_envs import Bare, Echo, Heard, Say

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForTypeCheckers


def hosted_of(env: Any, **models: Any) -> HostedEnvironment:
    def wait_for(awaitable: Any) -> Any:
        async def main() -> Any:
            return await awaitable

        return asyncio.run(main())

    return HostedEnvironment(env, Models(Say, Heard, **models), wait_for)


def test_reset_gets_the_keywords_its_signature_has() -> None:
    seen: list[Any] = []

    class Narrow(Bare):
        def reset(self, seed: int | None = None, *, level: str = "easy") -> Heard:  # type: ignore[override]
            seen.append((seed, level))
            return Heard()

    class Wide(Bare):
        def reset(self, **kwargs: Any) -> Heard:
            seen.append(kwargs)
            return Heard()

    hosted = hosted_of(Narrow())
    envelope = hosted.reset({"seed": 3, "level": "hard", "episode_id": "e", "other": 1})
    assert seen.pop() == (3, "hard")
    assert envelope.metadata["x-warnings"] == ["reset() of Narrow takes no 'other'; it was not passed on"]
    assert hosted.state() == {"episode_id": "e", "step_count": 0}
    hosted_of(Wide()).reset({"seed": 3, "episode_id": "e"})
    assert seen.pop() == {"seed": 3, "episode_id": "e"}


def test_a_seed_that_cannot_be_taken_is_reported_once() -> None:
    hosted = hosted_of(Bare())
    assert "not seeded" in str(hosted.reset({"seed": 3}).metadata["x-warnings"])
    assert not hosted.reset({"seed": 4}).metadata
    assert not hosted_of(Bare()).reset({"seed": None}).metadata


def test_notes_join_the_environments_own_warnings() -> None:
    class Warning_(Bare):
        def reset(self) -> Heard:
            return Heard(metadata={"x-warnings": ["mine"]})

    warnings = hosted_of(Warning_()).reset({"seed": 3}).metadata["x-warnings"]
    assert isinstance(warnings, list)
    assert warnings[0] == "mine"
    assert len(warnings) == 2


def test_an_episode_without_a_name_gets_one_and_counts_from_zero() -> None:
    hosted = hosted_of(Bare())
    hosted.reset({})
    first = hosted.state()
    hosted.step({"message": "x"})
    assert hosted.state() == {"episode_id": first["episode_id"], "step_count": 1}
    hosted.reset({})
    assert hosted.state()["step_count"] == 0
    assert hosted.state()["episode_id"] != first["episode_id"]
    assert hosted.total_steps == 1


def test_an_environments_own_state_wins() -> None:
    class Own(Bare):
        state: Any = State.model_validate({"episode_id": "own", "step_count": 7, "score": 1})

    hosted = hosted_of(Own())
    hosted.reset({"episode_id": "given"})
    assert hosted.state() == {"episode_id": "own", "step_count": 7, "score": 1}
    # What it never set is the class's default, not its word.
    hosted.env.state = State.model_validate({"score": 2})
    assert hosted.state() == {"episode_id": "given", "step_count": 0, "score": 2}
    hosted.env.state = lambda: {"step_count": 3}
    assert hosted.state() == {"episode_id": "given", "step_count": 3}
    hosted.env.state = [1, 2, 3]
    assert hosted.state() == {"episode_id": "given", "step_count": 0}


def test_a_state_that_raises_or_cannot_be_sent_is_the_environments_error() -> None:
    class Raising(Bare):
        @property
        def state(self) -> State:
            raise RuntimeError("no")

    class Odd(Bare):
        state: Any = {"a": object()}

    for env in (Raising(), Odd()):
        with pytest.raises(EnvironmentExecutionError):
            hosted_of(env).state()


def test_asynchronous_twins_are_preferred_where_a_class_overrides_them() -> None:
    class Twin(Environment[Say, Heard, State]):
        def reset(self) -> Heard:  # type: ignore[override]
            raise AssertionError("the twin is called")

        def step(self, action: Say) -> Heard:  # type: ignore[override]
            return Heard(echo="plain")

        async def reset_async(self, seed: int | None = None) -> Heard:  # type: ignore[override]
            return Heard(echo=f"twin {seed}")

    hosted = hosted_of(Twin())
    assert hosted.asynchronous
    assert hosted.reset({"seed": 3}).observation["echo"] == "twin 3"
    assert hosted.step({"message": "x"}).observation["echo"] == "plain"
    assert not hosted_of(Echo()).asynchronous


def test_asynchronous_everything_is_awaited() -> None:
    class Async:
        async def reset(self) -> Heard:
            return Heard(echo="a")

        async def step(self, action: Say) -> Heard:
            return Heard(echo=action.message)

        async def state(self) -> dict[str, int]:
            return {"step_count": 9}

        async def get_metadata(self) -> EnvironmentMetadata:
            return EnvironmentMetadata(name="n", description="d")

        async def render(self) -> str:
            return "frame"

        async def call_me(self) -> int:
            return 1

        async def close(self) -> None:
            self.closed = True

    env = Async()
    hosted = hosted_of(env)
    assert hosted.reset({}).observation["echo"] == "a"
    assert hosted.step({"message": "b"}).observation["echo"] == "b"
    assert hosted.state()["step_count"] == 9
    assert hosted.metadata()["name"] == "n"
    assert hosted.render() == "frame"
    assert hosted.remote.call("call_me", [], {}, "all") == 1
    hosted.close()
    assert env.closed


def test_an_environment_may_bring_its_own_codec() -> None:
    class Own(Echo):
        @property
        def codec(self) -> Any:
            return OwnCodec()

    class OwnCodec:
        def decode_action(self, data: Any) -> Any:
            raise InvalidActionError("never")

        def encode_observation(self, observation: object) -> Outcome:
            return Outcome(observation={"obs": 1}, reward=2.0)

        def encode_state(self, state: object) -> Any:
            return {}

        def schema(self) -> Any:
            return {"action": {}}

    hosted = hosted_of(Own())
    assert hosted.reset({}).observation == {"obs": 1}
    assert hosted.schema() == {"action": {}}
    with pytest.raises(InvalidActionError):
        hosted.step({})
    assert hosted.steps == 0


def test_an_unrelated_attribute_called_codec_is_left_alone() -> None:
    class Video(Bare):
        codec = "h264"

    assert hosted_of(Video()).reset({}).observation["echo"] == "bare"


def test_rendering_is_optional() -> None:
    for env in (Echo(), Bare()):
        hosted = hosted_of(env)
        assert hosted.render_mode is None
        with pytest.raises(EnvironmentExecutionError, match="does not render"):
            hosted.render()


def test_only_what_exists_can_be_reached() -> None:
    with pytest.raises(InvalidActionError, match="no attribute"):
        hosted_of(Bare()).remote.attribute("nothing", "all")
    assert hosted_of(Echo()).remote.attribute("closed", "all") == 0


@pytest.mark.parametrize(
    ("name", "allowed", "told"),
    [
        ("close_", "all", r"Echo has no attribute 'close_'; did you mean closed\?$"),
        ("cals", frozenset({"cals", "calls"}), r"Echo has no attribute 'cals'; did you mean calls\?$"),
        ("cals", frozenset({"cals"}), r"Echo has no attribute 'cals'$"),
        ("cals", frozenset({"calls"}), r"does not have 'cals'; did you mean calls\?; its operator can add it"),
        ("x" * 10_000, "all", r"Echo has no attribute 'x{100}'$"),
    ],
)
def test_a_name_that_is_misspelt_is_told_with_the_nearest_that_a_client_may_use(
    name: str, allowed: Names, told: str
) -> None:
    with pytest.raises(InvalidActionError, match=told):
        hosted_of(Echo()).remote.attribute(name, allowed)


def test_closing_is_optional() -> None:
    hosted_of(Bare()).close()


class Annotated(Bare):
    @property
    def state(self) -> OnlyForTypeCheckers:
        raise NotImplementedError


@dataclass
class Board:
    cells: int = 0


class Boarded(Bare):
    @property
    def state(self) -> Board:
        return Board(3)


class Scored(State):
    points: int = 0


def test_the_schema_of_the_state_comes_from_argument_or_annotation() -> None:
    def state_of(hosted: HostedEnvironment) -> Any:
        return hosted.schema()["state"]

    assert "cells" in state_of(hosted_of(Boarded()))["properties"]
    assert hosted_of(Boarded()).state()["cells"] == 3
    assert "step_count" in state_of(hosted_of(Annotated()))["properties"]
    assert "points" in state_of(hosted_of(Boarded(), state=Scored))["properties"]
    assert "cells" in state_of(hosted_of(Boarded(), state=State))["properties"]


def test_a_method_without_a_signature_is_called_without_keywords() -> None:
    class Odd:
        reset = type("Callable", (), {"__call__": lambda self: Observation(), "__signature__": 5})()
        step = reset

    assert hosted_of(Odd()).reset({"seed": 1}).observation == {"metadata": {}}
