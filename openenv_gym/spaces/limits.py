"""What a document of a peer may ask for: how deep it may nest, and how much memory its Spaces may take.

For ``deserialize.py`` and ``mapping.py``, which build Spaces from a peer's words. Not for the samples of a Space: each
has the size its Space says.
"""

from __future__ import annotations

from openenv_gym.errors import SpaceMappingError

__all__ = [
    "BYTES_PER_CHARACTER",
    "BYTES_PER_SAMPLED",
    "BYTES_PER_SPACE",
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_DIMENSIONS",
    "Budget",
]

MAX_DEPTH = 64
"""How deep Spaces, schemas and tagged values may nest."""

MAX_DIMENSIONS = 32
"""Dimensions an array may have; NumPy's own limit before 2.0."""

MAX_BYTES = 2**28
"""Bytes that all the Spaces of one document together may take: a few words can ask for arrays of any size."""

BYTES_PER_SPACE = 2**14
"""What a Space is counted as, its arrays apart. It is more than one takes, because it also bounds the time: by
references a short schema can repeat a part of itself without end."""

BYTES_PER_CHARACTER = 256
"""What each character of a charset is counted as: Gymnasium keeps it in a string, a set, a tuple and a table."""

BYTES_PER_SAMPLED = 16
"""What each character of a sample is counted as: it is picked as a number first."""


class Budget:
    """The bytes one document may still ask for.

    Args:
        size: how many there are at first.
    """

    __slots__ = ("_left", "_size")

    def __init__(self, size: int = MAX_BYTES) -> None:
        self._left = self._size = size

    def take(self, size: int, path: str) -> None:
        """Count bytes before they are allocated.

        Raises:
            SpaceMappingError: there are not so many left; ``path`` is the place that asked.
        """
        if size > self._left:
            raise SpaceMappingError(
                f"expected Spaces of at most {self._size} bytes in all, got more at {path}; "
                "pass the Space itself instead",
                path=path,
            )
        self._left -= size
