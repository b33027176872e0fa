# SPDX-License-Identifier: Apache-2.0
"""Static balance: how far the centre of mass is from the edge of the feet's support."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from supple.kinematics.model import KinematicModel

__all__ = ["support_margin"]

# Corners of the flat part of a sole in its own frame in [m].
_SOLE = np.array([[0.122, 0.02, 0.0], [0.122, -0.02, 0.0], [-0.044, 0.02, 0.0], [-0.044, -0.02, 0.0]])


def support_margin(model: KinematicModel, configuration: NDArray[np.float64]) -> float:
    """Return the distance in [m] of the centre of mass to the edge of the support polygon; negative outside.

    Args:
        model: The robot.
        configuration: Configuration vector with both feet on the floor.
    """
    poses = model.frame_poses(configuration, "l_sole", "r_sole")
    corners = np.vstack([pose.translation + _SOLE @ pose.rotation.T for pose in poses])[:, :2]
    equations = ConvexHull(corners).equations
    com = model.center_of_mass(configuration)[:2]
    return float(-(equations[:, :2] @ com + equations[:, 2]).max())
