# SPDX-License-Identifier: Apache-2.0
"""Pictures out of a bag's messages: colours as an array, whatever encoding the driver chose."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from supple.errors import FrameError

__all__ = ["COMPRESSED", "RAW", "colours_of"]

RAW, COMPRESSED = "sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"

_CHANNELS = {
    "rgb8": (3, (0, 1, 2)),
    "bgr8": (3, (2, 1, 0)),
    "rgba8": (4, (0, 1, 2)),
    "bgra8": (4, (2, 1, 0)),
    "mono8": (1, (0, 0, 0)),
    "8UC1": (1, (0, 0, 0)),
    "8UC3": (3, (2, 1, 0)),
}


def colours_of(message: Any, topic: str) -> NDArray[np.uint8]:
    """Return the colours of an Image or CompressedImage message, uint8, shape (height, width, 3).

    Args:
        message: The message.
        topic: Where it came from, for errors.

    Raises:
        FrameError: Another encoding, no pixel, or data that do not fit the size; names topic and field.
    """
    data = np.frombuffer(memoryview(message.data).cast("B"), np.uint8)
    if not hasattr(message, "encoding"):
        try:
            with Image.open(io.BytesIO(data.tobytes())) as picture:
                return np.asarray(picture.convert("RGB"), np.uint8)
        except (UnidentifiedImageError, OSError) as error:
            raise FrameError(topic, "data", f"no picture in format {message.format!r}: {error}") from error
    if message.encoding not in _CHANNELS:
        raise FrameError(topic, "encoding", f"{message.encoding!r} (available: {', '.join(sorted(_CHANNELS))})")
    channels, order = _CHANNELS[message.encoding]
    height, width, step = int(message.height), int(message.width), int(message.step)
    if height < 1 or width < 1:
        raise FrameError(topic, "size", f"an image without pixels, {width} x {height}")
    if step < width * channels or len(data) < height * step:
        raise FrameError(
            topic,
            "data",
            f"{len(data)} bytes in rows of {step} for {width} x {height} pixels of {message.encoding}, expected at "
            f"least {height * width * channels}",
        )
    rows = data[: height * step].reshape(height, step)[:, : width * channels]
    return np.ascontiguousarray(rows.reshape(height, width, channels)[..., list(order)])
