"""Frames as PNG images, and as what an MCP client shows; written with the standard library alone.

Not for what a tool's other results look like (``tool_results.py``).

Source of the format: PNG (W3C, third edition), sections 5, 7, 9 and 11.
"""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from openenv_gym.errors import ValueMappingError
from openenv_gym.json_text import JSONObject

__all__ = ["image_content", "is_pixels", "png_bytes"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
"""By the number of channels: grey, grey and alpha, RGB, RGB and alpha."""

_LEVEL = 3
"""Of zlib: a frame of flat colours is hardly smaller above, and a noisy one takes several times as long."""


def png_bytes(pixels: object) -> bytes:
    """The PNG image of an array of pixels.

    Args:
        pixels: uint8, of shape (height, width) for grey, or (height, width, channels) with 1 (grey), 2 (grey, alpha),
            3 (RGB) or 4 (RGBA) channels; at least one pixel.

    Raises:
        ValueMappingError: it is no such array.

    Example:
        >>> png_bytes(np.zeros((2, 3, 3), np.uint8))[1:4]
        b'PNG'
    """
    if not is_pixels(pixels):
        got = f"{pixels.dtype} of shape {pixels.shape}" if isinstance(pixels, np.ndarray) else type(pixels).__name__
        raise ValueMappingError(
            f"expected pixels as a uint8 array of shape (height, width) or (height, width, 1 to 4), got {got}", path="$"
        )
    height, width = pixels.shape[:2]
    rows = np.ascontiguousarray(pixels).reshape(height, -1)
    channels = rows.shape[1] // width
    # Each row begins with the number of its filter; 0 is none.
    lines = np.zeros((height, 1 + rows.shape[1]), np.uint8)
    lines[:, 1:] = rows
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOR_TYPES[channels], 0, 0, 0)
    body = zlib.compress(lines.tobytes(), _LEVEL)
    return b"".join((_SIGNATURE, _chunk(b"IHDR", header), _chunk(b"IDAT", body), _chunk(b"IEND", b"")))


def is_pixels(value: object) -> TypeGuard[NDArray[Any]]:
    """Whether a value is an array that ``png_bytes`` takes.

    Example:
        >>> is_pixels(np.zeros((2, 3, 3), np.uint8)), is_pixels(np.zeros((2, 3, 3)))
        (True, False)
    """
    if not isinstance(value, np.ndarray) or value.dtype != np.uint8 or value.size == 0:
        return False
    return value.ndim == 2 or (value.ndim == 3 and value.shape[2] in _COLOR_TYPES)


def image_content(pixels: object) -> JSONObject:
    """The item of a tool's ``content`` that shows an array of pixels.

    Raises:
        ValueMappingError: as ``png_bytes``.
    """
    return {"type": "image", "data": base64.b64encode(png_bytes(pixels)).decode(), "mimeType": "image/png"}


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
