"""A served Gymnasium environment without a socket: the same codecs and the same JSON text, in one process.

Everything a value goes through is here but the frames, so what is exact here can only be lost by the transport.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openenv_gym.info import decode_info
from openenv_gym.json_text import decode_json, encode_json
from openenv_gym.spaces import codec_for, space_from_json
from openenv_gym_server.gym_environment import GymEnvironment, GymObservation


class InProcessEnv:
    """Gymnasium's reset and step over a ``GymEnvironment`` and the JSON text of its ``SpaceCodec``."""

    def __init__(self, source: Any, **kwargs: Any) -> None:
        self.environment = GymEnvironment(source, **kwargs)
        schema: Any = decode_json(encode_json(self.environment.codec.schema()))
        self.action_space = space_from_json(schema["action"]["properties"]["action"]["x-gymnasium-space"])
        self.observation_space = space_from_json(schema["observation"]["properties"]["obs"]["x-gymnasium-space"])
        self._actions, self._observations = codec_for(self.action_space), codec_for(self.observation_space)
        self.warnings: list[str] = []

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        reward, obs, terminated, truncated, info = self._receive(self.environment.reset(**kwargs))
        assert (reward, terminated, truncated) == (None, False, False)
        return obs, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        sent: Any = decode_json(encode_json({"action": self._actions.encode(action)}))
        arrived = self.environment.codec.decode_action(sent)
        reward, *rest, terminated, truncated, info = self._receive(self.environment.step(arrived))
        return rest[0], reward, terminated, truncated, info

    def _receive(self, observation: GymObservation) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        envelope = self.environment.codec.encode_observation(observation)
        message = {
            "observation": envelope.observation,
            "reward": envelope.reward,
            "done": envelope.done,
            "metadata": envelope.metadata,
        }
        data: Any = decode_json(encode_json(message))
        metadata: Mapping[str, Any] = data["metadata"]
        assert data["done"] is (metadata["terminated"] or metadata["truncated"])
        self.warnings += metadata.get("x-warnings", [])
        assert data["observation"].keys() == {"obs"}
        return (
            float(metadata.get("reward", data["reward"]))
            if metadata.get("reward", data["reward"]) is not None
            else None,
            self._observations.decode(data["observation"]["obs"]),
            metadata["terminated"],
            metadata["truncated"],
            decode_info(metadata["info"], metadata.get("x-gymnasium-info")),
        )

    def close(self) -> None:
        self.environment.close()
