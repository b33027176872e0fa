# SPDX-License-Identifier: Apache-2.0
"""A shape for a viewer, independent of ROS: what one entry of a MarkerArray shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

__all__ = ["Marker", "MarkerShape"]

Array = NDArray[np.float64]


class MarkerShape(IntEnum):
    """Shapes, with the numbers that visualization_msgs/Marker gives them."""

    ARROW = 0
    CUBE = 1
    SPHERE = 2
    CYLINDER = 3
    SPHERE_LIST = 7
    TRIANGLE_LIST = 11


@dataclass(frozen=True)
class Marker:
    """One shape.

    Attributes:
        group: Namespace that a viewer can switch on and off, e.g. ``"contacts"``.
        shape: Kind of shape.
        position: Position of its middle in the world frame in [m], shape (3,).
        quaternion: Orientation (x, y, z, w) in the world frame.
        scale: Full extents along its own x, y, z in [m]. Arrow between two points: diameters of shaft and head, length
            of the head. Sphere list: diameter of each. Triangle list: factors.
        rgba: Colour and opacity, each within 0 and 1.
        points: Points relative to the pose in [m], shape (k, 3): start and end of an arrow, middles of the spheres, or
            three per triangle.
        point_rgba: Colour of each point, shape (k, 4); with no rows all have that of the marker.
    """

    group: str
    shape: MarkerShape
    position: Array
    quaternion: Array
    scale: Sequence[float]
    rgba: Sequence[float]
    points: Array = field(default_factory=lambda: np.zeros((0, 3)))
    point_rgba: Array = field(default_factory=lambda: np.zeros((0, 4)))
