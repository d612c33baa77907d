"""What an environment may do to an observation before it is answered: one callable class, and how to chain several.

An environment applies its own with ``Environment._apply_transform``; nothing is applied for it. Not for a client's
wrappers, which see what crosses the wire.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

__all__ = ["CompositeTransform", "NullTransform", "Transform"]

ObsT = TypeVar("ObsT")


class Transform(ABC, Generic[ObsT]):
    """An observation in, an observation out: with a reward, a measurement, or other fields.

    Example:
        >>> from openenv_gym.types import Observation
        >>> class Rewarded(Transform[Observation]):
        ...     def __call__(self, observation):
        ...         observation.reward = 1.0
        ...         return observation
        >>> Rewarded()(Observation()).reward
        1.0
    """

    @abstractmethod
    def __call__(self, observation: ObsT) -> ObsT:
        """The observation that is answered instead, or the same one."""


class NullTransform(Transform[Any]):
    """Leaves an observation as it is.

    Example:
        >>> NullTransform()("as it was")
        'as it was'
    """

    def __call__(self, observation: Any) -> Any:
        """The same observation."""
        return observation


class CompositeTransform(Transform[Any]):
    """Several transforms, one after another; none at all leaves an observation as it is.

    Args:
        transforms: transforms or other callables, the first one first.

    Example:
        >>> CompositeTransform([str.strip, str.upper])(" hello ")
        'HELLO'
    """

    def __init__(self, transforms: Iterable[Callable[[Any], Any]]) -> None:
        self.transforms = list(transforms)

    def __call__(self, observation: Any) -> Any:
        """The observation after all of them."""
        for transform in self.transforms:
            observation = transform(observation)
        return observation
