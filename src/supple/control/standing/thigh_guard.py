# SPDX-License-Identifier: Apache-2.0
"""How far forearms and hands are from the thighs, which come up in a squat."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

__all__ = ["segment_distance", "thigh_clearance"]

Array = NDArray[np.float64]

# Capsules of the collision model: thigh in the hip roll link's frame in [m], tip of the (open) thumb in its last link's
# frame, and radii in [m].
_THIGH = np.array([[0.02, 0.0, 0.0], [0.02, 0.0, -0.2]])
_THUMB_TIP = np.array([0.0, 0.038, 0.0])
_THIGH_RADIUS, _FOREARM_RADIUS, _HAND_RADIUS, _THUMB_RADIUS = 0.05, 0.05, 0.055, 0.015


def segment_distance(first: Array, second: Array) -> float:
    """Return the distance in [m] of two line segments, each given by its ends, shape (2, 3)."""
    along_first, along_second, between = first[1] - first[0], second[1] - second[0], first[0] - second[0]
    a, e, b = along_first @ along_first, along_second @ along_second, along_first @ along_second
    c, f = along_first @ between, along_second @ between
    parallel = a * e - b * b
    s = float(np.clip((b * f - c * e) / parallel, 0.0, 1.0)) if parallel > 1e-12 else 0.0
    t = (b * s + f) / e
    if not 0.0 <= t <= 1.0:
        # The other line comes closest beyond its end: take that end and look again.
        t = float(np.clip(t, 0.0, 1.0))
        s = float(np.clip((b * t - c) / a, 0.0, 1.0))
    return float(np.linalg.norm(between + s * along_first - t * along_second))


def thigh_clearance(pose_of: Callable[[str], pin.SE3]) -> tuple[float, str]:
    """Return how far the nearest forearm or hand is from a thigh in [m], and which, in words.

    Args:
        pose_of: Gives the world pose of a link or frame of the G1 by name.
    """
    found = []
    for leg in ("left", "right"):
        hip = pose_of(f"{leg}_hip_roll_link")
        thigh = np.array([hip.act(end) for end in _THIGH])
        for arm, sign in (("left", -1.0), ("right", 1.0)):
            names = (f"{arm}_elbow_link", f"{arm}_wrist_yaw_link", f"{arm[0]}_gripper")
            elbow, wrist, hand = (pose_of(name).translation for name in names)
            knuckle = pose_of(f"{arm}_hand_thumb_1_link").translation
            tip = pose_of(f"{arm}_hand_thumb_2_link").act(sign * _THUMB_TIP)
            for part, radius, ends in (
                ("forearm", _FOREARM_RADIUS, (elbow, wrist)),
                ("hand", _HAND_RADIUS, (wrist, hand)),
                ("thumb", _THUMB_RADIUS, (knuckle, tip)),
            ):
                distance = segment_distance(thigh, np.array(ends)) - _THIGH_RADIUS - radius
                found.append((distance, f"{arm} {part} at the {leg} thigh"))
    return min(found)
