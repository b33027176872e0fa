# SPDX-License-Identifier: Apache-2.0
"""Following a way over the floor without a stop until its end, where the robot comes to stand precisely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supple.control.base_motion import FACING_DISTANCE, WaypointController, WaypointStatus, pose_offset, to_heading
from supple.control.stance import StanceEstimator
from supple.errors import StateError
from supple.geometry import pose_from_xyyaw
from supple.robots import Robot, RobotState

__all__ = ["FloorPath", "PathFollower", "waypoint_walk"]

Array = NDArray[np.float64]

# Velocity added per distance to where the robot should be, in [1/s].
_GAIN = np.array([0.5, 0.5, 0.7])
# The policy answers a velocity late: it gets the one that is due in this time in [s] (measured).
_LEAD = 0.4
# Its first steps carry the robot 20 cm aside, whatever it is told (measured); the way begins once they are made up for.
_FIRST_STEPS = 1.6
# The reference waits for a robot that is this far behind, in [m] and [rad].
_REACH, _TURN_REACH = 0.25, 0.6
# Farther off than this in [m] the way is no longer the one that was found free.
_DEVIATION = 0.2


def waypoint_walk(start: ArrayLike, goal: ArrayLike) -> Array:
    """Return the poses (k, 3) through which a :class:`WaypointController` walks from a pose to a goal (x, y, yaw).

    Far away it faces the goal, at the last it turns on the way. Between the poses it moves and turns evenly.
    """
    begin, end = np.asarray(start, dtype=np.float64), np.asarray(goal, dtype=np.float64)
    way = end[:2] - begin[:2]
    distance = float(np.hypot(*way))
    if distance <= FACING_DISTANCE:
        return np.array([begin, end])
    heading = float(np.arctan2(way[1], way[0]))
    turning_point = end[:2] - FACING_DISTANCE / distance * way
    return np.array([begin, [*begin[:2], heading], [*turning_point, heading], end])


@dataclass(frozen=True)
class FloorPath:
    """Where the robot should be when.

    Attributes:
        waypoints: Poses (x, y, yaw) in [m, m, rad], the heading without jumps, shape (n, 3).
        times: Time of each from the start in [s], from 0 on, increasing, shape (n,).
    """

    waypoints: Array
    times: Array

    def __post_init__(self) -> None:
        """Refuse a path that cannot be followed.

        Raises:
            StateError: Wrong shapes, not finite, or times that do not increase from 0 on.
        """
        poses, times = self.waypoints, self.times
        if poses.ndim != 2 or poses.shape[1] != 3 or not len(poses) or times.shape != poses.shape[:1]:
            raise StateError(f"path: expected (n, 3) way points with n times, got {poses.shape} and {times.shape}")
        if not (np.all(np.isfinite(poses)) and np.all(np.isfinite(times))):
            raise StateError(
                f"path: way point {int(np.argwhere(~np.isfinite(np.c_[poses, times]))[0][0])} is not finite"
            )
        if times[0] != 0.0 or np.any(np.diff(times) <= 0.0):
            raise StateError("path: expected times that increase from 0 on")

    def at(self, time: float) -> Array:
        """Return the pose (x, y, yaw) at a time in [s]."""
        return np.array([np.interp(time, self.times, column) for column in self.waypoints.T])


class PathFollower:
    """Walk a path and stop at its end, within tolerances, as :class:`WaypointController` does.

    A reference moves along the path as fast as its times say and waits where the robot falls behind. The robot gets the
    reference's velocity and is drawn to it. Once the reference has arrived, the rest is a walk to a way point.

    Args:
        robot: The robot.
        position_tolerance: Accepted distance from the end while standing in [m].
        yaw_tolerance: Accepted heading error there in [rad].
        stance: An estimator to share; without one the follower has its own.
        replan: Called with the pose (x, y, yaw) that was really reached when the robot has been carried off the path;
            returns the path to go on with. Without it the robot goes back to the one that it has.

    Attributes:
        replans: How often a new path was asked for since the start.
    """

    def __init__(
        self,
        robot: Robot,
        position_tolerance: float = 0.03,
        yaw_tolerance: float = 0.035,
        stance: StanceEstimator | None = None,
        replan: Callable[[Array], FloorPath] | None = None,
    ) -> None:
        self._stance = stance or StanceEstimator(robot)
        self._waypoint = WaypointController(robot, position_tolerance, yaw_tolerance, stance=self._stance)
        self._replan = replan
        self._path: FloorPath | None = None
        self._time = self._stepping = 0.0
        self.replans = 0

    @property
    def time(self) -> float:
        """Where the reference is on the path: its time in [s]."""
        return self._time

    @property
    def status(self) -> WaypointStatus:
        """What it is doing; arrived before the first path."""
        return WaypointStatus.WALKING if self._path is not None else self._waypoint.status

    def start(self, path: FloorPath) -> None:
        """Begin to walk a path."""
        self._path, self._time, self.replans = path, 0.0, 0
        self._stepping = 0.0

    def error(self, pose: Array) -> tuple[Array, float]:
        """Return the path's end in the heading frame in [m], shape (2,), and the heading error there in [rad]."""
        if self._path is None:
            return self._waypoint.error(pose)
        return pose_offset(self._path.waypoints[-1], pose)

    def step(self, state: RobotState, dt: float) -> Array:
        """Return the wanted base velocity (vx, vy, wz) in the heading frame; zero while settling and on arrival.

        Raises:
            SuppleError: What the replanning raised.
        """
        if self._path is None:
            return self._waypoint.step(state, dt)
        pose = self._stance.pose(state)
        offset, turn = pose_offset(self._path.at(self._time), pose)
        if np.hypot(*offset) > _REACH + _DEVIATION and self._replan is not None:
            self._path, self._time = self._replan(pose), 0.0
            self.replans += 1
            offset, turn = pose_offset(self._path.at(0.0), pose)
        lag = max(float(np.hypot(*offset)) / _REACH, abs(turn) / _TURN_REACH)
        self._stepping += dt
        pace = min(1.0, 2.0 * max(0.0, 1.0 - lag)) if self._stepping > _FIRST_STEPS else 0.0
        ahead = self._time + _LEAD
        move = (self._path.at(ahead + dt) - self._path.at(ahead)) * pace / dt
        self._time += pace * dt
        if self._time >= self._path.times[-1]:
            x, y, yaw = self._path.waypoints[-1]
            self._waypoint.start(pose_from_xyyaw(x, y, yaw))
            self._path = None
            return self._waypoint.step(state, dt)
        return np.array([*to_heading(move[:2], pose[2]), move[2]]) + _GAIN * np.array([*offset, turn])
