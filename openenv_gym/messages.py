"""Every message of the wire as a frozen type.

A client's requests and a server's replies, OpenEnv's own and those of the negotiated extension (their ``type``
begins with ``x-``). Not for deciding what may be said when (``session.py``) nor for what a value inside ``data``
means (``spaces``), nor for JSON text itself (``json_text.py``) nor for binary frames (``frames.py``). No I/O here.

Source of the shapes: the WebSocket frames of the reference implementation, ``openenv`` 0.10.0.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from openenv_gym.errors import ProtocolError
from openenv_gym.frames import Packed
from openenv_gym.json_text import excerpt

RequestId: TypeAlias = "int | str | None"

SUBPROTOCOL = "openenv-gym.v1"
"""The WebSocket subprotocol under which both ends may use ``id`` and the ``x-`` messages."""


class Message(
    msgspec.Struct, frozen=True, tag_field="type", omit_defaults=True, kw_only=True, forbid_unknown_fields=True
):
    """What requests and replies share; ``id`` pairs the two and travels only where the subprotocol was agreed."""

    extension: ClassVar[bool] = False
    id: RequestId = None


class Reset(Message, tag="reset", frozen=True):
    """Begin an episode; ``data`` holds reset's keyword arguments (``seed``, ``episode_id``, ``options`` …)."""

    data: dict[str, Any] = {}


class Step(Message, tag="step", frozen=True):
    """Take an action; ``data`` holds the action's fields themselves."""

    data: dict[str, Any]


class State(Message, tag="state", frozen=True):
    """Ask for the environment's state."""


class Close(Message, tag="close", frozen=True):
    """End the session; the server closes the socket without a reply."""


class Mcp(Message, tag="mcp", frozen=True):
    """A JSON-RPC request, carried whole in ``data``."""

    data: dict[str, Any]


