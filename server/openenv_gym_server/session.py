"""One session: a hosted environment, the thread it lives on, and how a message reaches it.

Not for who gets a session and when it ends (``sessions.py``).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, cast

from openenv_gym.frames import Kind as FrameKind
from openenv_gym.frames import Packed
from openenv_gym.json_text import JSONObject
from openenv_gym.messages import (
    Mcp,
    Outcome,
    Request,
    Reset,
    State,
    Step,
    VectorReset,
    VectorStep,
)
from openenv_gym.types import ServerMode, SessionInfo
from openenv_gym_server import dispatch
from openenv_gym_server.dispatch import Hosted
from openenv_gym_server.errors import OvertimeError, SessionEndedError
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.late_calls import given_up
from openenv_gym_server.parsing import Payload, Terms, read
from openenv_gym_server.reading import LARGE, off_the_loop
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.tickets import Ticket
from openenv_gym_server.vector_hosting import HostedVector
from openenv_gym_server.worker import Worker

__all__ = ["TOOL_GRACE_S", "Kind", "Limit", "Serving", "Session", "limited"]

T = TypeVar("T")

Kind: TypeAlias = Literal["socket", "kept", "request"]
"""What ends a session: its socket; a request to delete it, or idleness; the answer to its only request."""

INLINE_LIMIT_S = 0.005
"""A step on the event loop above this has the session move to its thread at its next reset."""

TOOL_GRACE_S = 0.5
"""How much longer than a tool's limit is waited for an environment that keeps the limit itself."""


class Serving(NamedTuple):
    """In which mode an application serves, and whether it begins a session's episode itself, where no client resets.

    In production it always does. One server may be in two applications of two modes.
    """

    mode: str
    begins: bool = False

    @property
    def production(self) -> bool:
        """Whether reset, step and state are closed."""
        return self.mode == ServerMode.PRODUCTION


class Limit(NamedTuple):
    """How long something may take, in seconds (None: for ever), and what says so.

    ``grace``: seconds beyond for an environment that keeps the limit itself, so that its own answer comes first.
    """

    seconds: float | None
    source: str
    grace: float = 0.0

    @classmethod
    def reset(cls, settings: ServerSettings) -> Limit:
        """The operator's limit of a reset."""
        return cls(settings.reset_timeout_s, "the server's setting reset_timeout_s")

    @classmethod
    def step(cls, settings: ServerSettings) -> Limit:
        """The operator's limit of everything else."""
        return cls(settings.step_timeout_s, "the server's setting step_timeout_s")

    def __str__(self) -> str:
        return f"{self.source}={self.seconds:g}"

    def or_else(self, seconds: float, source: str) -> Limit:
        """This limit, or another where it is none."""
        return self._replace(seconds=seconds, source=source) if self.seconds is None else self

    def within(self, seconds: float | None, source: str) -> Limit:
        """The lower of this limit and another."""
        if seconds is None or (self.seconds is not None and self.seconds <= seconds):
            return self
        return Limit(seconds, source)


