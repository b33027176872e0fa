# SPDX-License-Identifier: Apache-2.0
"""Upper-body position control: targets for waist, arms and hands, held against gravity by feed-forward torque."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supple.errors import JointError
from supple.kinematics.model import KinematicModel
from supple.robots import Robot, RobotCommand, RobotState
from supple.robots.g1 import HAND_GROUPS, STANDING_WAIST_RANGE, UPPER_BODY_GROUPS

__all__ = ["UpperBodyController"]

Array = NDArray[np.float64]


class UpperBodyController:
    """Hold waist, arms and hands at target positions.

    The waist is kept within the range in which the walking policy stands. Gravity torque of the target posture in the
    measured base orientation is fed forward (fingers excepted: they weigh nothing and would only be disturbed). Targets
    move at most as fast as the joints may.

    Args:
        robot: The robot.
        speed_limit: Largest speed of arm and waist targets in [rad/s].
    """

    source = "manipulation"

    def __init__(self, robot: Robot, speed_limit: float = 4.0) -> None:
        self._joints = robot.joints
        self._model = KinematicModel(robot)
        self.indices = self._joints.group(*UPPER_BODY_GROUPS)
        self._lower, self._upper = self._joints.lower[self.indices], self._joints.upper[self.indices]
        for name, (lower, upper) in STANDING_WAIST_RANGE.items():
            place = self.indices == self._joints.index(name)
            self._lower, self._upper = np.where(place, lower, self._lower), np.where(place, upper, self._upper)
        hands = self._joints.group(*HAND_GROUPS)
        self._weighing = np.setdiff1d(self.indices, hands)
        self._speed = np.full(len(self._joints), speed_limit)
        self._speed[hands] = 12.0
        self._target: Array | None = None
        self._position: Array | None = None

    def reset(self) -> None:
        """Forget the target; the next step holds what is measured."""
        self._target = self._position = None

    @property
    def target(self) -> Array | None:
        """The target positions in [rad] in table order of the upper body, shape (31,), if one was set."""
        return None if self._target is None else self._target.copy()

    def command(self, target: ArrayLike) -> None:
        """Set the target positions of waist, arms and hands in [rad], shape (31,), table order.

        Raises:
            JointError: Wrong shape or a number that is not finite; names the joints.
        """
        value = np.asarray(target, dtype=np.float64)
        if value.shape != self.indices.shape:
            raise JointError(f"upper-body target: expected {self.indices.size} numbers, got shape {value.shape}")
        if not np.all(np.isfinite(value)):
            names = [self._joints.names[self.indices[i]] for i in np.flatnonzero(~np.isfinite(value))]
            raise JointError(f"upper-body target is not finite for {', '.join(names)}")
        # Beyond this range the walking policy falls. Who can refuse a target does so before; here the robot is kept up.
        self._target = np.minimum(np.maximum(value, self._lower), self._upper)

    def step(self, state: RobotState, dt: float) -> RobotCommand:
        """Return the upper-body command for one tick.

        Args:
            state: Measured state.
            dt: Time since the last tick in [s].
        """
        if self._position is None:
            self._position = state.q[self.indices].copy()
        if self._target is None:
            self._target = self._position.copy()
        travel = self._speed[self.indices] * dt
        self._position = self._position + np.minimum(np.maximum(self._target - self._position, -travel), travel)
        command = RobotCommand.blank(self._joints, self.source, state.stamp_ns)
        command.q[self.indices] = self._position
        command.active[self.indices] = True
        posture = state.q.copy()
        posture[self.indices] = self._position
        gravity = self._model.gravity_torques(self._model.configuration(state.T_world_base, posture))
        command.tau[self._weighing] = gravity[self._weighing]
        return command
