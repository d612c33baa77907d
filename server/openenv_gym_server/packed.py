"""The binary answer to a binary reset or step of one environment.

Not for several (``vector_dispatch.py``), nor for the same as JSON (``dispatch.py``).
"""

from __future__ import annotations

from openenv_gym.errors import ProtocolError
from openenv_gym.frames import Kind, Packed
from openenv_gym.json_text import JSONObject, decode_json
from openenv_gym_server.errors import encoding, fault, invalid_message
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.parsing import check_reset, exact, malformed
from openenv_gym_server.space_codec import SpaceCodec

__all__ = ["packed_answer"]


def packed_answer(hosted: HostedEnvironment, packed: Packed) -> bytes:
    """The binary answer to a binary reset or step.

    Raises:
        InvalidActionError: the frame names environments, or its content is refused; the environment has not seen it.
        EnvironmentExecutionError: the environment raised, or its observation cannot be sent.
    """
    if packed.count != 1 or packed.env_ids is not None or packed.wait is not None:
        message = (
            f"this session has one environment; expected a frame of one, without ids or a wait, got {packed.count}"
        )
        raise invalid_message(fault("single_session", ["data", "env_ids"], message, packed.count))
    codec = hosted.codec
    assert isinstance(codec, SpaceCodec)
    if packed.kind is Kind.STEP:
        observation = hosted.act(codec.unpack_action(packed.body))
    else:
        observation = hosted.begin(_keywords(packed.body))
    with encoding("observation", advanced=True):
        return codec.pack_observation(observation, packed.id, hosted.take_notes())


def _keywords(body: memoryview) -> JSONObject:
    """The keywords of a reset, in the exact form of ``openenv_gym.info``.

    Raises:
        InvalidActionError: they are no JSON object, or not as a reset wants them.
    """
    try:
        data = decode_json(bytes(body) or b"{}")
    except ProtocolError as error:
        raise malformed(["data"], f"expected a reset's data as JSON: {error}") from error
    if not isinstance(data, dict):
        raise invalid_message(fault("dict_type", ["data"], "Input should be a valid dictionary", data))
    check_reset(data, "data")
    return {name: exact(value, "data", name) for name, value in data.items()}
