# SPDX-License-Identifier: Apache-2.0
"""The whole-body controller: executes actions of the robot's contract (upper-body targets, base velocity, height)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supple.control.base_motion import VelocityTracker
from supple.control.stance import StanceEstimator
from supple.control.upper_body import UpperBodyController
from supple.control.walking import WalkingPolicy
from supple.robots import ActionContract, ActionKind, Robot, RobotCommand, RobotState

__all__ = ["WholeBodyController"]

Array = NDArray[np.float64]


class WholeBodyController:
    """Legs by the walking policy, waist, arms and hands by position targets.

    The same controller executes actions in generation, replay, evaluation and behind the ROS executors; given the same
    states and actions from a reset on, it returns the same commands.

    Args:
        robot: The robot; its contract says what an action means.

    Attributes:
        stance: Where the robot stands, free of sway.
        limited: Names of the action entries that the last command's limits changed. The walking policy serves one
            height only, so any other ``base_height`` is named here.
    """

    source = "whole_body"

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.contract: ActionContract = robot.contract
        self.walking = WalkingPolicy(robot)
        self.upper_body = UpperBodyController(robot)
        self.stance = StanceEstimator(robot)
        self._tracker = VelocityTracker()
        self._joint_entries = self.contract.of_kind(ActionKind.JOINT_POSITION)
        self._velocity_entries = self.contract.of_kind(ActionKind.BASE_VELOCITY)
        self._height_entry = int(self.contract.of_kind(ActionKind.BASE_HEIGHT)[0])
        self._velocity = np.zeros(3)
        self.limited: list[str] = []

    def reset(self) -> None:
        """Forget gait, targets and integrated errors, as at the start of an episode."""
        self.walking.reset()
        self.upper_body.reset()
        self._tracker.reset()
        self._velocity = np.zeros(3)
        self.limited = []

    def action(self, upper_body: ArrayLike, velocity: ArrayLike) -> Array:
        """Compose an action from upper-body targets (31,) in [rad] and base velocity (3,), at standing height."""
        action = np.empty(self.contract.size)
        action[self._joint_entries] = upper_body
        action[self._velocity_entries] = velocity
        action[self._height_entry] = self.robot.standing_height
        return action

    def upper_body_of(self, action: Array) -> Array:
        """Return the upper-body targets (31,) of an action in [rad]."""
        return action[self._joint_entries]

    def velocity_of(self, action: Array) -> Array:
        """Return the base velocity (vx, vy, wz) of an action."""
        return action[self._velocity_entries]

    def command(self, action: ArrayLike) -> Array:
        """Set the action to execute from the next step on.

        Returns:
            The action after limits, shape (contract.size,).

        Raises:
            ContractError: Wrong size or a number that is not finite.
        """
        value, self.limited = self.contract.clamp(self.contract.check(action))
        if abs(value[self._height_entry] - self.robot.standing_height) > 0.02:
            self.limited = [*(name for name in self.limited if name != "base_height"), "base_height"]
            value[self._height_entry] = self.robot.standing_height
        self.upper_body.command(value[self._joint_entries])
        self._velocity = value[self._velocity_entries]
        return value

    def step(self, state: RobotState, dt: float) -> RobotCommand:
        """Return the command for all joints for one tick."""
        stop = not np.any(self._velocity)
        if stop and self.walking.standing:
            self._tracker.reset()
            self.walking.command(np.zeros(3), stop=True)
        else:
            self.walking.command(self._tracker.step(self.stance.pose(state), self._velocity, dt), stop)
        legs = self.walking.step(state, dt)
        upper = self.upper_body.step(state, dt)
        return RobotCommand(
            state.stamp_ns,
            self.source,
            q=np.where(legs.active, legs.q, upper.q),
            v=np.where(legs.active, legs.v, upper.v),
            tau=np.where(legs.active, legs.tau, upper.tau),
            kp=np.where(legs.active, legs.kp, upper.kp),
            kd=np.where(legs.active, legs.kd, upper.kd),
            active=legs.active | upper.active,
        )
