# SPDX-License-Identifier: Apache-2.0
"""Between pictures and clouds as messages and as arrays; what does not fit is refused by input and field."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import CameraInfo, Image, PointCloud2, PointField
from supple_interfaces.msg import Detections

from supple.errors import FrameError
from supple.nodes.conversion import header
from supple.perception.detections import Detection
from supple.perception.frames import Intrinsics

__all__ = [
    "COLOR_ENCODINGS",
    "LABEL_ENCODINGS",
    "POINT_DTYPE",
    "camera_info_message",
    "cloud_message",
    "color_of",
    "depth_of",
    "detections_of",
    "image_message",
    "intrinsics_of",
    "labels_of",
    "points_of",
]

# Type of one channel, and where red, green and blue are among the channels.
_COLORS: Mapping[str, tuple[int, tuple[int, int, int]]] = MappingProxyType(
    {"rgb8": (3, (0, 1, 2)), "bgr8": (3, (2, 1, 0)), "rgba8": (4, (0, 1, 2)), "bgra8": (4, (2, 1, 0))}
)
_DEPTHS = MappingProxyType(
    {"16UC1": ("16UC1", np.uint16), "mono16": ("16UC1", np.uint16), "32FC1": ("32FC1", np.float32)}
)
_LABELS: Mapping[str, type] = MappingProxyType(
    {"mono8": np.uint8, "8UC1": np.uint8, "mono16": np.uint16, "16UC1": np.uint16, "32SC1": np.int32}
)
COLOR_ENCODINGS = tuple(_COLORS)
"""Encodings of colour images that are understood."""
LABEL_ENCODINGS = tuple(_LABELS)
"""Encodings of label images that are understood."""

# Name, offset in bytes and type; viewers take a colour packed into the bits of a float32.
_FIELDS = (
    ("x", 0, PointField.FLOAT32),
    ("y", 4, PointField.FLOAT32),
    ("z", 8, PointField.FLOAT32),
    ("rgb", 12, PointField.FLOAT32),
    ("object", 16, PointField.UINT32),
)
POINT_DTYPE = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("rgb", "<u4"), ("object", "<u4")])
"""One point of the cloud: position in [m], colour 0x00RRGGBB, number of the object."""


# -- pictures ----------------------------------------------------------------------------------------------------------


def _pixels(source: str, message: Image, dtype: np.dtype, channels: int) -> NDArray[Any]:
    """Return the pixels of an image, shape (height, width, channels), without a copy unless the byte order differs."""
    height, width, step = message.height, message.width, message.step
    if height == 0 or width == 0:
        raise FrameError(source, "size", f"an image without pixels: {width} x {height}")
    row = width * channels * dtype.itemsize
    if step < row:
        raise FrameError(
            source, "step", f"{step} bytes per row, but {width} pixels of {message.encoding} need {row} bytes"
        )
    if len(message.data) != step * height:
        raise FrameError(
            source, "data", f"{len(message.data)} bytes, but {height} rows of {step} bytes need {step * height}"
        )
    stored = dtype.newbyteorder(">" if message.is_bigendian else "<")
    rows = np.frombuffer(message.data, np.uint8).reshape(height, step)[:, :row]
    pixels = np.ascontiguousarray(rows).view(stored).reshape(height, width, channels)
    return pixels if stored.isnative else pixels.astype(dtype)


def _encoding(source: str, message: Image, known: Mapping[str, object]) -> str:
    if message.encoding not in known:
        raise FrameError(source, "encoding", f"unknown {message.encoding!r} (available: {', '.join(known)})")
    return str(message.encoding)


def color_of(message: Image, source: str = "color") -> NDArray[np.uint8]:
    """Return the colours of an image as RGB, uint8, shape (height, width, 3).

    Args:
        message: rgb8, bgr8, rgba8 or bgra8.
        source: Which input it is, named in errors.

    Raises:
        FrameError: Another encoding, no pixel, or a length that does not fit.
    """
    channels, order = _COLORS[_encoding(source, message, _COLORS)]
    pixels = _pixels(source, message, np.dtype(np.uint8), channels)
    return np.ascontiguousarray(pixels if order == (0, 1, 2) and channels == 3 else pixels[..., list(order)])


def depth_of(message: Image, source: str = "depth") -> tuple[NDArray[Any], str]:
    """Return the depths of an image as they were sent, shape (height, width), and their encoding by REP 118.

    Raises:
        FrameError: Neither 16UC1 nor 32FC1, no pixel, or a length that does not fit.
    """
    encoding, dtype = _DEPTHS[_encoding(source, message, _DEPTHS)]
    return _pixels(source, message, np.dtype(dtype), 1)[..., 0], encoding


def labels_of(message: Image, source: str = "mask") -> NDArray[np.integer]:
    """Return the labels of an image, shape (height, width).

    Raises:
        FrameError: No encoding with one whole number per pixel, no pixel, or a length that does not fit.
    """
    dtype = _LABELS[_encoding(source, message, _LABELS)]
    return _pixels(source, message, np.dtype(dtype), 1)[..., 0]


def detections_of(message: Detections) -> list[Detection]:
    """Return the boxes of a message.

    Raises:
        FrameError: Arrays of different lengths.
    """
    columns = {field: getattr(message, field) for field in ("score", "left", "top", "right", "bottom")}
    for field, values in columns.items():
        if len(values) != len(message.name):
            raise FrameError("detections", field, f"{len(values)} values for {len(message.name)} names")
    rows = zip(message.name, *columns.values(), strict=True)
    return [Detection(name, float(score), (left, top, right, bottom)) for name, score, left, top, right, bottom in rows]


def intrinsics_of(message: CameraInfo) -> Intrinsics:
    """Return the calibration of a raw image.

    Raises:
        CalibrationError: Uncalibrated, or a field that cannot be right; names it.
    """
    return Intrinsics.from_camera_info(
        message.k, message.p, message.width, message.height, message.distortion_model, tuple(message.d)
    )


def image_message(stamp_ns: int, frame: str, encoding: str, pixels: NDArray[np.generic]) -> Image:
    """Return pixels of any encoding as a message.

    Args:
        stamp_ns: When the picture was taken in [ns].
        frame: Optical frame.
        encoding: What the numbers mean; not checked.
        pixels: Shape (height, width) or (height, width, channels).
    """
    data = array("B")
    data.frombytes(np.ascontiguousarray(pixels).data.cast("B"))
    height, width = pixels.shape[:2]
    return Image(
        header=header(stamp_ns, frame),
        height=height,
        width=width,
        encoding=encoding,
        is_bigendian=int(sys.byteorder == "big"),
        step=pixels.nbytes // height,
        data=data,
    )


def camera_info_message(
    stamp_ns: int, frame: str, intrinsics: tuple[float, float, float, float], width: int, height: int
) -> CameraInfo:
    """Return the calibration of a camera without distortion: fx, fy, cx, cy in [px]."""
    fx, fy, cx, cy = intrinsics
    return CameraInfo(
        header=header(stamp_ns, frame),
        height=height,
        width=width,
        distortion_model="plumb_bob",
        d=[0.0] * 5,
        k=[fx, 0.0, cx, 0.0, fy, cy, 0.0, 0.0, 1.0],
        r=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        p=[fx, 0.0, cx, 0.0, 0.0, fy, cy, 0.0, 0.0, 0.0, 1.0, 0.0],
    )


# -- clouds ------------------------------------------------------------------------------------------------------------


def cloud_message(
    stamp_ns: int,
    frame: str,
    points: NDArray[np.floating],
    colors: NDArray[np.uint8],
    objects: NDArray[np.integer],
) -> PointCloud2:
    """Return points as a cloud with the fields x, y, z, rgb (as viewers read it) and object.

    Args:
        stamp_ns: When the picture was taken in [ns].
        frame: Frame of the positions.
        points: Positions in [m], shape (n, 3).
        colors: Colours, RGB, shape (n, 3).
        objects: Number of the object that each is on, shape (n,).
    """
    rows = np.empty(len(points), POINT_DTYPE)
    rows["x"], rows["y"], rows["z"] = points.T
    red, green, blue = colors.T.astype(np.uint32)
    rows["rgb"] = red << 16 | green << 8 | blue
    rows["object"] = objects
    data = array("B")
    data.frombytes(rows.view(np.uint8).data)
    fields = [PointField(name=name, offset=offset, datatype=kind, count=1) for name, offset, kind in _FIELDS]
    size = POINT_DTYPE.itemsize
    return PointCloud2(
        header=header(stamp_ns, frame),
        height=1,
        width=len(rows),
        fields=fields,
        is_bigendian=False,
        point_step=size,
        row_step=size * len(rows),
        data=data,
        is_dense=True,
    )


def points_of(message: PointCloud2) -> tuple[NDArray[np.float32], NDArray[np.uint8], NDArray[np.uint32]]:
    """Return positions (n, 3) in [m], colours (n, 3) as RGB and object numbers (n,) of a cloud from ``points``.

    Raises:
        FrameError: Other fields than those, or a length that does not fit.
    """
    wanted = {name: offset for name, offset, _ in _FIELDS}
    got = {field.name: field.offset for field in message.fields}
    if got != wanted or message.point_step != POINT_DTYPE.itemsize or message.is_bigendian:
        raise FrameError("points", "fields", f"expected offsets {wanted} in 20 bytes, little endian, got {got}")
    if len(message.data) != message.width * message.height * message.point_step:
        raise FrameError(
            "points", "data", f"{len(message.data)} bytes for {message.width * message.height} points of 20 bytes"
        )
    rows = np.frombuffer(message.data, POINT_DTYPE)
    points = np.stack([rows["x"], rows["y"], rows["z"]], axis=1)
    rgb = rows["rgb"]
    colors = np.stack([rgb >> 16 & 255, rgb >> 8 & 255, rgb & 255], axis=1).astype(np.uint8)
    return points, colors, rows["object"].copy()
