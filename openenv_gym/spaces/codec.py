"""``ValueCodec``, between the samples of one Space and their JSON, and the fault that travels up through it.

Not for the Spaces themselves: ``arrays.py`` and ``leaves.py`` have the numeric and text codecs, ``values.py`` the
composite ones and ``codec_for``, ``fields.py`` those that a JSON Schema alone asks for.

A codec does its work in ``write``, ``read`` and ``check``, which know no paths. A fault is raised where it is found and
collects its path on the way up, so that the way of a good value builds no strings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence as PySequence
from typing import Any

import numpy as np
from gymnasium.spaces import Space

from openenv_gym.errors import ValueMappingError
from openenv_gym.json_text import JSON

__all__ = ["Fault", "ValueCodec", "describe", "each", "every", "length", "under"]


class Fault(Exception):  # noqa: N818 - inside this package only, where it becomes a ValueMappingError
    """A value that does not fit, with the part of its path known so far."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(expected, got)
        self.expected = expected
        self.got = got
        self.path = ""

    def under(self, step: str) -> Fault:
        """The same fault, seen from one level further up."""
        self.path = step + self.path
        return self

    def error(self, root: str) -> ValueMappingError:
        """The public error."""
        path = root + self.path
        return ValueMappingError(f"expected {self.expected} at {path}, got {self.got}", path=path)


class ValueCodec(ABC):
    """Takes the samples of one Space to JSON and back; made once per Space by ``codec_for``.

    The JSON form: arrays are nested lists, ``Discrete`` is its true value (``start`` included), ``Text`` a string,
    ``Dict`` an object in the Space's key order, ``Tuple`` and ``Sequence`` (stacked or not) are lists, ``Graph`` is
    ``{"nodes", "edges", "edge_links"}``, ``OneOf`` is ``[index, value]``. Where a Space is floating, ``"NaN"``,
    ``"Infinity"`` and ``"-Infinity"`` stand for what JSON has no number for; a NaN stays a NaN, but its sign and
    payload are not kept.

    Example:
        >>> import numpy as np
        >>> from gymnasium.spaces import Box
        >>> from openenv_gym.spaces import codec_for
        >>> codec = codec_for(Box(-1, 1, (2,), np.float32))
        >>> codec.encode(np.array([0.5, np.nan], np.float32))
        [0.5, 'NaN']
        >>> codec.decode([0.5, "Infinity"])
        array([0.5, inf], dtype=float32)
    """

    __slots__ = ("space",)
    space: Space[Any]

    def encode(self, sample: Any, path: str = "$") -> JSON:
        """The JSON of a sample.

        Takes what environments return for the Space: its own dtype, any other that casts without losing an integer,
        Python numbers, lists and tuples for arrays. Floats are cast to the Space's dtype first.

        Args:
            sample: a value of the Space.
            path: the place of the value in its message, for the error.

        Raises:
            ValueMappingError: it has another shape, lacks a key, is no number, is not finite or has a fraction where
                the Space is not floating, or overflows the Space's dtype.
        """
        try:
            return self.write(sample)
        except Fault as fault:
            raise fault.error(path) from None

    def decode(self, value: JSON, path: str = "$") -> Any:
        """The sample of a JSON value, with the Space's dtype and shape.

        Bounds are not checked: an observation may lie outside its Space, and is still what the environment said.

        Args:
            value: what ``encode`` gives, or what a peer sent in its place.
            path: the place of the value in its message, for the error.

        Raises:
            ValueMappingError: it has another type or shape, unknown or missing keys, a null, or does not fit the
                Space's dtype.
        """
        try:
            return self.read(value)
        except Fault as fault:
            raise fault.error(path) from None

    def decode_member(self, value: JSON, path: str = "$") -> Any:
        """The sample of a JSON value that must lie in the Space.

        Args:
            value: what ``encode`` gives, or what a peer sent in its place.
            path: the place of the value in its message, for the error.

        Raises:
            ValueMappingError: as ``decode``; or the sample is outside the Space: then the path is that of the first
                offending element, and the message has the value and the bounds.
        """
        try:
            sample = self.read(value)
            self.check(sample)
        except Fault as fault:
            raise fault.error(path) from None
        return sample

    def cast(self, sample: Any, path: str = "$") -> Any:
        """The sample with the Space's dtypes and shapes: what ``decode`` would make of what ``encode`` gives.

        Args:
            sample: a value of the Space, as ``encode`` takes it.
            path: the place of the value in its message, for the error.

        Raises:
            ValueMappingError: as ``encode``.
        """
        try:
            return self.exact(sample)
        except Fault as fault:
            raise fault.error(path) from None

    def require_member(self, sample: Any, path: str = "$") -> None:
        """Make sure that a sample, which has the Space's dtypes and shapes, lies in the Space.

        Args:
            sample: what ``decode`` or ``cast`` gives.
            path: the place of the value in its message, for the error.

        Raises:
            ValueMappingError: it does not; as ``decode_member``.
        """
        try:
            self.check(sample)
        except Fault as fault:
            raise fault.error(path) from None

    def dtype_note(self, sample: Any) -> str | None:
        """What to tell the author of an environment whose sample is cast to the Space's dtype; None where it is not."""
        return self.note(sample, "$")

    @abstractmethod
    def write(self, sample: Any) -> JSON:
        """``encode`` for the codec around this one: no path, raises ``Fault``."""

    def exact(self, sample: Any) -> Any:
        """``cast`` for the codec around this one: no path, raises ``Fault``."""
        return self.read(self.write(sample))

    @abstractmethod
    def read(self, value: JSON) -> Any:
        """``decode`` for the codec around this one: no path, raises ``Fault``."""

    @abstractmethod
    def check(self, sample: Any) -> None:
        """Raise ``Fault`` where the decoded sample is outside the Space."""

    def note(self, sample: Any, path: str) -> str | None:  # noqa: ARG002 - text has no dtype to note
        """``dtype_note`` for the codec around this one."""
        return None


def each(calls: PySequence[Any], items: Any) -> list[Any]:
    """Each item through its own call; a fault gets the item's place."""
    results: list[Any] = []
    try:
        # extend keeps what came before a fault, and so knows its place.
        results.extend(call(item) for call, item in zip(calls, items, strict=True))
    except Fault as fault:
        raise fault.under(f"[{len(results)}]") from None
    return results


def every(call: Any, items: Any) -> list[Any]:
    """Every item through one call; a fault gets the item's place."""
    results: list[Any] = []
    try:
        # extend keeps what came before a fault, and so knows its place.
        results.extend(map(call, items))
    except Fault as fault:
        raise fault.under(f"[{len(results)}]") from None
    return results


def length(sample: Any) -> str:
    """``describe``, for where a tuple of a length is expected."""
    return f"a tuple of {len(sample)}" if isinstance(sample, tuple) else describe(sample)


def under(step: str, call: Any, *arguments: Any) -> Any:
    """The result of the call; a fault gets the step."""
    try:
        return call(*arguments)
    except Fault as fault:
        raise fault.under(step) from None


def describe(value: object) -> str:
    """A value in a few words, for error messages; never fails and never runs long."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        # Python itself refuses to print what is longer.
        return f"the integer {value}" if value.bit_length() < 512 else f"an integer of {value.bit_length()} bits"
    if isinstance(value, float):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the string {value!r}" if len(value) <= 60 else f"the string {value[:60]!r}…"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"an object of {len(value)}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    return f"a {type(value).__name__}"
