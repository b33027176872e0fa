# SPDX-License-Identifier: Apache-2.0
"""Locomotion: the walking policy under a commanded velocity or on the way to a pose, judging by itself what failed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from supple.control.base_motion import VelocityTracker, WaypointController, WaypointStatus
from supple.control.stance import StanceEstimator
from supple.control.walking import WalkingPolicy
from supple.errors import StateError
from supple.geometry import wrap_angle, xyyaw_of
from supple.robots import ActionKind, Robot, RobotCommand, RobotState

__all__ = ["Locomotion", "WalkLimits", "WalkOutcome"]

Array = NDArray[np.float64]


class WalkOutcome(StrEnum):
    """How a walk to a pose stands."""

    WALKING = "walking"
    ARRIVED = "arrived"
    TIMEOUT = "timeout"
    NOT_EXECUTED = "not executed"
    FALLEN = "fallen"


@dataclass(frozen=True)
class WalkLimits:
    """When a walk counts as failed.

    Attributes:
        upright: The robot has fallen when the vertical component of its base's z axis is below this.
        patience: It does not execute when told to walk and not moving for this time in [s].
        least_travel: What counts as moving, in [m].
        least_turn: What counts as turning, in [rad].
        least_speed: Commands below this need not move it, in [m/s] or [rad/s].
    """

    upright: float = 0.6
    patience: float = 3.0
    least_travel: float = 0.02
    least_turn: float = 0.04
    least_speed: float = 0.1


class Locomotion:
    """Drive the legs.

    Args:
        robot: The robot.
        limits: When a walk counts as failed.
        position_tolerance: Accepted distance at the end of a walk in [m], unless the walk says otherwise.
        yaw_tolerance: Accepted heading error in [rad].

    Attributes:
        outcome: How the last walk to a pose stands; ``ARRIVED`` before the first.
        reason: What went wrong with it, for a person.
    """

    def __init__(
        self,
        robot: Robot,
        limits: WalkLimits | None = None,
        position_tolerance: float = 0.03,
        yaw_tolerance: float = 0.035,
    ) -> None:
        self._robot = robot
        self._limits = limits or WalkLimits()
        self._tolerances = position_tolerance, yaw_tolerance
        self._policy = WalkingPolicy(robot)
        self._stance = StanceEstimator(robot)
        self._tracker = VelocityTracker()
        self._fastest = robot.contract.upper[robot.contract.of_kind(ActionKind.BASE_VELOCITY)]
        self._waypoint: WaypointController | None = None
        self.reset()

    def reset(self) -> None:
        """Forget gait, velocity and goal: stand."""
        self._policy.reset()
        self._tracker.reset()
        self._waypoint = None
        self._velocity = np.zeros(3)
        self._moved_from: Array | None = None
        self._still_for = self._elapsed = 0.0
        self._timeout = np.inf
        self.outcome, self.reason = WalkOutcome.ARRIVED, ""
        self.fallen = False

    @property
    def source(self) -> str:
        """Who commands."""
        return self._policy.source

    @property
    def walking(self) -> bool:
        """Whether it is on the way to a pose."""
        return self._waypoint is not None

    def command_velocity(self, velocity: ArrayLike) -> None:
        """Walk with a velocity (vx, vy, wz) in the heading frame in [m/s, m/s, rad/s] until told otherwise.

        Velocities beyond the action contract's are clamped to it.

        Raises:
            StateError: Not three finite numbers.
        """
        value = np.asarray(velocity, dtype=np.float64)
        if value.shape != (3,) or not np.all(np.isfinite(value)):
            raise StateError(f"base velocity: expected three finite numbers (vx, vy, wz), got {value.tolist()}")
        self._velocity = np.clip(value, -self._fastest, self._fastest)

    def walk_to(
        self,
        T_world_goal: pin.SE3,
        position_tolerance: float = 0.0,
        yaw_tolerance: float = 0.0,
        timeout: float = np.inf,
    ) -> None:
        """Begin walking to a pose; only x, y and yaw count.

        Args:
            T_world_goal: Where to stand.
            position_tolerance: Accepted distance in [m]; 0 for the default.
            yaw_tolerance: Accepted heading error in [rad]; 0 for the default.
            timeout: Give up after this time in [s].

        Raises:
            StateError: The pose is not finite.
        """
        position, yaw = position_tolerance or self._tolerances[0], yaw_tolerance or self._tolerances[1]
        waypoint = WaypointController(self._robot, position, yaw)
        waypoint.start(T_world_goal)
        self._waypoint = waypoint
        self._timeout = timeout
        self._elapsed = self._still_for = 0.0
        self._moved_from = None
        self.outcome, self.reason = WalkOutcome.WALKING, ""

    def stop(self) -> None:
        """Give up a walk or a velocity and come to stand."""
        self._waypoint = None
        self._velocity = np.zeros(3)

    def error(self, state: RobotState) -> tuple[float, float]:
        """Return distance in [m] and heading error in [rad] to the pose walked to; zeros without one."""
        if self._waypoint is None:
            return 0.0, 0.0
        offset, turn = self._waypoint.error(xyyaw_of(state.T_world_base))
        return float(np.hypot(*offset)), turn

    def step(self, state: RobotState, dt: float) -> RobotCommand:
        """Return the leg command for one tick: damped once the robot has fallen, until the next reset.

        Args:
            state: Measured state.
            dt: Time since the last tick in [s].
        """
        self._judge_upright(state)
        if self.fallen:
            damping = RobotCommand.damping(self._robot.joints, self.source, state.stamp_ns)
            damping.active[:] = False
            damping.active[self._robot.joints.group("left_leg", "right_leg")] = True
            return damping
        velocity = self._velocity
        if self._waypoint is not None:
            velocity = self._follow(self._waypoint, state, dt)
        stop = not np.any(velocity)
        if stop and self._policy.standing:
            self._tracker.reset()
            self._policy.command(np.zeros(3), stop=True)
        else:
            self._policy.command(self._tracker.step(self._stance.pose(state), velocity, dt), stop)
        return self._policy.step(state, dt)

    def _judge_upright(self, state: RobotState) -> None:
        upright = float(state.T_world_base.rotation[2, 2])
        if not self.fallen and upright < self._limits.upright:
            self.fallen = True
            if self._waypoint is not None:
                self._fail(
                    WalkOutcome.FALLEN, f"pelvis upright {upright:.2f}, expected above {self._limits.upright:.2f}"
                )

    def _follow(self, waypoint: WaypointController, state: RobotState, dt: float) -> Array:
        self._elapsed += dt
        velocity = waypoint.step(state, dt)
        if waypoint.status is WaypointStatus.ARRIVED:
            self.outcome, self._waypoint = WalkOutcome.ARRIVED, None
            return np.zeros(3)
        if self._elapsed > self._timeout:
            distance, turn = self.error(state)
            self._fail(
                WalkOutcome.TIMEOUT, f"still {distance:.3f} m and {abs(turn):.3f} rad away after {self._elapsed:.1f} s"
            )
            return np.zeros(3)
        if not self._moves(xyyaw_of(state.T_world_base), velocity, dt):
            self._fail(
                WalkOutcome.NOT_EXECUTED,
                f"accepted, not executed: told to walk for {self._still_for:.1f} s, odometry moved less than "
                f"{self._limits.least_travel:.2f} m and {self._limits.least_turn:.2f} rad",
            )
            return np.zeros(3)
        return velocity

    def _moves(self, pose: Array, velocity: Array, dt: float) -> bool:
        limits = self._limits
        if self._moved_from is None or np.abs(velocity).max() < limits.least_speed:
            self._moved_from, self._still_for = pose, 0.0
            return True
        travelled = float(np.hypot(*(pose - self._moved_from)[:2]))
        if travelled > limits.least_travel or abs(wrap_angle(pose[2] - self._moved_from[2])) > limits.least_turn:
            self._moved_from, self._still_for = pose, 0.0
            return True
        self._still_for += dt
        return self._still_for < limits.patience

    def _fail(self, outcome: WalkOutcome, reason: str) -> None:
        self.outcome, self.reason = outcome, reason
        self.stop()
