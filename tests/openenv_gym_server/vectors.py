"""A vector session of the server, used as Gymnasium's vector environments are, and environments for its tests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from starlette.testclient import TestClient

from openenv_gym import frames
from openenv_gym.frames import Kind
from openenv_gym.info import decode_exact
from openenv_gym.messages import SUBPROTOCOL
from openenv_gym.spaces import BatchCodec, codec_for, space_from_json
from openenv_gym.spaces.batches import stack, unstack
from openenv_gym_server.gym_app import create_gym_app
from openenv_gym_server.settings import ServerSettings

HERE = "tests.openenv_gym_server.vectors"


class Moody(gymnasium.Env[Any, Any]):
    """Dict observations, infos that come and go, and failures that are asked for by an action."""

    metadata = {"render_modes": ["ansi"]}
    observation_space = spaces.Dict(
        [("z", spaces.Box(-1, 1, (2,), np.float32)), ("a", spaces.Discrete(4, start=-1)), ("say", spaces.Text(4))]
    )
    action_space = spaces.Discrete(5)

    def __init__(self, render_mode: str | None = None, length: int = 6, broken: bool = False) -> None:
        if broken:
            raise OSError("no such device")
        self.render_mode = render_mode
        self.length = length
        self.mood = "calm"
        self.closed = 0
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        if options and options.get("fail"):
            raise OSError("it cannot begin")
        return self._observe(), {"began": True, "options": repr(options)}

    def step(self, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        self.steps += 1
        if action == 4:
            raise LocalError(f"after {self.steps} steps")
        info: dict[str, Any] = {"action": int(action)}
        if self.np_random.random() < 0.5:
            info |= {"array": self.np_random.random(2), "deep": {"mood": self.mood}, "odd": object}
        over = self.steps >= self.length or bool(self.np_random.random() < 0.1)
        return self._observe(), np.float32(self.np_random.random()), over, self.steps % 2 == 0 and over, info

    def _observe(self) -> dict[str, Any]:
        return {
            "a": int(self.np_random.integers(-1, 3)),
            "z": self.np_random.uniform(-1, 1, 2).astype(np.float32),
            "say": "ab"[self.steps % 2] * (1 + self.steps % 3),
        }

    def greet(self, name: str, *, loud: bool = False) -> str:
        if name == "forever":
            threading.Event().wait()
        if name == "nobody":
            raise LookupError("there is nobody")
        return f"{name.upper() if loud else name}, {self.mood}"

    def render(self) -> str:
        return f"step {self.steps}"

    def close(self) -> None:
        self.closed += 1


class LocalError(Exception):
    """One that cannot be made from its text alone."""

    def __init__(self, text: str, *, detail: object = object) -> None:
        super().__init__(text)
        self.detail = lambda: detail


class Pair(VectorEnv[Any, Any, Any]):
    """A vector environment of its own, in any autoreset mode but as it is told."""

    def __init__(self, num_envs: int = 1, mode: str = "Disabled", max_episode_steps: int = 3, **odd: Any) -> None:
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": AutoresetMode(mode)} if mode else {}
        self.limit = max_episode_steps
        self.odd = odd
        self.single_action_space = spaces.Discrete(3)
        self.single_observation_space = spaces.Tuple([spaces.Box(-9, 9, (2,), np.float32), spaces.Text(3)])
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.counts = np.zeros(num_envs, np.int64)
        self.seeds: Any = None
        self.ended = 0

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.seeds = seed
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, np.bool_))
        self.counts[mask] = 0
        if "reset" in self.odd:
            raise ArithmeticError("no reset")
        return self._observe(), {"mask": mask, "deep": {"counts": self.counts.copy()}, "pair": ("a", 1)}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        if "step" in self.odd:
            raise ArithmeticError("no step")
        self.counts += actions
        over = self.counts >= self.limit
        return (
            self._observe(),
            self.counts.astype(np.float32),
            over,
            np.zeros_like(over),
            {"counts": self.counts.copy()},
        )

    def _observe(self) -> Any:
        boxes = np.stack([self.counts, -self.counts], axis=1).astype(np.float32)
        return ("no batch" if "observation" in self.odd else boxes), tuple(str(count) for count in self.counts)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        if name == "seeds":
            return (self.seeds,)
        return tuple((name, args, kwargs, index) for index in range(self.num_envs))

    def set_attr(self, name: str, values: Any) -> None:
        setattr(self, name, list(values))

    def close_extras(self, **kwargs: Any) -> None:
        self.ended += 1


def register() -> None:
    if "served/Moody-v0" not in gymnasium.registry:
        gymnasium.register("served/Moody-v0", f"{HERE}:Moody", vector_entry_point=f"{HERE}:Pair", max_episode_steps=50)


register()


class Wire:
    """A vector session over one socket, used as a vector environment.

    Args:
        socket: of starlette's test client.
        binary: whether resets and steps are binary frames.
    """

    client: TestClient

    def __init__(self, socket: Any, *, binary: bool, **opening: Any) -> None:
        self.socket = socket
        self.binary = binary
        self.opened = self.ask("x-open", **opening)
        schema = self.opened["schema"]
        self.action_space = space_from_json(schema["action"]["properties"]["action"]["x-gymnasium-space"])
        self.observation_space = space_from_json(schema["observation"]["properties"]["obs"]["x-gymnasium-space"])
        self.num_envs = self.opened["num_envs"]

    def ask(self, kind: str, **data: Any) -> Any:
        """The data of the answer to a text message, an error's too."""
        message = {"type": kind, "id": 7} | ({"data": data} if data or kind.startswith("x-vector") else {})
        self.socket.send_text(json.dumps(message))
        answer = self.socket.receive_json()
        assert answer["id"] == 7
        return answer.get("data", {})

    def send(self, kind: Kind, content: Any, ids: Sequence[int] | None = None, count: int | None = None) -> Any:
        """The outcome of a binary frame, or the data of the error that answers it."""
        count = (self.num_envs if ids is None else len(ids)) if count is None else count
        self.socket.send_bytes(frames.write_frame(kind, 9, count, ids, content))
        answer = self.socket.receive()
        if answer.get("text"):
            error = json.loads(answer["text"])
            assert (error["type"], error["id"]) == ("error", 9)
            return error["data"]
        packed = frames.read_frame(answer["bytes"])
        assert (packed.kind, packed.id, packed.count) == (Kind.OUTCOME, 9, count)
        return frames.read_outcome(packed)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """As Gymnasium's reset of all."""
        data: dict[str, Any] = {} if options is None else {"options": options}
        if seed is not None:
            data["seeds"] = [seed + index for index in range(self.num_envs)]
        return self.begin(data)[0], self.begin_infos

    def begin(self, data: dict[str, Any], ids: Sequence[int] | None = None) -> Any:
        """The observations of a reset, of the environments named."""
        count = self.num_envs if ids is None else len(ids)
        if self.binary:
            outcome = self.send(Kind.RESET, [json.dumps(data).encode()], ids)
            self.begin_infos = infos_of(outcome.info)
            return BatchCodec(self.observation_space).unpack(outcome.observations, count), None
        outcome = self.ask("x-vector_reset", **data, **({} if ids is None else {"env_ids": list(ids)}))
        self.begin_infos = infos_of(outcome.get("infos"))
        return self._batch(outcome["observations"]), None

    def step(self, actions: Any, ids: Sequence[int] | None = None) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """As Gymnasium's step, of the environments named."""
        count = self.num_envs if ids is None else len(ids)
        if self.binary:
            outcome = self.send(Kind.STEP, BatchCodec(self.action_space).pack(actions, count), ids)
            observations = BatchCodec(self.observation_space)
            infos = infos_of(outcome.info)
            if outcome.final is not None:
                rows = outcome.final.rows
                last = unstack(self.observation_space, observations.unpack(outcome.final.observations, len(rows)))
                infos = with_final(infos, dict(zip(rows.tolist(), last, strict=True)), count)
            stepped = outcome.stepped
            values = stepped.rewards, stepped.terminations, stepped.truncations
            return observations.unpack(outcome.observations, count), *values, infos
        codec = codec_for(self.action_space)
        data = [{"action": codec.encode(action)} for action in unstack(self.action_space, actions)]
        named = {} if ids is None else {"env_ids": list(ids)}
        outcome = self.ask("x-vector_step", actions=data, **named)
        infos = infos_of(outcome.get("infos"))
        if "final" in outcome:
            decode = codec_for(self.observation_space).decode
            last_rows = {int(row): decode(fields["obs"]) for row, fields in outcome["final"].items()}
            infos = with_final(infos, last_rows, count)
        flags = (np.array(outcome[name]) for name in ("terminations", "truncations"))
        return self._batch(outcome["observations"]), np.array(outcome["rewards"]), *flags, infos

    def _batch(self, rows: list[Any]) -> Any:
        decode = codec_for(self.observation_space).decode
        return stack(self.observation_space, [decode(row["obs"]) for row in rows])


