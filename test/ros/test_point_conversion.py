# SPDX-License-Identifier: Apache-2.0
"""Pictures and clouds there and back, in every encoding that is understood; everything else refused by field."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sensor_msgs.msg import PointField

from supple.errors import CalibrationError, FrameError
from supple.nodes.conversion import nanoseconds
from supple.nodes.point_conversion import (
    camera_info_message,
    cloud_message,
    color_of,
    depth_of,
    image_message,
    intrinsics_of,
    labels_of,
    points_of,
)

RNG = np.random.default_rng(4)
RGB = RNG.integers(0, 256, (5, 7, 3), np.uint8)
ALPHA = np.full((5, 7, 1), 9, np.uint8)


@pytest.mark.parametrize(
    ("encoding", "pixels"),
    [
        ("rgb8", RGB),
        ("bgr8", RGB[..., ::-1]),
        ("rgba8", np.concatenate([RGB, ALPHA], axis=2)),
        ("bgra8", np.concatenate([RGB[..., ::-1], ALPHA], axis=2)),
    ],
)
def test_colours_come_out_as_rgb(encoding, pixels):
    message = image_message(3, "eye", encoding, pixels)
    assert (message.width, message.height, message.step) == (7, 5, 7 * pixels.shape[2])
    assert isinstance(message.data, array)
    np.testing.assert_array_equal(color_of(message), RGB)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("read", "encoding", "dtype"),
    [
        (depth_of, "16UC1", np.uint16),
        (depth_of, "mono16", np.uint16),
        (depth_of, "32FC1", np.float32),
        (labels_of, "mono8", np.uint8),
        (labels_of, "8UC1", np.uint8),
        (labels_of, "16UC1", np.uint16),
        (labels_of, "32SC1", np.int32),
    ],
)
def test_numbers_come_out_whatever_their_byte_order(read, encoding, dtype, swapped):
    pixels = RNG.integers(0, 200, (4, 6)).astype(dtype) * (dtype(1) if dtype is np.uint8 else dtype(7))
    stored = pixels.astype(np.dtype(dtype).newbyteorder(">")) if swapped else pixels
    message = image_message(3, "eye", encoding, stored)
    message.is_bigendian = int(swapped)
    found = read(message)
    if read is depth_of:
        found, name = found
        assert name == ("32FC1" if dtype is np.float32 else "16UC1")
    np.testing.assert_array_equal(found, pixels)
    assert found.dtype == np.dtype(dtype)


def test_rows_with_padding_are_read_without_it():
    wide = np.pad(RGB.reshape(5, 21), ((0, 0), (0, 11)), constant_values=255)
    message = image_message(3, "eye", "rgb8", wide)
    message.width = 7
    np.testing.assert_array_equal(color_of(message), RGB)


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("encoding", "yuv422", "encoding"),
        ("encoding", "", "encoding"),
        ("height", 0, "size"),
        ("width", 0, "size"),
        ("step", 20, "step"),
        ("step", 40, "data"),
        ("width", 8, "step"),
        ("height", 6, "data"),
        ("data", array("B"), "data"),
    ],
)
def test_an_image_that_contradicts_itself_is_refused_by_field(field, value, named):
    message = image_message(3, "eye", "rgb8", RGB)
    setattr(message, field, value)
    with pytest.raises(FrameError) as caught:
        color_of(message, "color")
    assert (caught.value.source, caught.value.field) == ("color", named)


def test_calibration_there_and_back():
    message = camera_info_message(7, "eye", (600.0, 610.0, 320.5, 239.5), 640, 480)
    found = intrinsics_of(message)
    assert (found.fx, found.fy, found.cx, found.cy, found.width, found.height) == (600.0, 610.0, 320.5, 239.5, 640, 480)
    assert found.distortion == ()
    assert nanoseconds(message.header.stamp) == 7
    message.k = [0.0] * 9
    assert intrinsics_of(message).fx == 600.0, "P is valid"
    message.p = [0.0] * 12
    with pytest.raises(CalibrationError, match="uncalibrated"):
        intrinsics_of(message)


@given(data=st.data(), count=st.integers(0, 40))
def test_clouds_there_and_back(data, count):
    points = data.draw(arrays.arrays(np.float32, (count, 3), elements=st.floats(-1e3, 1e3, width=32)))
    colors = data.draw(arrays.arrays(np.uint8, (count, 3)))
    objects = data.draw(arrays.arrays(np.uint32, count))
    message = cloud_message(1_500_000_000, "base_link", points, colors, objects)
    assert (message.width, message.height, message.point_step) == (count, 1, 20)
    assert isinstance(message.data, array)
    for got, wanted in zip(points_of(message), (points, colors, objects), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_colour_is_packed_as_viewers_read_it():
    """The bits of a float32 hold 0x00RRGGBB."""
    message = cloud_message(1, "base_link", np.zeros((1, 3)), np.array([[0x12, 0x34, 0x56]], np.uint8), np.array([3]))
    fields = {field.name: field for field in message.fields}
    assert fields["rgb"].datatype == PointField.FLOAT32
    assert fields["object"].datatype == PointField.UINT32
    packed = np.frombuffer(message.data, "<u4")[fields["rgb"].offset // 4]
    assert packed == 0x123456


def test_a_cloud_of_another_kind_is_refused():
    message = cloud_message(1, "base_link", np.zeros((2, 3)), np.zeros((2, 3), np.uint8), np.zeros(2, np.uint32))
    message.fields = message.fields[:3]
    with pytest.raises(FrameError, match="fields"):
        points_of(message)
    message = cloud_message(1, "base_link", np.zeros((2, 3)), np.zeros((2, 3), np.uint8), np.zeros(2, np.uint32))
    message.width = 3
    with pytest.raises(FrameError, match="40 bytes for 3 points"):
        points_of(message)
