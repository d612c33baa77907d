"""The clients of the interoperability matrix, each behind the same few calls.

A ``Player`` asks one client in the client's own style (awaited or not, typed or not, or a Gymnasium environment) and
gives every answer in one form. Not for what a client does beyond that; ``flavours.py`` has the environments.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium
import openenv
from openenv.core import client_types as stock_types
from openenv.core import env_client as stock_client

import openenv_gym
from openenv_gym.errors import CapacityError, EnvironmentExecutionError, InvalidActionError
from openenv_gym.spaces import mapping_from_schema
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.http import fetch_json
from tests.interop.flavours import Case

STOCK_ERRORS = (RuntimeError, RuntimeError, (RuntimeError, ConnectionError))
OUR_ERRORS = (InvalidActionError, EnvironmentExecutionError, CapacityError)


class Answer(NamedTuple):
    fields: dict[str, Any]
    reward: Any
    done: bool


class Player:
    """One client of a matrix; ``call`` calls it, and waits where its answers are awaited."""

    def __init__(self, client: Any, call: Callable[[Any], Any], case: Case, *, typed: bool = False) -> None:
        self.client, self.call, self.case, self.typed = client, call, case, typed

    def reset(self, **keywords: Any) -> Answer:
        return self._answer(self.call(lambda: self.client.reset(**keywords)))

    def step(self, action: dict[str, Any], *, valid: bool = True) -> Answer:
        given = self.case.action(**action) if self.typed and valid else action
        return self._answer(self.call(lambda: self.client.step(given)))

    def state(self) -> dict[str, Any]:
        state = self.call(self.client.state)
        return state.model_dump() if self.typed else state

    def _answer(self, result: Any) -> Answer:
        fields = result.observation
        if self.typed:
            assert type(fields) is self.case.observation
            fields = fields.model_dump(mode="json", exclude={"reward", "done"})
        # Environments of the stock package always send their metadata inside the observation too.
        return Answer({name: fields[name] for name in fields if name != "metadata"}, result.reward, result.done)


class GymnasiumPlayer:
    """``openenv/remote-v0``, with the JSON of actions and observations on the outside."""

    def __init__(self, env: gymnasium.Env[Any, Any], url: str) -> None:
        schema = fetch_json(url, "/schema", ConnectionSettings())
        self.env = env
        self.actions = mapping_from_schema(schema["action"], flatten=False)
        self.observations = mapping_from_schema(schema["observation"], flatten=False, role="observation")

    def reset(self, **keywords: Any) -> Answer:
        seed = keywords.pop("seed", None)
        observation, _ = self.env.reset(seed=seed, options=keywords or None)
        return Answer(self.observations.encode(observation), None, False)

    def step(self, action: dict[str, Any], *, valid: bool = True) -> Answer:
        sample = self.actions.decode_member(action) if valid else action
        # What no Space holds gets past Gymnasium's own checks only where they are not.
        env = self.env if valid else self.env.unwrapped
        observation, reward, terminated, truncated, _ = env.step(sample)
        assert observation in self.env.observation_space
        assert (type(reward), truncated) == (float, False)
        return Answer(self.observations.encode(observation), reward or None, terminated)

    def state(self) -> dict[str, Any]:
        return self.env.unwrapped.state()


@contextlib.contextmanager
def remote(url: str, case: Case, session_id: str | None = None) -> Iterator[GymnasiumPlayer]:
    assert session_id is None, "a Gymnasium environment begins a session of its own"
    refused = case.refused
    schema = fetch_json(url, "/schema", ConnectionSettings())
    mapping = mapping_from_schema(schema["action"], flatten=False)

    def encode(action: Any) -> dict[str, Any]:
        return action if action is refused else mapping.encode(action)

    with gymnasium.make("openenv/remote-v0", base_url=url, flatten=False, encode_action=encode) as env:
        yield GymnasiumPlayer(env, url)


def stock_typed(case: Case) -> type[Any]:
    return _typed(stock_client.EnvClient, stock_types.StepResult, case)


def our_typed(case: Case) -> type[Any]:
    return _typed(openenv_gym.EnvClient, openenv_gym.StepResult, case)


def _typed(base: Any, result_class: Any, case: Case) -> type[Any]:
    """A typed client as one writes it: three hooks."""

    class Client(base):
        def _step_payload(self, action: Any) -> dict[str, Any]:
            return action if isinstance(action, dict) else action.model_dump(exclude={"metadata"})

        def _parse_result(self, payload: dict[str, Any]) -> Any:
            observation = case.observation(**payload["observation"])
            return result_class(observation=observation, reward=payload["reward"], done=payload["done"])

        def _parse_state(self, payload: dict[str, Any]) -> Any:
            return case.kit.state(**payload)

    return Client


def _stock(make: Callable[[Case], type[Any]], url: str, session_id: str | None, case: Case) -> Any:
    client = make(case)(base_url=url)
    if session_id is not None:
        # The stock package has no public way to attach a client that steps to a session of a known name.
        client._ws_url += f"?session_id={session_id}"
    return client


def _ours(make: Callable[[Case], type[Any]], url: str, session_id: str | None, case: Case) -> Any:
    return make(case)(base_url=url, session_id=session_id)


@contextlib.contextmanager
def _awaited(client: Any, case: Case, *, typed: bool = False) -> Iterator[Player]:
    with asyncio.Runner() as runner:

        def call(request: Callable[[], Any]) -> Any:
            async def main() -> Any:
                return await request()

            return runner.run(main())

        entered = call(client.__aenter__)
        try:
            yield Player(entered, call, case, typed=typed)
        finally:
            call(lambda: client.__aexit__(None, None, None))


@contextlib.contextmanager
def _direct(client: Any, case: Case) -> Iterator[Player]:
    with client.sync() as entered:
        yield Player(entered, lambda request: request(), case)


class Client(NamedTuple):
    """One client of the matrix: how to open it, and what its errors are."""

    open: Callable[..., contextlib.AbstractContextManager[Any]]
    refused: Any
    failed: Any
    full: Any
    attaches: bool = True

    @property
    def busy(self) -> tuple[type[Exception], ...]:
        """What a server says that is full, or whose session still has another socket."""
        return (RuntimeError, ConnectionError)

    def connect(self, url: str, case: Case, session_id: str | None = None) -> contextlib.AbstractContextManager[Any]:
        return self.open(url, case, session_id)


def _generic(_: Case) -> Any:
    return openenv.GenericEnvClient


def _our_generic(_: Case) -> Any:
    return openenv_gym.GenericEnvClient


CLIENTS = {
    "stock-async": Client(lambda url, case, sid: _awaited(_stock(_generic, url, sid, case), case), *STOCK_ERRORS),
    "stock-sync": Client(lambda url, case, sid: _direct(_stock(_generic, url, sid, case), case), *STOCK_ERRORS),
    "stock-typed": Client(
        lambda url, case, sid: _awaited(_stock(stock_typed, url, sid, case), case, typed=True), *STOCK_ERRORS
    ),
    "ours-async": Client(lambda url, case, sid: _awaited(_ours(_our_generic, url, sid, case), case), *OUR_ERRORS),
    "ours-sync": Client(lambda url, case, sid: _direct(_ours(_our_generic, url, sid, case), case), *OUR_ERRORS),
    "ours-typed": Client(
        lambda url, case, sid: _awaited(_ours(our_typed, url, sid, case), case, typed=True), *OUR_ERRORS
    ),
    "remote-v0": Client(remote, *OUR_ERRORS, attaches=False),
}
