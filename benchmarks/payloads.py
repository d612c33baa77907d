"""Large observations in one vector session: frames of 28 kB and texts of 4 kB."""

from __future__ import annotations

import contextlib
import math

from benchmarks.envs import SHAPE, TEXT_LENGTH
from benchmarks.pairs import Bound, Comparison, Measure, Row, Scale, compare
from benchmarks.rollouts import RawSocket, StockClients, lockstep, remote
from benchmarks.servers import event_loop, ours, peer

# A step there and back: the header, and for each environment the action; reward, two flags and the frame.
_HEADER, _ACTION, _FLAGS = 16, 8, 8 + 1 + 1


def run_frames(scale: Scale) -> list[Row]:
    """The rows of frames."""
    num_envs = 2 if scale.quick else 16
    sizes = (_HEADER + num_envs * _ACTION, _HEADER + num_envs * (_FLAGS + math.prod(SHAPE)))
    with contextlib.ExitStack() as stack:
        frames = _vector(stack, "benchmarks.envs:Frames", num_envs, scale)
        raw = RawSocket(stack.enter_context(peer("raw")).url, num_envs, sizes)
        stack.callback(raw.close)
        work = f"{num_envs} envs, {'×'.join(map(str, SHAPE))} uint8 frames, one vector session, sync ({event_loop()})"
        stock = f"stock openenv, {num_envs} async clients"
        lines: list[tuple[str, Measure, Bound | None, float | None]] = [
            (f"{stock}, nested lists", _stock(stack, "stock-frames", num_envs, scale), ("≥", 300), 1000),
            (f"{stock}, base64", _stock(stack, "stock-base64", num_envs, scale), None, None),
            ("raw socket, the same bytes", lambda: raw.measure(scale.seconds).rate, ("≥", 0.15), 0.4),
        ]
        return [
            compare(Comparison(work, against, "steps/s", frames, theirs, must, goal), scale.pairs)
            for against, theirs, must, goal in lines
        ]


def run_texts(scale: Scale) -> list[Row]:
    """The row of texts."""
    num_envs = 2 if scale.quick else 64
    with contextlib.ExitStack() as stack:
        texts = _vector(stack, "benchmarks.envs:Texts", num_envs, scale)
        stock = _stock(stack, "stock-texts", num_envs, scale)
        work = f"{num_envs} envs, texts of {TEXT_LENGTH:,} characters, one vector session, sync ({event_loop()})"
        against = f"stock openenv, {num_envs} async clients"
        return [compare(Comparison(work, against, "steps/s", texts, stock, ("≥", 10), 20), scale.pairs)]


def _vector(stack: contextlib.ExitStack, target: str, num_envs: int, scale: Scale) -> Measure:
    url = stack.enter_context(ours(target)).url
    envs = stack.enter_context(remote(url, num_envs, vectorization="sync"))
    return lambda: lockstep(envs, scale.seconds).rate


def _stock(stack: contextlib.ExitStack, kind: str, num_envs: int, scale: Scale) -> Measure:
    clients = StockClients(stack.enter_context(peer(kind)).url, num_envs)
    stack.callback(clients.close)
    return lambda: clients.each_for_itself(scale.seconds).rate
