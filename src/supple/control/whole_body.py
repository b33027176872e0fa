# SPDX-License-Identifier: Apache-2.0
"""The whole-body controller: executes actions of the robot's contract (upper-body targets, base velocity, height)."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from supple.control.base_motion import VelocityTracker
from supple.control.stance import StanceEstimator
from supple.control.standing import HEIGHT_RANGE, WALKING_HEIGHT_TOLERANCE, HandOver, LegMode, StandingController
from supple.control.upper_body import UpperBodyController
from supple.control.walking import WalkingPolicy
from supple.robots import ActionContract, ActionKind, Robot, RobotCommand, RobotState
from supple.robots.g1 import LEG_GROUPS

__all__ = ["WholeBodyController"]

Array = NDArray[np.float64]


class WholeBodyController:
    """Legs by the walking policy or, at other heights, by the standing controller; waist, arms and hands by targets.

    An action with a ``base_height`` off the walking height and no velocity squats: the policy comes to rest and hands
    over to the standing controller. That one keeps the legs, at walking height too, until a velocity is wanted: then
    the robot first rises and hands over, and only then walks.

    The same controller executes actions in generation, replay, evaluation and behind the ROS executors; given the same
    states and actions from a reset on, it returns the same commands.

    Args:
        robot: The robot; its contract says what an action means.

    Attributes:
        stance: Where the robot stands, free of sway.
        limited: Names of the action entries that the last command's limits changed. The walking policy serves one
            height only, so any other ``base_height`` that comes with a velocity is named here.
    """

    source = "whole_body"

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.contract: ActionContract = robot.contract
        self.walking = WalkingPolicy(robot)
        self.upper_body = UpperBodyController(robot)
        self.stance = StanceEstimator(robot)
        self.standing = StandingController(robot)
        self._hand_over = HandOver(robot, self.walking, self.standing)
        self._legs = np.isin(np.arange(len(robot.joints)), robot.joints.group(*LEG_GROUPS))
        self._height = robot.standing_height
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
        self._hand_over.reset()
        self._tracker.reset()
        self._velocity = np.zeros(3)
        self._height = self.robot.standing_height
        self.limited = []

    @property
    def mode(self) -> LegMode:
        """Who has the legs."""
        return self._hand_over.mode

    @property
    def base_reference(self) -> pin.SE3 | None:
        """How the standing controller meant the base to be at the last step; none while the walking policy has it."""
        return self.standing.base_reference if self._hand_over.standing else None

    def action(self, upper_body: ArrayLike, velocity: ArrayLike, height: float | None = None) -> Array:
        """Compose an action from upper-body targets (31,) in [rad], base velocity (3,) and base height in [m].

        Without a height it is the one at which the robot walks.
        """
        action = np.empty(self.contract.size)
        action[self._joint_entries] = upper_body
        action[self._velocity_entries] = velocity
        action[self._height_entry] = self.robot.standing_height if height is None else height
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
        self._velocity = value[self._velocity_entries]
        self._height = self._served_height(value)
        self.upper_body.command(value[self._joint_entries])
        return value

    def _served_height(self, value: Array) -> float:
        """Return the height to be at, the one of the action brought to what can be served."""
        wanted, walking = float(value[self._height_entry]), self.robot.standing_height
        if abs(wanted - walking) <= WALKING_HEIGHT_TOLERANCE:
            return walking
        low, high = HEIGHT_RANGE
        served = walking if np.any(self._velocity) else min(max(wanted, low), high)
        if served != wanted:
            self.limited = [*(name for name in self.limited if name != "base_height"), "base_height"]
            value[self._height_entry] = served
        return served

    def step(self, state: RobotState, dt: float) -> RobotCommand:
        """Return the command for all joints for one tick."""
        self._hand_over.step(state, self._height, bool(np.any(self._velocity)), dt)
        upper = self.upper_body.step(state, dt)
        legs = self._stand(state, upper, dt) if self._hand_over.standing else self._walk(state, dt)
        return RobotCommand(
            state.stamp_ns,
            self.source,
            q=np.where(self._legs, legs.q, upper.q),
            v=np.where(self._legs, legs.v, upper.v),
            tau=np.where(self._legs, legs.tau, upper.tau),
            kp=np.where(self._legs, legs.kp, upper.kp),
            kd=np.where(self._legs, legs.kd, upper.kd),
            active=legs.active | upper.active,
        )

    def _walk(self, state: RobotState, dt: float) -> RobotCommand:
        stop = not np.any(self._velocity)
        if stop and self.walking.standing:
            self._tracker.reset()
            self.walking.command(np.zeros(3), stop=True)
        else:
            self.walking.command(self._tracker.step(self.stance.pose(state), self._velocity, dt), stop)
        return self.walking.step(state, dt)

    def _stand(self, state: RobotState, upper: RobotCommand, dt: float) -> RobotCommand:
        self._tracker.reset()
        self.standing.set_posture(upper.q)
        return self.standing.step(state, dt)
