# SPDX-License-Identifier: Apache-2.0
"""What is measured on a robot and what it is told: RobotState and RobotCommand."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.errors import StateError
from supple.geometry import pose_from_quaternion
from supple.robots.joints import JointTable

__all__ = ["RobotCommand", "RobotState", "all_finite"]

Array = NDArray[np.float64]


def all_finite(*rows: Array) -> bool:
    """Tell whether all numbers of some arrays of one dimension are finite."""
    # A sum of squares with a NaN or an infinity in it is never finite, and quicker than a look at each number.
    if all(math.isfinite(row.dot(row)) for row in rows):
        return True
    return all(bool(np.isfinite(row).all()) for row in rows)


@dataclass(frozen=True)
class RobotState:
    """One measurement of a robot with a floating (or fixed) base.

    Attributes:
        stamp_ns: Time of the measurement in [ns], clock of the body.
        q: Joint positions in [rad], table order, shape (n,).
        v: Joint velocities in [rad/s], shape (n,).
        effort: Joint torques in [Nm], shape (n,).
        base_position: Position of base_link in the world (odom) frame in [m], shape (3,).
        base_quaternion: Orientation of base_link in the world frame, (x, y, z, w).
        base_linear_velocity: Velocity of base_link's origin, in the world frame, in [m/s], shape (3,).
        base_angular_velocity: Angular velocity in the base frame in [rad/s], shape (3,); what a pelvis gyroscope reads.
        base_acceleration: Specific force in the base frame in [m/s^2], +g on z at rest (REP-145), shape (3,).
    """

    stamp_ns: int
    q: Array
    v: Array
    effort: Array
    base_position: Array
    base_quaternion: Array
    base_linear_velocity: Array
    base_angular_velocity: Array
    base_acceleration: Array

    @cached_property
    def T_world_base(self) -> pin.SE3:
        """Pose of base_link in the world frame."""
        return pose_from_quaternion(self.base_position, self.base_quaternion, "base_quaternion")

    @cached_property
    def finite(self) -> bool:
        """Whether every number of the state is finite."""
        joints = (self.q, self.v, self.effort)
        base = (self.base_position, self.base_quaternion, self.base_linear_velocity, self.base_angular_velocity)
        return all_finite(*joints, *base, self.base_acceleration)


@dataclass(frozen=True)
class RobotCommand:
    """Joint-space command: torque = kp (q - q_measured) + kd (v - v_measured) + tau, for the addressed joints.

    Attributes:
        stamp_ns: Time of the state that the command answers, in [ns].
        source: Who commands, e.g. ``"locomotion"``; arbitration goes by it.
        q: Target positions in [rad], table order, shape (n,).
        v: Target velocities in [rad/s], shape (n,).
        tau: Feed-forward torques in [Nm], shape (n,).
        kp: Proportional gains in [Nm/rad], shape (n,).
        kd: Derivative gains in [Nms/rad], shape (n,).
        active: Which joints this command addresses, bool, shape (n,); the other entries carry no meaning.
    """

    stamp_ns: int
    source: str
    q: Array
    v: Array
    tau: Array
    kp: Array
    kd: Array
    active: NDArray[np.bool_]

    @classmethod
    def blank(cls, joints: JointTable, source: str, stamp_ns: int = 0) -> RobotCommand:
        """Return a command that addresses no joint: home position, default gains, no torque."""
        n = len(joints)
        return cls(
            stamp_ns,
            source,
            joints.home.copy(),
            np.zeros(n),
            np.zeros(n),
            joints.kp.copy(),
            joints.kd.copy(),
            np.zeros(n, dtype=bool),
        )

    @classmethod
    def damping(cls, joints: JointTable, source: str, stamp_ns: int = 0, kd: float = 5.0) -> RobotCommand:
        """Return the command that lets a robot sink softly: kp 0, kd in [Nms/rad] (fingers .1), v 0, all joints."""
        blank = cls.blank(joints, source, stamp_ns)
        gains = np.where(joints.effort > 3.0, kd, 0.1)
        return replace(blank, kp=np.zeros(len(joints)), kd=gains, active=np.ones(len(joints), dtype=bool))

    def check(self, joints: JointTable) -> None:
        """Refuse a command with a wrong shape or a number that is not finite.

        Raises:
            StateError: Names the field and the joints at fault.
        """
        keys = ("q", "v", "tau", "kp", "kd")
        for key in (*keys, "active"):
            if getattr(self, key).shape != (len(joints),):
                shape = getattr(self, key).shape
                raise StateError(f"command from {self.source!r}: {key} has shape {shape}, expected ({len(joints)},)")
        if all_finite(self.q, self.v, self.tau, self.kp, self.kd):
            return
        finite = np.isfinite(np.stack([getattr(self, key) for key in keys])) | ~self.active
        for key, row in zip(keys, finite, strict=True):
            bad = ~row
            if bad.any():
                names = [joints.names[i] for i in np.flatnonzero(bad)]
                raise StateError(f"command from {self.source!r}: {key} is not finite for {', '.join(names)}")
