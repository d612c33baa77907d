"""Synthetic environments that do what real ones do once in a while: every Space, odd values, odd types, failures.

Importing the module registers them as ``synthetic/…-v0``; ``"tests.exactness.synthetic:synthetic/…-v0"`` imports it.
All are deterministic given the seed, and repeat the action they were given in ``info["action"]``, so that an action
that arrives changed is seen. ``SPACE_IDS``, ``VALUE_IDS`` and ``LEGACY_IDS`` list them.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

from openenv_gym.spaces import UnicodeText

HERE = "tests.exactness.synthetic"
Space = gymnasium.Space[Any]

SPACES: dict[str, Callable[[], Space]] = {
    "BoxFloat32": lambda: spaces.Box(-1.0, 1.0, (3,), np.float32),
    "BoxFloat64": lambda: spaces.Box(-np.inf, np.inf, (2, 3), np.float64),
    "BoxFloat16": lambda: spaces.Box(-2.0, 2.0, (4,), np.float16),
    "BoxUint8Image": lambda: spaces.Box(0, 255, (4, 5, 3), np.uint8),
    "BoxInt8": lambda: spaces.Box(-128, 127, (3,), np.int8),
    "BoxInt64": lambda: spaces.Box(-(2**62), 2**62, (2,), np.int64),
    "BoxUint64": lambda: spaces.Box(0, 2**62, (2,), np.uint64),
    "BoxBool": lambda: spaces.Box(0, 1, (3,), np.bool_),
    "BoxScalar": lambda: spaces.Box(-1.0, 1.0, (), np.float32),
    "BoxEmpty": lambda: spaces.Box(-1.0, 1.0, (0,), np.float32),
    "BoxEmptyMatrix": lambda: spaces.Box(-1.0, 1.0, (2, 0, 3), np.float64),
    "BoxMixedBounds": lambda: spaces.Box(
        np.array([-np.inf, 0, -1], np.float32), np.array([np.inf, np.inf, 1], np.float32)
    ),
    "Discrete": lambda: spaces.Discrete(5),
    "DiscreteStart": lambda: spaces.Discrete(3, start=-1),
    "MultiDiscrete": lambda: spaces.MultiDiscrete([2, 3, 4]),
    "MultiDiscreteStart": lambda: spaces.MultiDiscrete([[2, 3], [4, 5]], dtype=np.int32, start=[[1, -2], [0, 7]]),
    "MultiBinary": lambda: spaces.MultiBinary(4),
    "MultiBinaryMatrix": lambda: spaces.MultiBinary([2, 3]),
    "Text": lambda: spaces.Text(8),
    "TextCharset": lambda: spaces.Text(6, min_length=0, charset='äöü ☃"\\'),
    "UnicodeText": lambda: UnicodeText(12),
    "Dict": lambda: spaces.Dict([("z", spaces.Discrete(2)), ("a", spaces.Box(0.0, 1.0, (2,), np.float32))]),
    "DictNested": lambda: spaces.Dict(
        {
            "arm": spaces.Dict({"joints": spaces.Box(-1, 1, (2,), np.float64), "grip": spaces.MultiBinary(2)}),
            "say": UnicodeText(5),
            "with space.and [brackets]": spaces.Tuple([spaces.Discrete(2), spaces.Discrete(3, start=2)]),
        }
    ),
    "Tuple": lambda: spaces.Tuple([spaces.Discrete(3), spaces.Box(-1, 1, (2,), np.float32), spaces.Text(3)]),
    "TupleEmpty": lambda: spaces.Tuple([]),
    "Sequence": lambda: spaces.Sequence(spaces.Box(-1, 1, (2,), np.float32)),
    "SequenceStack": lambda: spaces.Sequence(spaces.Box(-1, 1, (2,), np.float32), stack=True),
    "SequenceDict": lambda: spaces.Sequence(spaces.Dict({"x": spaces.Discrete(4), "t": spaces.Text(3)})),
    "Graph": lambda: spaces.Graph(spaces.Box(-1, 1, (2,), np.float32), spaces.Discrete(3)),
    "GraphNoEdges": lambda: spaces.Graph(spaces.Discrete(4), None),
    "OneOf": lambda: spaces.OneOf([spaces.Discrete(3), spaces.Box(-1, 1, (2,), np.float32), spaces.Text(4)]),
}


class Synthetic(gymnasium.Env[Any, Any]):
    """What all share: an episode of 50 steps, the action repeated in info, and no rendering."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}
    observation_space: Space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space: Space = spaces.Discrete(4)
    steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return self.observe(), {"options": options, **self.inform()}

    def step(self, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        self.steps += 1
        terminated, truncated = self.flags()
        return (
            self.observe(),
            self.reward(),
            terminated,
            truncated,
            {"action": _without_a_class(action), **self.inform()},
        )

    def observe(self) -> Any:
        return self.np_random.uniform(-1, 1, 2).astype(np.float32)

    def reward(self) -> Any:
        return float(self.np_random.normal())

    def flags(self) -> tuple[Any, Any]:
        return self.steps == 50, False

    def inform(self) -> dict[str, Any]:
        return {}

    def turn(self, values: list[Any]) -> Any:
        """The values one after the other, one a step."""
        return values[self.steps % len(values)]


def _without_a_class(action: Any) -> Any:
    """A named tuple travels in an info as a plain one, so a graph is told by its parts."""
    return action._asdict() if isinstance(action, spaces.GraphInstance) else action


class EverySpace(Synthetic):
    """One Space as action and as observation; observations are its samples."""

    def __init__(self, space: str) -> None:
        self.observation_space, self.action_space = SPACES[space](), SPACES[space]()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            self.observation_space.seed(seed)
        return super().reset(seed=seed, options=options)

    def observe(self) -> Any:
        return self.observation_space.sample()


class NonFinite(Synthetic):
    """NaN, both infinities, both zeros and the smallest and largest floats, in observations and rewards."""

    VALUES = (np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -2.5, 1.7976931348623157e308)

    def __init__(self, dtype: str = "float64") -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (2, 2), np.dtype(dtype).type)

    def observe(self) -> Any:
        with np.errstate(over="ignore"):
            return self.np_random.choice(self.VALUES, (2, 2)).astype(self.observation_space.dtype)

    def reward(self) -> Any:
        return self.turn(list(self.VALUES))