class Session:
    """A session and its place in the world.

    Args:
        session_id: its name.
        kind: what ends it.
        worker: the thread of its environment.
        settings: the operator's settings.
        weight: as how many sessions it counts: one for each environment.

    Attributes:
        hosted: its environment, or its environments; None until they are made.
        attached: whether a socket is attached to this kept session.
        end_at_detach: whether it was deleted while it had a socket.
        ending: why it ends or has ended; None while it lives.
        active_at: when it was used last, on the monotonic clock.
        gone: done once its environment is closed and its slot free.
        farewell: tells the socket that the session has ended, and closes it.
    """

    def __init__(self, session_id: str, kind: Kind, worker: Worker, settings: ServerSettings, weight: int = 1) -> None:
        self.id = session_id
        self.weight = weight
        self.kind = kind
        self.worker = worker
        self.hosted: Hosted | None = None
        self.attached = False
        self.end_at_detach = False
        self.ending: str | None = None
        self.gone: Future[None] = Future()
        self.farewell: Callable[[str], Awaitable[None]] | None = None
        self.created_at = time.time()
        self._settings = settings
        self.active_at = time.monotonic()
        self._in_flight = 0
        self._counting = threading.Lock()
        self._inline = False
        self._too_slow = False
        self._reset_limit, self._step_limit = Limit.reset(settings), Limit.step(settings)
        self._timed = self._reset_limit.seconds is not None or self._step_limit.seconds is not None

    def made(self, *, lent: bool = False) -> None:
        """The environment is there: decide where its steps run.

        Args:
            lent: it is asked questions beside this session, which have to wait for one another on its thread.
        """
        hosted = self._environment
        self._inline = hosted.inline and not lent
        self._timed |= hosted.limits_tools
        self.touch()

    @property
    def leaves(self) -> bool:
        """Whether its slot will be free by itself in a moment."""
        return self.ending is not None or self.kind == "request"

    @property
    def inline(self) -> bool:
        """Whether steps run on the event loop."""
        return self._inline

    @property
    def _environment(self) -> Hosted:
        if self.hosted is None:
            raise SessionEndedError(f"Session {self.id} has no environment", code="SESSION_ERROR")
        return self.hosted

    def touch(self) -> None:
        """The session is being used."""
        self.active_at = time.monotonic()

    def idle_for(self, seconds: float) -> bool:
        """Whether it has been idle that long; work in flight is not idleness."""
        if isinstance(self.hosted, HostedVector) and self.hosted.busy:
            self.touch()  # steps that no message waits for now
        return self.hosted is not None and self._in_flight == 0 and time.monotonic() - self.active_at > seconds

    def info(self) -> SessionInfo:
        """What is known of it."""
        hosted = self.hosted
        return SessionInfo(
            session_id=self.id,
            created_at=self.created_at,
            last_activity_at=time.time() - (time.monotonic() - self.active_at),
            step_count=hosted.total_steps if hosted else 0,
            environment_type=hosted.environment_type if hosted else "",
        )

    @property
    def failed(self) -> bool:
        """Whether an environment of several has raised, so that the session must end."""
        return self.hosted is not None and self.hosted.failed

    def give_up(self) -> None:
        """Have what its environments are doing end with an error, where that can be had."""
        if isinstance(self.hosted, HostedVector):
            self.hosted.give_up()

    def inline_answer(self, payload: Payload, terms: Terms) -> str | bytes | None:
        """The answer to a message that is answered on the event loop; None for any other, which ``handle`` takes.

        A plain function, since a coroutine for what awaits nothing costs as much as a fifth of such a step.
        """
        if not self._inline or self._in_flight or len(payload) > LARGE:
            return None
        started = time.perf_counter()
        request = read(payload, terms)
        if isinstance(request, str):
            return request
        hosted = self._environment
        if not _is_short(request, hosted):
            return None
        answer = dispatch.perform(hosted, request, terms)
        ended = time.perf_counter()
        self.touch()
        if ended - started > INLINE_LIMIT_S:
            self._too_slow = True
            # Most vectors are reset once, and no step of one waits for another session's.
            self._inline = not isinstance(hosted, HostedVector)
        return answer

    async def handle(self, payload: Payload, terms: Terms) -> str | bytes | Mcp | None:
        """The answer to a message, binary where it was; None where the peer asked to close.

        A JSON-RPC request is given back: it may be about other sessions than this one.

        Raises:
            SessionEndedError: the environment took longer than the operator allows.
        """
        if not (self._timed or self._inline):
            return await self._run(dispatch.respond, self._environment, payload, terms)
        # Which limit holds, and whether a later step is taken on the loop, the message itself says.
        request = await off_the_loop(len(payload), read, payload, terms)
        return request if isinstance(request, str | Mcp) else await self._perform(request, terms)

    async def run(self, job: Callable[[HostedEnvironment], T], limit: Limit | None = None) -> T:
        """What a job gives on the session's thread, within the limit of a step or the given one.

        Raises:
            SessionEndedError: it took longer.
        """
        return await limited(self._run(job, self._single), limit or self._step_limit)

    async def describe(self, request: Request, terms: Terms) -> str | bytes | None:
        """The answer to the request that opened it, within the limit of a step.

        Raises:
            SessionEndedError: it took longer.
        """
        return await limited(self._run(dispatch.perform, self._environment, request, terms), self._step_limit)

    def called_tool(self, data: JSONObject) -> str | None:
        """The tool that an action calls; None where it calls none, or the environment has none."""
        return self._single.called_tool(data)

    @property
    def _single(self) -> HostedEnvironment:
        hosted = self._environment
        assert isinstance(hosted, HostedEnvironment)  # a session of several has a socket, which takes other messages
        return hosted

    async def _perform(self, request: Request | Packed, terms: Terms) -> str | bytes | None:
        """The answer to a message that was read, performed on the thread within the limit of its kind."""
        hosted = self._environment

        def perform(hosted: Hosted) -> str | bytes | None:
            return dispatch.perform(hosted, request, terms)

        limit = self._step_limit
        if _resets(request):
            self._inline = self._inline and not self._too_slow
            limit = self._reset_limit
        elif isinstance(hosted, HostedVector):
            # What is first come, first served waits for other steps than its own.
            if isinstance(request, VectorStep) and request.data.at_least is None:
                seconds = hosted.tool_timeout_s(request.data.actions)
                limit = limit.within(None if seconds is None else seconds + TOOL_GRACE_S, _OF_TOOLS)
        elif isinstance(request, Step) and (name := self.called_tool(request.data)) is not None:
            return await self.call_tool(perform, name, lambda outcome: dispatch.observed(outcome, request).decode())
        return await limited(self._run(perform, hosted), limit)

    async def call_tool(
        self,
        job: Callable[[HostedEnvironment], T],
        name: str,
        late: Callable[[Outcome], T],
        timeout_s: float | None = None,
    ) -> T:
        """What a job gives that calls a tool; the session outlives a tool that outlives its limit.

        Such a tool keeps the thread until it ends, and what it gives is dropped. Later calls wait for the thread, each
        within its own limit, and never begin once they were given up.

        Args:
            job: calls the tool.
            name: the tool.
            late: the answer where the limit has passed, made of the observation that says so.
            timeout_s: the step's own limit.

        Raises:
            SessionEndedError: it took longer than the operator allows any step.
        """
        hosted = self._single
        seconds = hosted.tool_timeout_s(name, timeout_s)
        ticket = Ticket()
        if seconds is None or (self._step_limit.seconds is not None and self._step_limit.seconds <= seconds):
            try:
                return cast("T", await limited(self._run(ticket.use, job, hosted), self._step_limit))
            finally:
                ticket.withdraw()  # so that a call that nobody waits for any more does not begin
        work = asyncio.ensure_future(self._run(ticket.use, job, hosted))
        work.add_done_callback(_drop)
        try:
            done, _ = await asyncio.wait({work}, timeout=seconds + TOOL_GRACE_S)
        finally:
            begun = not ticket.withdraw()  # also where whoever asked has gone
        if done:
            return cast("T", work.result())  # it has begun
        outcome = await given_up(hosted, name, seconds, work) if begun else hosted.timed_out(name, seconds, begun=False)
        return cast("T", work.result()) if outcome is None else late(outcome)

    def _run(self, job: Callable[..., T], *args: Any) -> Awaitable[T]:
        """Put a job on the thread; it is in flight from now until it is done, awaited or not."""
        with self._counting:
            self._in_flight += 1
        try:
            return self.worker.run(self._counted, job, *args)
        except SessionEndedError:
            self._landed()
            raise

    def _counted(self, job: Callable[..., T], *args: Any) -> T:
        try:
            return job(*args)
        finally:
            self._landed()

    def _landed(self) -> None:
        with self._counting:
            self._in_flight -= 1
        self.active_at = time.monotonic()


