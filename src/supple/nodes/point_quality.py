# SPDX-License-Identifier: Apache-2.0
"""The companion of a cloud of task points: what each object's points are worth and how old their inputs were."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from supple_interfaces.msg import TaskPoints

from supple.nodes.conversion import header
from supple.perception.extraction import PointStatus, TaskPointCloud
from supple.perception.tracking import Track, Visibility

__all__ = ["KEYPOINTS", "task_points"]

KEYPOINTS = "keypoints"
"""Status of a hand, whose points come from kinematics."""


def task_points(
    cloud: TaskPointCloud,
    tracks: Mapping[str, Track],
    keypoints: Mapping[str, NDArray[np.float64]],
    frame: str,
    used_ns: Mapping[str, int],
    now_ns: int,
) -> TaskPoints:
    """Return the companion message of a cloud.

    Args:
        cloud: Points of every object.
        tracks: What the tracker knows of them.
        keypoints: Points of every hand, shape (n, 3), numbered after the objects.
        frame: Frame of the cloud.
        used_ns: Stamp in [ns] of each input that was used.
        now_ns: When the cloud is published, on the same clock.
    """
    message = TaskPoints(header=header(cloud.stamp_ns, frame))
    for number, (name, found) in enumerate(cloud.objects.items()):
        quality = found.quality
        row = (quality.mask_area, quality.coverage, quality.visible_fraction, quality.depth_noise)
        _append(message, number, name, len(found.points), *row, _status(quality.status, tracks.get(name)))
    for number, (name, rows) in enumerate(keypoints.items(), start=len(cloud.objects)):
        status = KEYPOINTS if len(rows) else "no transform"
        _append(message, number, name, len(rows), 0, math.nan, math.nan, math.nan, status)
    message.input = list(used_ns)
    message.age = [(now_ns - stamp) * 1e-9 for stamp in used_ns.values()]
    return message


def _status(status: PointStatus, track: Track | None) -> str:
    """Return how an object is: that it is hidden counts for more than that its points are fine."""
    if track is None or status in (PointStatus.THIN, PointStatus.NO_DEPTH):
        return status.value
    return track.visibility.value if track.visibility is not Visibility.SEEN else status.value


def _append(
    message: TaskPoints,
    number: int,
    name: str,
    points: int,
    area: int,
    coverage: float,
    visible: float,
    noise: float,
    status: str,
) -> None:
    message.object.append(name)
    message.id.append(number)
    message.points.append(points)
    message.mask_area.append(area)
    message.coverage.append(coverage)
    message.visible_fraction.append(visible)
    message.depth_noise.append(noise)
    message.status.append(status)