class OpenSettings(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """How a session's environment is to be made.

    A session is one of several environments, a vector session, where ``num_envs`` is above 1 or one of
    ``autoreset_mode`` and ``vectorization`` is given. ``max_episode_steps`` truncates episodes there, besides the
    environments' own limits.
    """

    num_envs: int = 1
    autoreset_mode: Literal["NextStep", "SameStep", "Disabled"] | None = None
    vectorization: Literal["sync", "async", "threads", "vector_entry_point"] | None = None
    max_episode_steps: int | None = None
    render_mode: str | None = None
    env_kwargs: dict[str, Any] = {}

    @property
    def vector(self) -> bool:
        """Whether a vector session is asked for."""
        return self.num_envs > 1 or self.autoreset_mode is not None or self.vectorization is not None


class Open(Message, tag="x-open", frozen=True):
    """Make the session's environment; must be the first request where the subprotocol was agreed."""

    extension: ClassVar[bool] = True
    data: OpenSettings = OpenSettings()


class Render(Message, tag="x-render", frozen=True):
    """Ask for the environment's current rendering."""

    extension: ClassVar[bool] = True


class CallSettings(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """A method by name; arguments and result travel in the exact form of ``openenv_gym.info``."""

    name: str
    args: list[Any] = []
    kwargs: dict[str, Any] = {}


class Call(Message, tag="x-call", frozen=True):
    """Call a method of the environment that the server allows by name."""

    extension: ClassVar[bool] = True
    data: CallSettings


class AttributeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An attribute by name."""

    name: str


class GetAttr(Message, tag="x-get_attr", frozen=True):
    """Read an attribute of the environment that the server allows by name."""

    extension: ClassVar[bool] = True
    data: AttributeSettings


class AssignmentSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An attribute by name and its values in the exact form of ``openenv_gym.info``, one an environment."""

    name: str
    values: list[Any]


class SetAttr(Message, tag="x-set_attr", frozen=True):
    """Set an attribute of the environment that the server allows by name."""

    extension: ClassVar[bool] = True
    data: AssignmentSettings


class VectorResetSettings(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """Which environments of a vector session begin an episode (None: all), and how.

    ``seeds`` has one entry for each of them; ``options`` are for all, in the exact form of ``openenv_gym.info``.
    """

    env_ids: list[int] | None = None
    seeds: list[int | None] | None = None
    options: dict[str, Any] | None = None


class VectorReset(Message, tag="x-vector_reset", frozen=True):
    """Begin episodes in a vector session."""

    extension: ClassVar[bool] = True
    data: VectorResetSettings = VectorResetSettings()


class VectorActions(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """One action for each of the environments named (None: all), each as the ``data`` of a single step.

    With ``at_least`` the answer is first come, first served: it comes once so many of all the steps under way in the
    session are done, or ``within_s`` seconds have passed, with all that are done by then.
    """

    actions: list[dict[str, Any]]
    env_ids: list[int] | None = None
    at_least: int | None = None
    within_s: float | None = None


class VectorStep(Message, tag="x-vector_step", frozen=True):
    """Take one action in each of several environments of a vector session."""

    extension: ClassVar[bool] = True
    data: VectorActions


Request: TypeAlias = (
    Reset | Step | State | Close | Mcp | Open | Render | Call | GetAttr | SetAttr | VectorReset | VectorStep
)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What reset and step give back, as it is on the wire.

    ``observation`` holds the observation's fields; ``reward`` keeps its JSON type; ``metadata`` is absent where it
    is empty.
    """

    observation: dict[str, Any]
    reward: bool | int | float | None = None
    done: bool = False
    metadata: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET


class ObservationReply(Message, tag="observation", frozen=True, forbid_unknown_fields=False):
    """The answer to reset and step."""

    data: Outcome


class StateReply(Message, tag="state", frozen=True, forbid_unknown_fields=False):
    """The answer to state."""

    data: dict[str, Any]


class McpReply(Message, tag="mcp", frozen=True, forbid_unknown_fields=False):
    """A JSON-RPC response, carried whole in ``data``."""

    data: dict[str, Any]


class ErrorReply(Message, tag="error", frozen=True, forbid_unknown_fields=False):
    """The request failed: ``data`` has ``message``, ``code`` and what belongs to the code."""

    data: dict[str, Any]


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to ``x-open``: what the session's environment is.

    ``schema`` is the ``/schema`` document of this very environment, ``metadata`` its ``/metadata`` document;
    ``resume_token`` is null until a server grants one. ``binary``: resets and steps may be binary frames
    (``frames.py``). ``num_envs`` and ``autoreset_mode`` are a vector session's; ``partial``: its steps may name some of
    the environments; ``first_come``: they may say ``at_least`` how many are to be answered.
    """

    session_id: str
    schema: dict[str, Any]
    metadata: dict[str, Any]
    render_mode: str | None = None
    resume_token: str | None = None
    binary: bool = False
    num_envs: int | None = None
    autoreset_mode: str | None = None
    partial: bool = False
    first_come: bool = False


class OpenReply(Message, tag="x-open", frozen=True, forbid_unknown_fields=False):
    """The session's environment is made."""

    extension: ClassVar[bool] = True
    data: Opened


class ValueData(msgspec.Struct, frozen=True, kw_only=True):
    """One value in the exact form of ``openenv_gym.info``."""

    value: Any = None


class RenderReply(Message, tag="x-render", frozen=True, forbid_unknown_fields=False):
    """The rendering: an array, a string, a list of them, or null."""

    extension: ClassVar[bool] = True
    data: ValueData


class CallReply(Message, tag="x-call", frozen=True, forbid_unknown_fields=False):
    """What the method returned."""

    extension: ClassVar[bool] = True
    data: ValueData


class GetAttrReply(Message, tag="x-get_attr", frozen=True, forbid_unknown_fields=False):
    """The attribute's value."""

    extension: ClassVar[bool] = True
    data: ValueData


class Nothing(msgspec.Struct, frozen=True, kw_only=True):
    """No data."""


class SetAttrReply(Message, tag="x-set_attr", frozen=True, forbid_unknown_fields=False):
    """The attribute is set."""

    extension: ClassVar[bool] = True
    data: Nothing = Nothing()


class VectorOutcome(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What resets and steps of several environments give back, one row an environment.

    ``rewards`` and the flags are absent after a reset; a reward that is not finite is ``"NaN"``, ``"Infinity"`` or
    ``"-Infinity"``. ``infos`` is the batched info in the exact form of ``openenv_gym.info``. ``final`` has the last
    observation of each episode that ended and was followed by the next within this step, by its row.
    """

    observations: list[dict[str, Any]]
    env_ids: list[int] | None = None
    rewards: list[float | str] | None = None
    terminations: list[bool] | None = None
    truncations: list[bool] | None = None
    infos: Any = {}
    final: dict[int, dict[str, Any]] | None = None
    notes: list[str] = []


class VectorReply(Message, tag="x-vector", frozen=True, forbid_unknown_fields=False):
    """The answer to the reset and to the step of a vector session."""

    extension: ClassVar[bool] = True
    data: VectorOutcome


class PackedReply(msgspec.Struct, frozen=True):
    """The answer to a reset or step that was made by a binary frame: such a frame too."""

    packed: Packed

    @property
    def id(self) -> int:
        """The id of the request."""
        return self.packed.id


TextReply: TypeAlias = (
    ObservationReply
    | StateReply
    | McpReply
    | ErrorReply
    | OpenReply
    | RenderReply
    | CallReply
    | GetAttrReply
    | SetAttrReply
    | VectorReply
)
Reply: TypeAlias = TextReply | PackedReply

REQUEST_TYPES: dict[str, type[Request]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (Reset, Step, State, Close, Mcp, Open, Render, Call, GetAttr, SetAttr, VectorReset, VectorStep)
}
"""Every request by the ``type`` it has on the wire."""

_reply_decoder = msgspec.json.Decoder(TextReply)


def decode_reply(text: bytes | str) -> TextReply:
    """A server's message in a text frame.

    Raises:
        ProtocolError: it is not JSON, or not a message a server may send.
    """
    try:
        return _reply_decoder.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ProtocolError(
            f"expected an OpenEnv reply, got one that does not fit: {error}; it begins {excerpt(text)!r}",
            received=excerpt(text),
        ) from error