def _drop(work: asyncio.Future[Any]) -> None:
    """Let a result be nobody's, and an exception too, which asyncio else complains of."""
    work.exception()


def _is_short(request: Request | Packed, hosted: Hosted) -> bool:
    """Whether it takes as long as a step at most."""
    if isinstance(request, Packed):
        return request.kind is FrameKind.STEP
    if type(request) is Step:
        # To draw takes longer than to step, the first time as long as loading what draws.
        return request.data.get("tool_name") != "render"
    return type(request) in (_SHORT_OF_MANY if isinstance(hosted, HostedVector) else _SHORT)


def _resets(request: Request | Packed) -> bool:
    if isinstance(request, Packed):
        return request.kind is FrameKind.RESET
    return isinstance(request, Reset | VectorReset)


_SHORT = frozenset({Step, VectorStep, State})
_SHORT_OF_MANY = _SHORT - {State}
_OF_TOOLS = "what the tools may take that were called together, and a moment more,"
_TOO_LONG = "the environment took longer than {} allows; its session has ended"


async def limited(work: Awaitable[T], limit: Limit, complaint: str = _TOO_LONG) -> T:
    """What the work gives within the limit.

    Raises:
        OvertimeError: it took longer; the complaint says so, with the limit in its place.
    """
    if limit.seconds is None:
        return await work
    try:
        return await asyncio.wait_for(work, limit.seconds + limit.grace)
    except TimeoutError as error:
        raise OvertimeError(complaint.format(limit), code="SESSION_ERROR") from error
