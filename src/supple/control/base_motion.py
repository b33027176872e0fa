# SPDX-License-Identifier: Apache-2.0
"""Outer loops on odometry: a velocity that is really reached, and a waypoint that is really arrived at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from supple.control.stance import StanceEstimator
from supple.errors import StateError
from supple.geometry import wrap_angle, xyyaw_of
from supple.robots import Robot, RobotState

__all__ = ["FACING_DISTANCE", "VelocityTracker", "WaypointController", "WaypointStatus", "pose_offset", "to_heading"]

Array = NDArray[np.float64]

FACING_DISTANCE = 0.6
"""Distance in [m] from a pose beyond which a robot faces where it goes: walking forward is what it does best."""


# What the walking policy makes of a command, with the upper body held by others (measured): velocity = drift + response
# * command, in [m/s] and [rad/s]. Stepping in place it creeps forward.
_DRIFT = np.array([0.095, 0.016, -0.007])
_RESPONSE = np.array([0.9, 0.65, 0.93])


# Where the last steps before standing lead, heading frame, in [m] (measured: 1 to 4 cm, more to the left than not).
_STOP_SHIFT = np.array([0.0, 0.025])


def to_heading(vector: Array, yaw: float) -> Array:
    """Turn a world vector (2,) into the frame that is turned by yaw."""
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array([c * vector[0] + s * vector[1], -s * vector[0] + c * vector[1]])


def pose_offset(target: Array, pose: Array) -> tuple[Array, float]:
    """Return where a target (x, y, yaw) is, seen from a pose: heading frame in [m], shape (2,), and turn in [rad]."""
    return to_heading(target[:2] - pose[:2], pose[2]), wrap_angle(target[2] - pose[2])


class VelocityTracker:
    """Correct a commanded base velocity by odometry.

    The walking policy undershoots (0.5 m/s commanded gives 0.39). A reference pose moves with the wanted velocity, and
    the robot's distance to it is added to the command: on average the robot then moves as fast as the reference. Told
    to stop, the reference stays where the robot was, and the last steps lead back to it.

    Args:
        gain: Velocity added per distance to the reference in [1/s].
        reach: How far the reference may run ahead, in [m] and [rad]; it does not wind up against a wall.
    """

    def __init__(self, gain: float = 0.8, reach: float = 0.4) -> None:
        self._gain = gain
        self._reach = reach
        self._reference: Array | None = None
        self._stopping = True

    def reset(self) -> None:
        """Forget the reference, e.g. after standing or a jump of the clock."""
        self._reference = None
        self._stopping = True

    def step(self, pose: Array, velocity: ArrayLike, dt: float) -> Array:
        """Return the velocity to send to the walking policy.

        Args:
            pose: (x, y, yaw) of the robot in the world frame, free of sway (StanceEstimator).
            velocity: Wanted (vx, vy, wz) in the heading frame in [m/s, m/s, rad/s].
            dt: Time since the last call in [s].
        """
        wanted = np.asarray(velocity, dtype=np.float64)
        stopping = not np.any(wanted)
        if self._reference is None or (stopping and not self._stopping):
            self._reference = pose.copy()
        self._stopping = stopping
        reference = self._reference
        c, s = np.cos(reference[2]), np.sin(reference[2])
        reference[:2] += dt * np.array([c * wanted[0] - s * wanted[1], s * wanted[0] + c * wanted[1]])
        reference[2] += dt * wanted[2]
        ahead = np.array([*(reference[:2] - pose[:2]), wrap_angle(reference[2] - pose[2])])
        ahead[:2] *= min(1.0, self._reach / max(float(np.hypot(*ahead[:2])), 1e-9))
        ahead[2] = min(max(ahead[2], -self._reach), self._reach)
        self._reference = pose + ahead
        linear = to_heading(ahead[:2], pose[2])
        feed_forward = (wanted - _DRIFT) / _RESPONSE
        return np.clip(feed_forward + self._gain * np.array([*linear, ahead[2]]), -1.0, 1.0)


class WaypointStatus(Enum):
    """What a waypoint controller is doing."""

    WALKING = "walking"
    SETTLING = "settling"
    ARRIVED = "arrived"


@dataclass(frozen=True)
class _Gains:
    linear: float = 0.7
    lateral: float = 0.7
    angular: float = 0.9
    max_linear: float = 0.6
    max_lateral: float = 0.2
    max_angular: float = 0.8


class WaypointController:
    """Walk to a pose on the floor, stop, look where the robot really stands, and correct until it is close enough.

    The last steps carry the robot a few centimetres on. What they did is learnt at each stop and aimed off at the next.

    Args:
        robot: The robot.
        position_tolerance: Accepted distance while standing in [m].
        yaw_tolerance: Accepted heading error while standing in [rad].
        settle_time: How long the robot must have stood still before its place counts, in [s].
        stance: An estimator to share; without one the controller has its own.
    """

    def __init__(
        self,
        robot: Robot,
        position_tolerance: float = 0.03,
        yaw_tolerance: float = 0.035,
        settle_time: float = 0.3,
        stance: StanceEstimator | None = None,
    ) -> None:
        self._stance = stance or StanceEstimator(robot)
        self.position_tolerance = position_tolerance
        self.yaw_tolerance = yaw_tolerance
        self._settle_time = settle_time
        self._gains = _Gains()
        self._goal: Array | None = None
        self._shift = _STOP_SHIFT.copy()
        self._stops = 0
        self._still = 0.0
        self.status = WaypointStatus.ARRIVED

    def start(self, T_world_goal: pin.SE3) -> None:
        """Begin walking to a pose; only x, y and yaw count.

        Raises:
            StateError: The pose is not finite.
        """
        goal = xyyaw_of(T_world_goal)
        if not np.all(np.isfinite(goal)):
            raise StateError(f"goal of a walk: expected a finite x, y and yaw, got {goal.tolist()}")
        self._goal = goal
        self._shift = _STOP_SHIFT.copy()
        self._stops = 0
        self._still = 0.0
        self.status = WaypointStatus.WALKING

    def error(self, pose: Array) -> tuple[Array, float]:
        """Return the goal's position in the heading frame in [m], shape (2,), and the heading error in [rad]."""
        if self._goal is None:
            return np.zeros(2), 0.0
        return pose_offset(self._goal, pose)

    def _close(self, distance: float, turn: float, fraction: float) -> bool:
        return distance < fraction * self.position_tolerance and abs(turn) < fraction * self.yaw_tolerance

    def step(self, state: RobotState, dt: float) -> Array:
        """Return the wanted base velocity (vx, vy, wz) in the heading frame; zero while settling and on arrival."""
        if self.status is WaypointStatus.ARRIVED:
            return np.zeros(3)
        if self.status is WaypointStatus.WALKING:
            offset, turn = self.error(self._stance.pose(state))
            offset = offset - self._shift
            distance = float(np.hypot(*offset))
            if not self._close(distance, turn, 0.5):
                return self._velocity(offset, turn, distance)
            self.status, self._still = WaypointStatus.SETTLING, 0.0
        moving = float(np.hypot(*state.base_linear_velocity[:2])) + abs(float(state.base_angular_velocity[2])) > 0.03
        self._still = 0.0 if moving else self._still + dt
        if self._still >= self._settle_time:
            offset, turn = self.error(xyyaw_of(state.T_world_base))
            done = self._close(float(np.hypot(*offset)), turn, 1.0)
            # Stops scatter by centimetres, and arms held forward shift all of them: what is learnt is the mean of the
            # shifts seen, the one measured beforehand counting as one stop.
            self._stops += 1
            self._shift = np.clip(self._shift - offset / (self._stops + 1), -0.1, 0.1)
            self.status = WaypointStatus.ARRIVED if done else WaypointStatus.WALKING
        return np.zeros(3)

    def _velocity(self, offset: Array, turn: float, distance: float) -> Array:
        gains = self._gains
        if distance > FACING_DISTANCE:
            turn = wrap_angle(float(np.arctan2(offset[1], offset[0])))
        linear = np.array([gains.linear * offset[0], gains.lateral * offset[1]])
        linear *= min(1.0, gains.max_linear / max(float(np.hypot(*linear)), 1e-9))
        linear[1] = np.clip(linear[1], -gains.max_lateral, gains.max_lateral)
        if distance > FACING_DISTANCE:
            linear *= max(0.0, np.cos(turn))
        return np.array([*linear, np.clip(gains.angular * turn, -gains.max_angular, gains.max_angular)])