class OddArrays(Synthetic):
    """The same numbers in every layout and type an environment may give for one Box of float32."""

    observation_space = spaces.Box(-np.inf, np.inf, (2, 3), np.float32)

    def observe(self) -> Any:
        wide = self.np_random.normal(size=(4, 6)).astype(np.float32)
        exact = np.round(wide[:2, :3] * 8)
        return self.turn(
            [
                wide[::2, ::2],
                np.asfortranarray(wide[:2, :3]),
                wide[1::-1, 2::-1],
                wide[:2, :3].astype(">f4"),
                wide[:2, :3].astype(np.float64),
                self.np_random.normal(size=(2, 3)),
                exact.astype(np.int32),
                exact.astype(np.float16),
                wide[:2, :3].tolist(),
                tuple(map(tuple, wide[:2, :3].tolist())),
                np.broadcast_to(wide[0, 0], (2, 3)),
            ]
        )


class OddRewards(Synthetic):
    """Every scalar-like reward."""

    def reward(self) -> Any:
        number = float(self.np_random.normal())
        return self.turn(
            [
                3,
                True,
                None,
                2**60 + 1,
                number,
                np.float16(number),
                np.float32(number),
                np.float64(number),
                np.longdouble(number),
                np.int64(-7),
                np.uint8(200),
                np.bool_(True),
                np.array(number),
                np.array([number], np.float32),
                np.array(number).astype(">f8"),
                Fraction(1, 3),
                Decimal("0.1"),
            ]
        )


class NumpyFlags(Synthetic):
    """Flags as NumPy's bools, each end in turn."""

    def flags(self) -> tuple[Any, Any]:
        return np.bool_(self.steps == 7), np.bool_(self.steps == 7)


class RichInfo(Synthetic):
    """Infos with everything that plain JSON would lose."""

    def inform(self) -> dict[str, Any]:
        number = self.np_random.normal()
        return {
            "float32": np.float32(number),
            "float64": np.float64(number),
            "int64": np.int64(-3),
            "uint64": np.uint64(2**64 - 1),
            "bool": np.bool_(True),
            "str_": np.str_("wörld"),
            "array": np.arange(6, dtype=np.int16).reshape(2, 3),
            "scalar array": np.array(number, np.float16),
            "empty array": np.zeros((0, 3), np.float64),
            "big-endian": np.array([1.5, number], ">f8"),
            "strided": np.arange(12.0)[::3],
            "nan array": np.array([np.nan, np.inf, -np.inf, -0.0]),
            "bools": np.array([True, False]),
            "texts": np.array(["a", "ünï"]),
            "complex array": np.array([1 + 2j]),
            "tuple": (1, (2.5, "three"), [None, ()]),
            "bytes": b"\x00\xff\xfe raw",
            "nan": float("nan"),
            "infinity": -float("inf"),
            "minus zero": -0.0,
            "huge": 2**200,
            "complex": complex(1, -0.0),
            "unicode": "☃ \U0001d518 \x00 \u2028",
            "none": None,
            "nested": {1: "int key", (1, 2): "tuple key", None: "no key", 2.5: {}, False: 1.0 if number > 0 else 2},
            "numpy key": {np.int64(4): [np.int64(5)]},
            "set": frozenset({1, 2}),
            "list": [np.zeros(2, np.float32), {"deep": (np.int8(1),)}],
            "TimeLimit.truncated": False,
            "x-like": {"__type__": "ndarray", "dtype": "<f4"},
            "time": datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC),
        }


class Failing(Synthetic):
    """Raises where it is told to: ``fail_in`` names the method; action 3 always makes the step fail."""

    def __init__(self, fail_in: str = "nothing") -> None:
        self.fail_in = fail_in
        self._fail("factory")

    def _fail(self, where: str) -> None:
        if self.fail_in == where:
            raise ArithmeticError(f"synthetic failure in {where}")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._fail("reset")
        if options is not None and options.get("fail"):
            raise ArithmeticError("synthetic failure asked for by options")
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        self._fail("step")
        if action == 3:
            raise ArithmeticError("synthetic failure asked for by the action")
        return super().step(action)

    def render(self) -> Any:
        raise ArithmeticError("synthetic failure in render")

    def close(self) -> None:
        self._fail("close")


