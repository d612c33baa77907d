"""Spaces of the old ``gym`` API as Gymnasium Spaces.

Told apart by the name and the attributes of their class, so that neither ``gym`` nor any particular release of it is
imported. Not for values: a sample of an old Space is a sample of the new one. Neighbour: ``legacy.py``, which adapts
the environments themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import gymnasium
from gymnasium import spaces

from openenv_gym.errors import SpaceMappingError

__all__ = ["modern_space"]

Space: TypeAlias = gymnasium.Space[Any]


def modern_space(space: object, path: str = "$") -> Space:
    """The Gymnasium Space that equals an old one; a Gymnasium Space is returned as it is.

    Args:
        space: a Space of Gymnasium, or any object whose class is named like one of ``gym``'s and has its attributes.
        path: where the Space stands, for the error.

    Raises:
        SpaceMappingError: the class is none of those that have a counterpart, or its attributes do not fit.

    Example:
        >>> class Discrete:
        ...     n = 3
        >>> modern_space(Discrete())
        Discrete(3)
    """
    if isinstance(space, gymnasium.Space):
        return space
    for base in type(space).__mro__:
        convert = _CONVERSIONS.get(base.__name__)
        if convert is not None:
            return _converted(convert, space, path)
    raise SpaceMappingError(
        f"expected a Space of Gymnasium or of the old gym API ({', '.join(_CONVERSIONS)}) at {path}, "
        f"got {type(space).__module__}.{type(space).__qualname__}; give the environment a Space of these classes",
        path=path,
    )


def _converted(convert: Callable[[Any, str], Space], space: object, path: str) -> Space:
    try:
        return convert(space, path)
    except SpaceMappingError:
        raise
    except (AttributeError, TypeError, ValueError, AssertionError) as error:
        raise SpaceMappingError(
            f"expected the attributes of a gym {type(space).__name__} at {path}: {error}", path=path
        ) from error


def _box(space: Any, path: str) -> Space:
    del path
    return spaces.Box(low=space.low, high=space.high, shape=tuple(space.shape), dtype=space.dtype)


def _discrete(space: Any, path: str) -> Space:
    del path
    return spaces.Discrete(int(space.n), start=int(getattr(space, "start", 0)))


def _multi_discrete(space: Any, path: str) -> Space:
    del path
    return spaces.MultiDiscrete(space.nvec, dtype=getattr(space, "dtype", None) or "int64")


def _multi_binary(space: Any, path: str) -> Space:
    del path
    size = space.n
    return spaces.MultiBinary(int(size) if not hasattr(size, "__len__") else [int(length) for length in size])


def _text(space: Any, path: str) -> Space:
    del path
    return spaces.Text(
        max_length=int(space.max_length),
        min_length=int(space.min_length),
        charset="".join(space.character_list),
    )


def _tuple(space: Any, path: str) -> Space:
    return spaces.Tuple([modern_space(part, f"{path}[{index}]") for index, part in enumerate(space.spaces)])


def _dict(space: Any, path: str) -> Space:
    parts: Mapping[str, object] = space.spaces
    # Pairs, because a plain dict would lose the order of an old Dict that Gymnasium sorts.
    return spaces.Dict([(name, modern_space(part, f"{path}.{name}")) for name, part in parts.items()])


def _sequence(space: Any, path: str) -> Space:
    return spaces.Sequence(modern_space(space.feature_space, f"{path}[]"))


def _graph(space: Any, path: str) -> Space:
    edges = None if space.edge_space is None else modern_space(space.edge_space, f"{path}.edges")
    nodes = modern_space(space.node_space, f"{path}.nodes")
    return spaces.Graph(nodes, edges)


_CONVERSIONS: dict[str, Callable[[Any, str], Space]] = {
    "Box": _box,
    "Discrete": _discrete,
    "MultiDiscrete": _multi_discrete,
    "MultiBinary": _multi_binary,
    "Text": _text,
    "Tuple": _tuple,
    "Dict": _dict,
    "Sequence": _sequence,
    "Graph": _graph,
}
