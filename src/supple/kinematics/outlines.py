# SPDX-License-Identifier: Apache-2.0
"""What a solid looks like from above: a convex outline on the floor plan and the heights that it takes up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

__all__ = ["Outline"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Outline:
    """The vertical projection of a convex solid.

    Attributes:
        name: What it belongs to, for messages.
        points: Corners of the convex outline, counter-clockwise, in [m], shape (k, 2).
        bottom: Lowest height in [m].
        top: Highest height in [m].
    """

    name: str
    points: Array
    bottom: float
    top: float

    @classmethod
    def of_points(cls, name: str, points: Array) -> Outline:
        """Return the outline of the convex hull of points (n, 3) in [m], n >= 3, not all above one line."""
        plan = points[:, :2]
        return cls(name, plan[ConvexHull(plan).vertices], float(points[:, 2].min()), float(points[:, 2].max()))

    def seen_from(self, T_world_base: pin.SE3) -> Outline:
        """Return the same outline in the frame of an upright base; heights stay those above the floor."""
        shifted = self.points - T_world_base.translation[:2]
        return Outline(self.name, shifted @ T_world_base.rotation[:2, :2], self.bottom, self.top)
