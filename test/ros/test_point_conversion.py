# SPDX-License-Identifier: Apache-2.0
"""Pictures and clouds there and back, in every encoding that is understood; everything else refused by field."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Image, PointCloud2, PointField
from supple_interfaces.msg import Detections

from supple.errors import CalibrationError, FrameError
from supple.nodes import point_conversion
from supple.nodes.conversion import nanoseconds
from supple.nodes.point_conversion import (
    camera_info_message,
    cloud_message,
    color_of,
    depth_of,
    detections_of,
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


def boxes(**fields) -> Detections:
    columns = {"name": ["cup", "bowl"], "score": [0.5, 0.25], "left": [1.0, 2.0], "top": [3.0, 4.0]}
    return Detections(**(columns | {"right": [5.0, 6.0], "bottom": [7.0, 8.0]} | fields))


def test_boxes_are_read_row_by_row():
    cup, bowl = detections_of(boxes())
    assert (cup.name, cup.score, cup.box) == ("cup", 0.5, (1.0, 3.0, 5.0, 7.0))
    assert (bowl.name, bowl.score, bowl.box) == ("bowl", 0.25, (2.0, 4.0, 6.0, 8.0))
    assert detections_of(Detections()) == []


@pytest.mark.parametrize("field", ["score", "left", "top", "right", "bottom"])
def test_boxes_with_arrays_of_different_lengths_are_refused_by_field(field):
    with pytest.raises(FrameError, match=f"{field}: 1 values for 2 names"):
        detections_of(boxes(**{field: [1.0]}))


@given(data=st.data(), count=st.integers(0, 40))
def test_clouds_there_and_back(data, count):
    points = data.draw(arrays.arrays(np.float32, (count, 3), elements=st.floats(-1e3, 1e3, width=32)))
    colors = data.draw(arrays.arrays(np.uint8, (count, 3)))
    objects = data.draw(arrays.arrays(np.uint32, count))
    message = cloud_message(1_500_000_000, "base_link", points, colors, objects)
    assert (message.width, message.height, message.point_step) == (count, 1, 20)
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


def large_cloud(points: int) -> PointCloud2:
    rows = np.zeros((points, 3), np.float32), np.zeros((points, 3), np.uint8), np.arange(points, dtype=np.uint32)
    return cloud_message(1, "base_link", *rows)


def large_picture(points: int) -> Image:
    return image_message(1, "eye", "8UC1", np.arange(20 * points, dtype=np.uint64).astype(np.uint8).reshape(-1, 20))


@pytest.mark.parametrize(("large", "kind"), [(large_cloud, PointCloud2), (large_picture, Image)])
def test_ten_megabytes_are_handed_over_as_one_block(monkeypatch, large, kind):
    """Case 6: a message that is given bytes, a list or a NumPy array looks at each byte of it in Python."""
    given = []

    def made(**fields: object) -> object:
        given.append(fields["data"])
        return kind(**fields)

    monkeypatch.setattr(point_conversion, kind.__name__, made)
    message = large(500_000)
    (data,) = given
    assert type(data) is array
    assert (data.typecode, len(data)) == ("B", 10_000_000)
    again = deserialize_message(serialize_message(message), kind)
    assert again.data == data
