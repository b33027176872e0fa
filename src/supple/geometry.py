# SPDX-License-Identifier: Apache-2.0
"""Rigid poses and rotations: conversions, yaw, interpolation and checks, over Pinocchio's SE3.

Quaternions are (x, y, z, w) everywhere in Supple, as in ROS, Pinocchio and SciPy; only ``sim`` speaks MuJoCo's order.
"""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from supple.errors import StateError

__all__ = [
    "interpolate_pose",
    "minimum_jerk",
    "pose_error",
    "pose_from_matrix",
    "pose_from_quaternion",
    "pose_from_xyyaw",
    "quaternion_of",
    "unit_quaternion",
    "wrap_angle",
    "xyyaw_of",
    "yaw_of",
]


def wrap_angle(angle: float) -> float:
    """Wrap an angle in [rad] into [-pi, pi)."""
    wrapped = float((angle + np.pi) % (2.0 * np.pi) - np.pi)
    # A hair below -pi the remainder rounds up to a full turn.
    return -float(np.pi) if wrapped >= np.pi else wrapped


def unit_quaternion(quaternion: ArrayLike, where: str = "quaternion") -> NDArray[np.float64]:
    """Return a unit quaternion, or refuse one that holds no rotation.

    Args:
        quaternion: (x, y, z, w), any norm above 1e-3.
        where: What is checked, named in the error (sample index, field, file).

    Raises:
        StateError: Not four finite numbers, or a norm too small or too large to hold a direction.
    """
    value = np.asarray(quaternion, dtype=np.float64)
    # Asked several times in each control tick: plain floats are ten times as quick as NumPy on four numbers.
    if value.shape != (4,) or not all(map(math.isfinite, value.tolist())):
        raise StateError(f"{where}: expected four finite numbers (x, y, z, w), got {value.tolist()}")
    with np.errstate(over="ignore"):
        norm = math.sqrt(float(value.dot(value)))
    if not 1e-3 <= norm < math.inf:
        raise StateError(f"{where}: a quaternion of norm {norm:.1e} holds no rotation, got {value.tolist()}")
    return value / norm


def pose_from_quaternion(position: ArrayLike, quaternion: ArrayLike, where: str = "pose") -> pin.SE3:
    """Return the pose with a position (3,) in [m] and an orientation (x, y, z, w).

    Raises:
        StateError: The position is not three finite numbers, or the quaternion holds no rotation.
    """
    x, y, z, w = unit_quaternion(quaternion, where)
    translation = np.asarray(position, dtype=np.float64)
    if translation.shape != (3,) or not all(map(math.isfinite, translation.tolist())):
        raise StateError(f"{where}: expected a position of three finite numbers, got {translation.tolist()}")
    return pin.SE3(pin.Quaternion(w, x, y, z).toRotationMatrix(), translation)


def pose_from_matrix(matrix: ArrayLike, where: str = "pose") -> pin.SE3:
    """Return the pose of a homogeneous matrix (4, 4).

    Raises:
        StateError: Wrong shape, not finite, the last row is not (0, 0, 0, 1), or the upper left block is no rotation.
    """
    value = np.asarray(matrix, dtype=np.float64)
    if value.shape != (4, 4) or not np.all(np.isfinite(value)):
        raise StateError(f"{where}: expected a finite (4, 4) matrix, got shape {value.shape}")
    if np.abs(value[3] - np.array([0.0, 0.0, 0.0, 1.0])).max() > 1e-4:
        raise StateError(f"{where}: expected the last row [0, 0, 0, 1], got {value[3].tolist()}; transposed?")
    rotation = value[:3, :3]
    if np.abs(rotation @ rotation.T - np.eye(3)).max() > 1e-4 or np.linalg.det(rotation) < 0.0:
        raise StateError(f"{where}: the upper left 3x3 block is not a rotation")
    return pin.SE3(rotation, value[:3, 3])


def pose_from_xyyaw(x: float, y: float, yaw: float, z: float = 0.0) -> pin.SE3:
    """Return an upright pose at (x, y, z) in [m], turned by yaw in [rad] about z."""
    return pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, float(yaw)), np.array([x, y, z], dtype=np.float64))


def quaternion_of(pose: pin.SE3) -> NDArray[np.float64]:
    """Return the orientation of a pose as (x, y, z, w) with w >= 0."""
    value = pin.Quaternion(pose.rotation).coeffs().copy()
    return -value if value[3] < 0.0 else value


def yaw_of(pose: pin.SE3) -> float:
    """Return the heading in [rad] of a pose's x axis about the world's z axis."""
    return float(np.arctan2(pose.rotation[1, 0], pose.rotation[0, 0]))


def xyyaw_of(pose: pin.SE3) -> NDArray[np.float64]:
    """Return (x, y, yaw) in [m, m, rad] of a pose."""
    return np.array([pose.translation[0], pose.translation[1], yaw_of(pose)])


def pose_error(actual: pin.SE3, target: pin.SE3) -> tuple[float, float]:
    """Return the distance in [m] and the angle in [rad] from one pose to another."""
    distance = float(np.linalg.norm(target.translation - actual.translation))
    return distance, float(np.linalg.norm(pin.log3(actual.rotation.T @ target.rotation)))


def interpolate_pose(start: pin.SE3, end: pin.SE3, fraction: float) -> pin.SE3:
    """Interpolate position linearly and orientation along the geodesic, ``fraction`` in [0, 1]."""
    rotation = start.rotation @ pin.exp3(fraction * pin.log3(start.rotation.T @ end.rotation))
    return pin.SE3(rotation, (1.0 - fraction) * start.translation + fraction * end.translation)


def minimum_jerk(fraction: float) -> float:
    """Return the minimum-jerk position profile (Flash and Hogan 1985) at a fraction in [0, 1] of the duration."""
    s = min(max(float(fraction), 0.0), 1.0)
    return s**3 * (10.0 - 15.0 * s + 6.0 * s * s)
