# SPDX-License-Identifier: Apache-2.0
"""Where a walking robot is on the floor, without the sway of its pelvis."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from supple.geometry import xyyaw_of
from supple.kinematics.model import KinematicModel
from supple.robots import Robot, RobotState

__all__ = ["StanceEstimator"]

# Pelvis ahead of the middle between the soles while standing at rest, heading frame, in [m] (measured).
_PELVIS_AHEAD = -0.015


class StanceEstimator:
    """Estimate the pose that the base would have if the robot stood still now.

    While stepping, the pelvis sways 4 cm to each side once per gait period; a loop closed on it would chase the sway.
    The middle between the soles moves steadily.

    Args:
        robot: The robot.
    """

    def __init__(self, robot: Robot) -> None:
        self._model = KinematicModel(robot)
        self._last: tuple[RobotState, NDArray[np.float64]] | None = None

    def pose(self, state: RobotState) -> NDArray[np.float64]:
        """Return (x, y, yaw) of the base in the world frame in [m, m, rad]."""
        if self._last is not None and self._last[0] is state:
            return self._last[1].copy()
        base = state.T_world_base
        left, right = self._model.frame_poses(self._model.configuration(base, state.q), "l_sole", "r_sole")
        yaw = xyyaw_of(base)[2]
        middle = 0.5 * (left.translation + right.translation)
        pose = np.array([middle[0] + _PELVIS_AHEAD * np.cos(yaw), middle[1] + _PELVIS_AHEAD * np.sin(yaw), yaw])
        # The loops for the way and for the velocity ask about the same state.
        self._last = state, pose
        return pose.copy()
