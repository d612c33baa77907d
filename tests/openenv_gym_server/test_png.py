"""Frames as PNG images, read back by another library's decoder."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from openenv_gym.errors import ValueMappingError
from openenv_gym_server.png import image_content, is_pixels, png_bytes


def decoded(data):
    with Image.open(io.BytesIO(data)) as image:
        image.verify()
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image)


@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (4, 6, 2), (4, 6, 3), (6, 4, 4), (210, 160, 3)])
def test_an_image_holds_every_pixel(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    assert np.array_equal(decoded(png_bytes(pixels)), pixels)


def test_one_channel_is_grey():
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4, 1)
    assert np.array_equal(decoded(png_bytes(pixels)), pixels[:, :, 0])


def test_an_array_that_is_not_contiguous_is_taken_as_it_looks():
    pixels = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)[::-1, ::2]
    assert np.array_equal(decoded(png_bytes(pixels)), pixels)


@pytest.mark.parametrize(
    "value",
    [
        np.zeros((2, 2)),
        np.zeros((2, 2, 5), np.uint8),
        np.zeros(4, np.uint8),
        np.zeros((0, 2), np.uint8),
        [[1, 2]],
        None,
    ],
    ids=["floats", "five channels", "one dimension", "no pixel", "a list", "None"],
)
def test_what_is_no_array_of_pixels_is_refused(value):
    assert not is_pixels(value)
    with pytest.raises(ValueMappingError, match="expected pixels as a uint8 array"):
        png_bytes(value)


def test_the_item_of_a_result_holds_the_image_in_base64():
    pixels = np.full((3, 3, 3), 7, np.uint8)
    content = image_content(pixels)
    assert (content["type"], content["mimeType"]) == ("image", "image/png")
    assert np.array_equal(decoded(base64.b64decode(content["data"], validate=True)), pixels)
