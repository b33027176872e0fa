# SPDX-License-Identifier: Apache-2.0
"""Markers as a visualization_msgs/MarkerArray for a bag."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from rosbags.typesys.store import Typestore

from supple.episodes.marker import Marker, MarkerShape

__all__ = ["marker_array"]

_ADD, _DELETE_ALL = 0, 3


def marker_array(types: Typestore, stamp_ns: int, markers: Iterable[Marker], frame: str) -> Any:
    """Return a message that shows exactly these markers, whatever was shown before.

    It begins by deleting everything, so that a viewer that joins late or seeks back sees the same as any other.

    Args:
        types: Message types.
        stamp_ns: Time in [ns].
        markers: What is shown; each gets an index within its group.
        frame: World frame.
    """

    def make(kind: str, *fields: Any) -> Any:
        return types.types[kind](*fields)

    header = make("std_msgs/msg/Header", make("builtin_interfaces/msg/Time", *divmod(int(stamp_ns), 10**9)), frame)
    forever = make("builtin_interfaces/msg/Duration", 0, 0)
    nothing = np.zeros(0, np.uint8)
    no_texture = make("sensor_msgs/msg/CompressedImage", header, "", nothing)
    no_mesh = make("visualization_msgs/msg/MeshFile", "", nothing)

    def point(row: Iterable[float]) -> Any:
        return make("geometry_msgs/msg/Point", *map(float, row))

    def entry(marker: Marker, index: int, action: int) -> Any:
        quaternion = make("geometry_msgs/msg/Quaternion", *map(float, marker.quaternion))
        pose = make("geometry_msgs/msg/Pose", point(marker.position), quaternion)
        extent = make("geometry_msgs/msg/Vector3", *map(float, marker.scale))
        colour = make("std_msgs/msg/ColorRGBA", *map(float, marker.rgba))
        points = [point(row) for row in marker.points]
        name = (header, marker.group, index, int(marker.shape), action)
        colours = [make("std_msgs/msg/ColorRGBA", *map(float, row)) for row in marker.point_rgba]
        look: tuple[Any, ...] = (pose, extent, colour, forever, False, points, colours)
        return make("visualization_msgs/msg/Marker", *name, *look, "", no_texture, [], "", "", no_mesh, False)

    everything = Marker("", MarkerShape.CUBE, np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), (1.0,) * 3, (0.0,) * 4)
    entries, count = [entry(everything, 0, _DELETE_ALL)], Counter[str]()
    for marker in markers:
        entries.append(entry(marker, count[marker.group], _ADD))
        count[marker.group] += 1
    return make("visualization_msgs/msg/MarkerArray", entries)
