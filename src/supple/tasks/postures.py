# SPDX-License-Identifier: Apache-2.0
"""Postures in which the robot walks up to its work: hands above a table's edge, beside what stands on it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from supple.robots import Robot

__all__ = ["hands_high", "hands_raised"]

# Left arm in [rad]: shoulder pitch, roll, yaw, elbow, wrist roll, pitch, yaw.
_RAISED = (0.16, 0.37, 0.60, -0.78, -0.57, 0.77, -0.01)
_HIGH = (-0.08, 0.57, 1.07, -0.56, -0.84, 0.64, -0.43)


def hands_raised(robot: Robot, fingers: Mapping[str, str]) -> NDArray[np.float64]:
    """Return joint positions (43,) in [rad]: standing, hands 28 cm ahead, 26 cm to each side, 98 cm high.

    Args:
        robot: The G1.
        fingers: Finger posture by hand.
    """
    return _posture(robot, _RAISED, fingers)


def hands_high(robot: Robot, fingers: Mapping[str, str]) -> NDArray[np.float64]:
    """Return joint positions (43,) in [rad]: standing, hands 24 cm ahead, 30 cm to each side, 112 cm high.

    They point up by 0.5 rad and pass above a drill on a table. Drawn in, they would pass as well, but the robot would
    not end its walks where it is sent: its last steps depend on where the arms have their weight.

    Args:
        robot: The G1.
        fingers: Finger posture by hand.
    """
    return _posture(robot, _HIGH, fingers)


def _posture(robot: Robot, left_arm: tuple[float, ...], fingers: Mapping[str, str]) -> NDArray[np.float64]:
    joints = robot.joints
    q = joints.home.copy()
    for side, sign in (("left", 1.0), ("right", -1.0)):
        # Roll and yaw axes are mirrored between the arms, pitch axes are not.
        mirror = np.array([1.0, sign, sign, 1.0, sign, 1.0, sign])
        q[joints.group(f"{side}_arm")] = mirror * np.array(left_arm)
        effector = robot.effector(f"{side}_hand")
        q[joints.group(effector.fingers)] = effector.postures[fingers[effector.name]]
    return q
