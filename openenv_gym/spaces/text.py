"""``UnicodeText``: the Space of real text.

For text observations and actions, where ``gymnasium.spaces.Text`` and its listed characters would refuse most of what
people and language models write. Not for a fixed alphabet: that is what ``Text`` itself is for.

It is a ``Text``, so Gymnasium's batching, flattening and shared memory work on it; its characters are all Unicode
scalar values, counted rather than stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any, overload

import numpy as np
from gymnasium.spaces import Text

__all__ = ["DEFAULT_MAX_LENGTH", "UnicodeText", "is_scalar_text"]

DEFAULT_MAX_LENGTH = 1_048_576
"""Characters a ``UnicodeText`` holds where nothing else is said."""

SAMPLE_SPAN = 32
"""How many characters a sample may be longer than the shortest text of its Space."""

_FIRST_SURROGATE = 0xD800
_SURROGATES = 0x800
_SCALARS = 0x110000 - _SURROGATES

# All printable, from one to four bytes in UTF-8, so that a sampled text exercises every width.
_SAMPLED = (
    "".join(chr(code) for code in range(0x20, 0x7F))
    + "äöüßéñçøåÆŁžαβγδλωЖдяшіקשאبحسहिन日本語文字中国한국어€→≤∞♞✓😀🚀🧪𝛑𐍈"
)


def is_scalar_text(text: str) -> bool:
    """Whether the text has no lone surrogate, which UTF-8 and therefore JSON cannot carry."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _ScalarList(Sequence[str]):
    """Every Unicode scalar value in order, without holding them."""

    __slots__ = ()

    def __len__(self) -> int:
        return _SCALARS

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return tuple(map(_scalar, range(*index.indices(_SCALARS))))
        if not -_SCALARS <= index < _SCALARS:
            raise IndexError(f"expected an index below {_SCALARS}, got {index}")
        return _scalar(int(index) % _SCALARS)


class _ScalarSet(AbstractSet[str]):
    """The same as a set; every two are equal."""

    __slots__ = ()

    def __contains__(self, item: object) -> bool:
        return isinstance(item, str) and len(item) == 1 and is_scalar_text(item)

    def __iter__(self) -> Iterator[str]:
        return map(_scalar, range(_SCALARS))

    def __len__(self) -> int:
        return _SCALARS

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ScalarSet)

    def __hash__(self) -> int:
        return hash(_ScalarSet)


def _scalar(index: int) -> str:
    return chr(index if index < _FIRST_SURROGATE else index + _SURROGATES)


@cache
def _all_scalars() -> str:
    # Gymnasium takes the first character of it for every empty array, so it has to be fast and made once.
    codes = np.arange(_SCALARS, dtype="<u4")
    codes[_FIRST_SURROGATE:] += _SURROGATES
    return codes.tobytes().decode("utf-32-le")


