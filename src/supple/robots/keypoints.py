# SPDX-License-Identifier: Apache-2.0
"""Points of the hands that are part of what a policy sees: fixed to links, found by kinematics, without a camera."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from supple.robots.robot import Robot

__all__ = ["Keypoint", "gripper_keypoints"]

# Distance of a fingertip from the last joint in [m]: half the last link, and its rounding, of the collision shapes.
_TIP = 0.047


@dataclass(frozen=True)
class Keypoint:
    """A point fixed to a frame.

    Attributes:
        name: What it is, e.g. ``"thumb_tip"``.
        frame: Frame on TF.
        offset: Position in that frame in [m], shape (3,).
    """

    name: str
    frame: str
    offset: NDArray[np.float64]


def gripper_keypoints(robot: Robot, effector: str) -> tuple[Keypoint, ...]:
    """Return the nine keypoints of a hand with a thumb and two fingers: wrist, palm, three per thumb, two per finger.

    Args:
        robot: The robot.
        effector: Name of the hand; its fingers are named after it, as in ``left_hand_thumb_0_joint``.

    Raises:
        UnknownNameError: The robot has no such hand.
    """
    hand = robot.effector(effector)
    side = effector.split("_")[0]
    # The thumb's links lie along the axis that is mirrored between the hands.
    sign = 1.0 if side == "left" else -1.0
    origin = np.zeros(3)
    rows = [
        ("wrist", f"{side}_wrist_yaw_link", origin),
        ("palm", hand.frame, origin),
        ("thumb_base", f"{effector}_thumb_1_link", origin),
        ("thumb_middle", f"{effector}_thumb_2_link", origin),
        ("thumb_tip", f"{effector}_thumb_2_link", np.array([0.0, -sign * _TIP, 0.0])),
    ]
    for finger in ("middle", "index"):
        rows.append((f"{finger}_middle", f"{effector}_{finger}_1_link", origin))
        rows.append((f"{finger}_tip", f"{effector}_{finger}_1_link", np.array([_TIP, 0.0, 0.0])))
    return tuple(Keypoint(name, frame, offset) for name, frame, offset in rows)
