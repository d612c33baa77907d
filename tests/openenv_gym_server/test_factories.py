"""Tests of ``openenv_gym_server.factories``."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from openenv_gym.errors import InvalidActionError
from openenv_gym_server.environment import Environment
from openenv_gym_server.factories import EnvironmentFactory, is_async, overrides_twin
from tests.text_envs import Bare, Echo, make_echo


def test_a_class_a_partial_and_a_function_make_environments() -> None:
    for source, name in (
        (Echo, "Echo"),
        (functools.partial(functools.partial(Echo)), "Echo"),
        (make_echo, "make_echo"),
    ):
        factory = EnvironmentFactory(source)
        assert isinstance(factory.make(), Echo)
        assert factory.make() is not factory.make()
        assert factory.name == name


def test_flags_are_known_where_something_carries_them() -> None:
    assert EnvironmentFactory(Echo).declares("SUPPORTS_CONCURRENT_SESSIONS") is True
    assert EnvironmentFactory(Bare).declares("SUPPORTS_CONCURRENT_SESSIONS") is False
    assert EnvironmentFactory(functools.partial(Echo)).declares("SUPPORTS_CONCURRENT_SESSIONS") is True
    assert EnvironmentFactory(make_echo).declares("SUPPORTS_CONCURRENT_SESSIONS") is None

    def make() -> Echo:
        return Echo()

    make.SUPPORTS_CONCURRENT_SESSIONS = True  # type: ignore[attr-defined]
    assert EnvironmentFactory(make).declares("SUPPORTS_CONCURRENT_SESSIONS") is True


def test_an_instance_is_lent() -> None:
    env = Echo()
    factory = EnvironmentFactory(env)
    assert factory.make() is env
    assert factory.declares("SUPPORTS_CONCURRENT_SESSIONS") is True
    with pytest.raises(InvalidActionError):
        factory.make({"a": 1}, "all")


def test_anything_else_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a callable"):
        EnvironmentFactory("CartPole-v1")


def test_a_client_gives_only_what_is_allowed_and_taken() -> None:
    class Sized(Echo):
        def __init__(self, size: int = 1, *, render_mode: str | None = None, **kwargs: Any) -> None:
            super().__init__()
            self.size, self.render_mode, self.rest = size, render_mode, kwargs

    factory = EnvironmentFactory(Sized)
    env = factory.make({"size": 2, "more": 3}, frozenset({"size", "more"}), "ansi")
    assert (env.size, env.render_mode, env.rest) == (2, "ansi", {"more": 3})
    with pytest.raises(InvalidActionError, match="allowed_env_kwargs"):
        factory.make({"size": 2})
    with pytest.raises(InvalidActionError, match="takes no keyword 'size'"):
        EnvironmentFactory(Echo).make({"size": 2}, "all")
    with pytest.raises(InvalidActionError, match="takes no keyword 'render_mode'"):
        EnvironmentFactory(Echo).make(render_mode="ansi")


def test_what_is_refused_is_not_read() -> None:
    def read(name: str, value: Any) -> Any:
        raise AssertionError("a refusal must not cost the reading of what it refuses")

    for factory, allowed in ((EnvironmentFactory(Echo), frozenset[str]()), (EnvironmentFactory(Echo), "all")):
        with pytest.raises(InvalidActionError):
            factory.make({"size": 2}, allowed, read=read)  # type: ignore[arg-type]
    kept: dict[str, Any] = {}
    EnvironmentFactory(lambda **given: kept.update(given)).make(
        {"size": 2}, "all", read=lambda name, value: [name, value]
    )
    assert kept == {"size": ["size", 2]}


def test_a_callable_that_says_nothing_of_itself_is_tried() -> None:
    class Opaque:
        __signature__ = 5

        def __call__(self, **kwargs: Any) -> Echo:
            return Echo()

    assert isinstance(EnvironmentFactory(Opaque()).make({"a": 1}, "all"), Echo)


def test_what_is_asynchronous_is_told_apart() -> None:
    class Async(Echo):
        async def step(self, action: Any) -> Any:
            return None

    class Twin(Echo):
        async def step_async(self, action: Any) -> Any:  # type: ignore[override]
            return None

    class Stranger(Bare):
        async def reset_async(self) -> Any:
            return None

    assert [is_async(kind) for kind in (Echo, Bare, Async, Twin, Stranger, Twin())] == [
        False,
        False,
        True,
        True,
        True,
        True,
    ]
    assert not overrides_twin(Environment, "step_async")
    assert EnvironmentFactory(Async).may_be_async
    assert not EnvironmentFactory(Echo).may_be_async
    assert EnvironmentFactory(make_echo).may_be_async


def test_refusals_name_the_flag_of_the_command_line_or_say_that_nothing_is_rendered() -> None:
    factory = EnvironmentFactory(lambda size=1: size)
    with pytest.raises(InvalidActionError, match="--allow-env-kwarg size"):
        factory.make({"size": 2})
    with pytest.raises(InvalidActionError, match="does not render"):
        factory.make(render_mode="rgb_array")


def test_the_nearest_class_decides_between_a_method_and_its_asynchronous_twin() -> None:
    class Twin(Echo):
        async def step_async(self, action: Any) -> Any:  # type: ignore[override]
            return None

    class Plain(Twin):
        def step(self, action: Any) -> Any:  # type: ignore[override]
            return None

    class Both(Plain):
        def step(self, action: Any) -> Any:  # type: ignore[override]
            return None

        async def step_async(self, action: Any) -> Any:  # type: ignore[override]
            return None

    assert [overrides_twin(kind, "step_async") for kind in (Echo, Twin, Plain, Both)] == [False, True, False, True]
    assert not overrides_twin(Both, "reset_async")
    assert not overrides_twin(object(), "step_async")
