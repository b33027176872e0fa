# SPDX-License-Identifier: Apache-2.0
"""Static balance: how far the centre of mass is from the edge of the feet's support."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from supple.kinematics.model import KinematicModel

__all__ = ["SOLES", "support_edges", "support_margin"]

Array = NDArray[np.float64]

SOLES = ("l_sole", "r_sole")
"""Names of the sole frames."""

# Corners of the flat part of a sole in its own frame in [m].
_SOLE = np.array([[0.122, 0.02, 0.0], [0.122, -0.02, 0.0], [-0.044, 0.02, 0.0], [-0.044, -0.02, 0.0]])


def support_edges(soles: Sequence[pin.SE3]) -> Array:
    """Return the edges of the support polygon of feet: outward normal and offset on the floor, shape (k, 3).

    A point p is inside where ``normal @ p + offset`` is negative for all of them.

    Args:
        soles: Poses of the sole frames.
    """
    corners = np.vstack([pose.translation + _SOLE @ pose.rotation.T for pose in soles])[:, :2]
    return np.asarray(ConvexHull(corners).equations)


def support_margin(model: KinematicModel, configuration: Array) -> float:
    """Return the distance in [m] of the centre of mass to the edge of the support polygon; negative outside.

    Args:
        model: The robot.
        configuration: Configuration vector with both feet on the floor.
    """
    equations = support_edges(model.frame_poses(configuration, *SOLES))
    com = model.center_of_mass(configuration)[:2]
    return float(-(equations[:, :2] @ com + equations[:, 2]).max())