class UnicodeText(Text):
    r"""Any string of Unicode scalar values within a length, both bounds included and counted in characters.

    A string with a lone surrogate is not contained: no UTF-8 text can carry it. Samples are printable, seeded, of
    modest length (at most ``SAMPLE_SPAN`` above ``min_length``) and not all ASCII. Flattening gives ``max_length``
    int32 indices into ``character_list``, as it does for ``Text``; choose a modest ``max_length`` before flattening
    or sharing memory.

    Args:
        max_length: the most characters.
        min_length: the fewest characters.
        seed: the seed of ``sample``, or a generator.

    Raises:
        TypeError: a length is not an integer.
        ValueError: ``min_length`` is negative or above ``max_length``.

    Example:
        >>> from openenv_gym.spaces import UnicodeText
        >>> space = UnicodeText(20)
        >>> "naïve, 日本 🚀" in space, "x" * 21 in space, "\ud800" in space
        (True, False, False)
        >>> space
        UnicodeText(20)
    """

    _samples: tuple[str, ...] = ()

    def __init__(
        self,
        max_length: int = DEFAULT_MAX_LENGTH,
        *,
        min_length: int = 0,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        for name, length in (("max_length", max_length), ("min_length", min_length)):
            if isinstance(length, bool) or not isinstance(length, int | np.integer):
                raise TypeError(f"expected {name} to be an integer, got {type(length).__name__}")
        if not 0 <= min_length <= max_length:
            raise ValueError(f"expected 0 <= min_length <= max_length, got {min_length} and {max_length}")
        super().__init__(int(max_length), min_length=int(min_length), charset="", seed=seed)

    @classmethod
    def sampling(cls, *texts: str) -> UnicodeText:
        """A ``UnicodeText`` like any other, whose samples are out of these texts: for text that has to mean something.

        Example:
            >>> space = UnicodeText.sampling("{}")
            >>> space.sample(), "anything" in space, space == UnicodeText()
            ('{}', True, True)
        """
        space = cls()
        space._samples = texts
        return space

    def sample(
        self,
        mask: tuple[int | None, Any] | None = None,
        probability: tuple[int | None, Any] | None = None,
    ) -> str:
        """A random printable text.

        Args:
            mask: ``(length, None)`` fixes the length, as for ``Text``; characters cannot be masked.
            probability: the same.

        Raises:
            ValueError: both were given, the length is outside the Space, or characters were masked.
        """
        if self._samples and mask is None and probability is None:
            return self._samples[int(self.np_random.integers(len(self._samples)))]
        length = self._sample_length(mask, probability)
        picks = self.np_random.integers(0, len(_SAMPLED), size=length)
        return "".join([_SAMPLED[pick] for pick in picks])

    def _sample_length(self, mask: tuple[int | None, Any] | None, probability: tuple[int | None, Any] | None) -> int:
        if mask is not None and probability is not None:
            raise ValueError("expected a mask or a probability, got both; give one of them")
        length, characters = mask or probability or (None, None)
        if characters is not None:
            raise ValueError(
                "expected no mask of characters: UnicodeText does not list its characters; use Text to mask some"
            )
        if length is None:
            longest = min(self.max_length, self.min_length + SAMPLE_SPAN)
            return int(self.np_random.integers(self.min_length, longest + 1))
        if not self.min_length <= length <= self.max_length:
            raise ValueError(f"expected a length from {self.min_length} to {self.max_length}, got {length}")
        return int(length)

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a string within the length and without a lone surrogate."""
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length and is_scalar_text(x)

    @property
    def character_set(self) -> AbstractSet[str]:  # type: ignore[override]  # not a frozenset or tuple: nothing is held
        """All Unicode scalar values, as a set that holds none of them."""
        return _ScalarSet()

    @property
    def character_list(self) -> Sequence[str]:  # type: ignore[override]  # not a frozenset or tuple: nothing is held
        """All Unicode scalar values in order, as a sequence that holds none of them."""
        return _ScalarList()

    def character_index(self, char: str) -> np.int32:
        """The place of a character in ``character_list``.

        Raises:
            KeyError: it is not one Unicode scalar value.
        """
        if char not in self.character_set:
            raise KeyError(char)
        code = ord(char)
        return np.int32(code if code < _FIRST_SURROGATE else code - _SURROGATES)

    @property
    def characters(self) -> str:
        """All Unicode scalar values in one string of 1,112,064 characters, made when first asked for and kept."""
        return _all_scalars()

    def __repr__(self) -> str:
        """The call that makes an equal Space."""
        return f"UnicodeText({self.max_length}{f', min_length={self.min_length}' if self.min_length else ''})"

    def __eq__(self, other: object, /) -> bool:
        """Whether the other is a ``UnicodeText`` of the same lengths; never equal to a plain ``Text``."""
        return (
            isinstance(other, UnicodeText)
            and self.min_length == other.min_length
            and self.max_length == other.max_length
        )

    def __hash__(self) -> int:
        """Equal Spaces hash alike."""
        return hash((UnicodeText, self.min_length, self.max_length))