def infos_of(written: Any) -> dict[str, Any]:
    infos = decode_exact(written or {})
    assert isinstance(infos, dict)
    return infos


def with_final(infos: dict[str, Any], final: dict[int, Any], count: int) -> dict[str, Any]:
    """The infos as Gymnasium has them: with the last observations before their mask."""
    batch = np.full(count, None, object)
    for row, observation in final.items():
        batch[row] = observation
    assert infos["_final_obs"].tolist() == [row in final for row in range(count)]
    whole: dict[str, Any] = {}
    for key, value in infos.items():
        whole |= {"final_obs": batch} if key == "_final_obs" else {}
        whole[key] = value
    return whole


@contextmanager
def wire(
    env: Any = "CartPole-v1",
    *,
    binary: bool = False,
    settings: ServerSettings | None = None,
    env_kwargs: dict[str, Any] | None = None,
    **opening: Any,
) -> Iterator[Wire]:
    """A vector session on an app of its own."""
    settings = settings or ServerSettings(remote_names="all", allowed_env_kwargs="all")
    app = create_gym_app(env, settings=settings, env_kwargs=env_kwargs)
    opening = {"num_envs": 3} | opening
    with TestClient(app) as client, client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket:
        served = Wire(socket, binary=binary, **opening)
        served.client = client
        yield served