class OldSpace:
    """The base of the old Spaces: nothing of Gymnasium."""


class OldBox(OldSpace):
    def __init__(self, low: Any, high: Any) -> None:
        self.low, self.high = np.asarray(low, np.float32), np.asarray(high, np.float32)
        self.shape, self.dtype = self.low.shape, self.low.dtype


class OldDiscrete(OldSpace):
    def __init__(self, n: int) -> None:
        self.n = n


# The old classes are told by these names.
OldBox.__name__, OldDiscrete.__name__ = "Box", "Discrete"


class OldestApi:
    """The API of gym 0.21: ``seed()``, the observation alone, four values, a mode for ``render``, old Spaces."""

    metadata: ClassVar[dict[str, Any]] = {"render.modes": ["rgb_array", "ansi"], "video.frames_per_second": 15}

    def __init__(self, limit: int = 20) -> None:
        self.action_space, self.observation_space = OldDiscrete(3), OldBox([-1.0, -1.0], [1.0, 1.0])
        self.limit, self.steps = limit, 0
        self.random = np.random.RandomState()

    def seed(self, seed: int | None = None) -> list[int | None]:
        self.random = np.random.RandomState(seed)
        return [seed]

    def reset(self) -> Any:
        self.steps = 0
        return self._observe()

    def step(self, action: int) -> tuple[Any, float, bool, dict[str, Any]]:
        self.steps += 1
        info: dict[str, Any] = {"action": action}
        done = bool(self.random.uniform() > 0.95)
        if self.steps >= self.limit:
            info["TimeLimit.truncated"] = not done
            done = True
        return self._observe(), float(self.random.normal()), done, info

    def _observe(self) -> Any:
        return self.random.uniform(-1, 1, 2).astype(np.float32)

    def render(self, mode: str = "human") -> Any:
        return np.full((2, 2, 3), self.steps, np.uint8) if mode == "rgb_array" else f"{mode} {self.steps}"


class MiddleApi(OldestApi):
    """The API of gym 0.22 to 0.25: the seed goes to reset, which returns info only where it is asked for."""

    def reset(  # type: ignore[override]
        self, *, seed: int | None = None, return_info: bool = False, options: dict[str, Any] | None = None
    ) -> Any:
        if seed is not None:
            self.seed(seed)
        obs = super().reset()
        return (obs, {"options": options}) if return_info else obs


class NewestApi(OldestApi):
    """The API of gym 0.26: Gymnasium's own in all but the classes."""

    def __init__(self, limit: int = 20, render_mode: str | None = None) -> None:
        super().__init__(limit)
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:  # type: ignore[override]
        if seed is not None:
            self.seed(seed)
        return super().reset(), {"options": options}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # type: ignore[override]
        obs, reward, done, info = super().step(action)
        truncated = info.pop("TimeLimit.truncated", False)
        return obs, reward, done and not truncated, truncated, info

    def render(self) -> Any:  # type: ignore[override]
        return super().render(str(self.render_mode))


class SeedlessApi(OldestApi):
    """An old environment that takes a seed nowhere."""

    seed = None  # type: ignore[assignment]

    def reset(self) -> Any:
        self.random = np.random.RandomState(0)
        return super().reset()


SPACE_IDS = [f"synthetic/{name}-v0" for name in SPACES]
VALUE_IDS = [
    "synthetic/NonFinite-v0",
    "synthetic/NonFiniteFloat32-v0",
    "synthetic/NonFiniteFloat16-v0",
    "synthetic/OddArrays-v0",
    "synthetic/OddRewards-v0",
    "synthetic/NumpyFlags-v0",
    "synthetic/RichInfo-v0",
]
LEGACY_IDS = [f"synthetic/{name}-v0" for name in ("OldestApi", "MiddleApi", "NewestApi", "SeedlessApi")]
"""These can be made by a server alone: ``gymnasium.make`` refuses what is no ``gymnasium.Env``."""


def _register() -> None:
    for name in SPACES:
        gymnasium.register(f"synthetic/{name}-v0", f"{HERE}:EverySpace", kwargs={"space": name}, max_episode_steps=40)
    for dtype in ("Float32", "Float16"):
        gymnasium.register(f"synthetic/NonFinite{dtype}-v0", f"{HERE}:NonFinite", kwargs={"dtype": dtype.lower()})
    for name in ("NonFinite", "OddArrays", "OddRewards", "NumpyFlags", "RichInfo", "Failing"):
        gymnasium.register(f"synthetic/{name}-v0", f"{HERE}:{name}")
    for name in ("OldestApi", "MiddleApi", "NewestApi", "SeedlessApi"):
        gymnasium.register(f"synthetic/{name}-v0", f"{HERE}:{name}", max_episode_steps=30)


if SPACE_IDS[0] not in gymnasium.registry:
    _register()
