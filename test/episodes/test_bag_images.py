# SPDX-License-Identifier: Apache-2.0
"""Pictures are the same whatever encoding a driver chose, and what is no picture is refused by topic and field."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from supple.episodes.bag import BagWriter
from supple.episodes.bag_images import colours_of
from supple.episodes.bag_reader import stream_bag
from supple.episodes.bag_types import message_types
from supple.errors import FrameError, UnknownNameError

COLOURS = np.random.default_rng(0).integers(0, 255, (5, 7, 3), dtype=np.uint8)
TYPES = message_types().types


def image(encoding: str, pixels: np.ndarray, padding: int = 0, /, **changes):
    rows = pixels.reshape(len(pixels), -1)
    data = np.pad(rows, ((0, 0), (0, padding)), constant_values=77)
    time = TYPES["builtin_interfaces/msg/Time"](sec=1, nanosec=0)
    fields = {
        "header": TYPES["std_msgs/msg/Header"](stamp=time, frame_id="camera"),
        "height": len(pixels),
        "width": pixels.shape[1],
        "encoding": encoding,
        "is_bigendian": 0,
        "step": data.shape[1],
        "data": data.ravel(),
    }
    return TYPES["sensor_msgs/msg/Image"](**(fields | changes))


@pytest.mark.parametrize("padding", [0, 3])
@pytest.mark.parametrize(
    ("encoding", "pixels"),
    [
        ("rgb8", COLOURS),
        ("bgr8", COLOURS[..., ::-1]),
        ("rgba8", np.dstack([COLOURS, np.full((5, 7), 9, np.uint8)])),
        ("bgra8", np.dstack([COLOURS[..., ::-1], np.full((5, 7), 9, np.uint8)])),
    ],
)
def test_colours_are_the_same_in_every_encoding(encoding, pixels, padding):
    found = colours_of(image(encoding, pixels, padding), "/camera")
    assert np.array_equal(found, COLOURS)
    assert found.flags.c_contiguous


def test_grey_pictures_have_three_equal_channels():
    grey = COLOURS[..., :1]
    assert np.array_equal(colours_of(image("mono8", grey), "/camera"), np.repeat(grey, 3, axis=2))


def test_compressed_pictures_are_unpacked():
    buffer = io.BytesIO()
    Image.fromarray(COLOURS).save(buffer, format="PNG")
    header = image("rgb8", COLOURS).header
    kind = TYPES["sensor_msgs/msg/CompressedImage"]
    assert np.array_equal(colours_of(kind(header, "png", np.frombuffer(buffer.getvalue(), np.uint8)), "/c"), COLOURS)
    with pytest.raises(FrameError, match=r"/c\.data: no picture in format 'png'"):
        colours_of(kind(header, "png", np.zeros(10, np.uint8)), "/c")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"encoding": "16UC1"}, r"/c\.encoding: '16UC1' \(available: .*rgb8"),
        ({"height": 0}, r"/c\.size: an image without pixels"),
        ({"height": 6}, r"/c\.data: 105 bytes in rows of 21 for 7 x 6"),
        ({"step": 20}, r"/c\.data: .*rows of 20"),
    ],
)
def test_what_is_no_picture_is_refused(changes, said):
    with pytest.raises(FrameError, match=said):
        colours_of(image("rgb8", COLOURS, **changes), "/c")


def test_messages_come_one_by_one_in_order_of_time(tmp_path):
    with BagWriter(tmp_path / "bag") as bag:
        for i in range(1, 6):
            bag.clock(i * 10**9)
            bag.number("height", float(i), i * 10**9 + 5)
            bag.image(i * 10**9 + 7, COLOURS)
    found = list(stream_bag(tmp_path / "bag", ["/clock", "/height"]))
    assert [stamp for _, stamp, _ in found] == sorted(stamp for _, stamp, _ in found)
    assert [message.data for topic, _, message in found if topic == "/height"] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert {topic for topic, _, _ in found} == {"/clock", "/height"}
    with pytest.raises(UnknownNameError, match="did you mean '/clock'"):
        next(stream_bag(tmp_path / "bag", ["/clok"]))
