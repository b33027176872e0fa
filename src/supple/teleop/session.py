# SPDX-License-Identifier: Apache-2.0
"""A teleoperation session: device in, whole-body actions out, marks and recording on the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.control.steady_base import SteadyBase
from supple.control.whole_body import WholeBodyController
from supple.errors import TeleopError, UnknownNameError
from supple.geometry import minimum_jerk, pose_error
from supple.kinematics.hand_tracking import HandTracking
from supple.kinematics.model import KinematicModel
from supple.robots import Robot, RobotCommand, RobotState
from supple.teleop.clutch import Clutch
from supple.teleop.device import Device, OperatorInput, OperatorView

__all__ = ["TeleopSession", "TeleopTick"]

Array = NDArray[np.float64]

# A hand that is told to jump is taken there at this speed instead, in [m/s] and [rad/s].
_LINEAR_SPEED = 0.8
_ANGULAR_SPEED = 3.0
# How fast the quickest joint goes when the arms are brought home, in [rad/s].
_HOMING_SPEED = 0.8


@dataclass(frozen=True)
class TeleopTick:
    """What one tick of a session brought about.

    Attributes:
        action: The action, shape (contract.size,).
        command: The joint command to write to the body.
        targets: World pose that each effector is sent to; where it is for one that is not steered.
        events: What the operator asked for: start, stop, discard, quit or mark:<label>.
        engaged: Whether the hands follow the device.
        refused: Why engagement was refused, if it was.
    """

    action: Array
    command: RobotCommand
    targets: Mapping[str, pin.SE3]
    events: tuple[str, ...]
    engaged: bool
    refused: str = ""


class TeleopSession:
    """Turn what an operator does into actions of the robot's contract, tick by tick.

    Args:
        robot: The robot.
        device: What the operator holds.
    """

    def __init__(self, robot: Robot, device: Device) -> None:
        self.robot = robot
        self.device = device
        self.controller = WholeBodyController(robot)
        self._tracking, self._kinematics = HandTracking(robot), KinematicModel(robot)
        self._steady = SteadyBase()
        self._interval = robot.contract.control_interval
        self._clutch = Clutch(device.tracked, self._interval)
        self._height: float | None = None
        self._q: Array | None = None
        self._start: Array | None = None
        self._commanded: Array | None = None
        self._homing: tuple[Array, float, float] | None = None
        self._upper = np.isin(np.arange(len(robot.joints)), self.controller.upper_body.indices)
        self._targets: dict[str, pin.SE3] = {}

    def reset(self) -> None:
        """Begin anew, e.g. after the robot was put elsewhere: no targets, no clutch, nothing to go home to."""
        self.controller.reset()
        self._clutch.release()
        self._height = None
        self._q = self._start = self._commanded = self._homing = None
        self._targets = {}

    def tick(self, view: OperatorView) -> TeleopTick:
        """Advance by one control interval.

        Args:
            view: What the operator sees now.

        Raises:
            TeleopError: The device gave a pose that is not finite, or itself cannot go on.
            UnknownNameError: The device asked for a finger posture that the hand does not have.
        """
        state = view.state
        if self._q is None or self._start is None:
            self._q, self._start = state.q.copy(), state.q.copy()
        given = self.device.read(view)
        self._clutch.update(given.poses)
        refused = self._follow_clutch(given, view)
        if np.any(given.velocity):
            self._height = None
        elif given.height is not None:
            self._height = given.height
        if self._clutch.engaged:
            self._targets = self._limited(self._clutch.targets())
            base = self._steady.step(state.T_world_base, self._interval, self.controller.base_reference)
            self._q = self._tracking.step(base, self._q, self._targets, self._posture())
        else:
            self._steady.reset()
        self._move_fingers(given)
        action = self.controller.action(self._q[self.controller.upper_body.indices], given.velocity, self._height)
        action = self.controller.command(action)
        command = self.controller.step(state, self._interval)
        self._commanded = command.q
        return TeleopTick(
            action, command, {**view.effectors, **self._targets}, given.events, self._clutch.engaged, refused
        )

    def home(self, state: RobotState, longest: float = np.inf) -> tuple[RobotCommand, bool]:
        """Bring the arms back to where they were at the first tick; call it every interval instead of ``tick``.

        The clutch is released, the base stops at the height that it has, and the upper body goes smoothly at up to
        0.8 rad/s.

        Args:
            state: The robot's measurement.
            longest: Most time it may take in [s]; shorter than needed makes it faster.

        Returns:
            The joint command to write, and whether the arms have arrived.
        """
        self._clutch.release()
        if self._q is None or self._start is None:
            self._q, self._start = state.q.copy(), state.q.copy()
        if self._homing is None:
            # From where the arms are told to be now: what they were heading for may be far away still.
            if self._commanded is not None:
                self._q = np.where(self._upper, self._commanded, self._q)
            distance = float(np.abs(self._start - self._q)[self.controller.upper_body.indices].max())
            # The middle of a minimum-jerk motion is 15/8 times as fast as its mean.
            self._homing = (self._q.copy(), 0.0, min(1.875 * distance / _HOMING_SPEED, longest))
        origin, elapsed, duration = self._homing
        elapsed += self._interval
        self._homing = (origin, elapsed, duration)
        fraction = minimum_jerk(elapsed / duration) if duration > 0.0 else 1.0
        self._q = origin + fraction * (self._start - origin)
        self.controller.command(
            self.controller.action(self._q[self.controller.upper_body.indices], np.zeros(3), self._height)
        )
        return self.controller.step(state, self._interval), elapsed >= duration - 1e-9

    def _follow_clutch(self, given: OperatorInput, view: OperatorView) -> str:
        if given.clutch and not self._clutch.engaged:
            try:
                here = self._sent(given.poses, view.state)
                self._clutch.engage(here)
            except TeleopError as error:
                return str(error)
            self._targets = here
        elif not given.clutch and self._clutch.engaged:
            self._clutch.release()
        return ""

    def _sent(self, names: Iterable[str], state: RobotState) -> dict[str, pin.SE3]:
        """Return where hands are sent at present: with a load, or pressed against something, they are elsewhere.

        What follows begins there, so that no force changes when the clutch closes.
        """
        model, effectors = self._kinematics, [self.robot.effector(name) for name in names]
        if self._q is None or not effectors:
            return {}
        configuration = model.configuration(state.T_world_base, self._q)
        poses = model.frame_poses(configuration, *(effector.frame for effector in effectors))
        return dict(zip((effector.name for effector in effectors), poses, strict=True))

    def _limited(self, wanted: Mapping[str, pin.SE3]) -> dict[str, pin.SE3]:
        """Move targets towards what is wanted, no faster than a hand may go."""
        result = {}
        for name, goal in wanted.items():
            start = self._targets.get(name, goal)
            distance, angle = pose_error(start, goal)
            excess = max(distance / (_LINEAR_SPEED * self._interval), angle / (_ANGULAR_SPEED * self._interval))
            fraction = 1.0 if excess <= 1.0 else 1.0 / excess
            rotation = start.rotation @ pin.exp3(fraction * pin.log3(start.rotation.T @ goal.rotation))
            result[name] = pin.SE3(rotation, start.translation + fraction * (goal.translation - start.translation))
        return result

    def _posture(self) -> Array:
        """Return what to stay near: arms as they are, waist as it was at the beginning."""
        if self._q is None or self._start is None:
            raise TeleopError("hands moved before the first state")
        waist = self.robot.joints.group("waist")
        posture = self._q.copy()
        posture[waist] = self._start[waist]
        return posture

    def _move_fingers(self, given: OperatorInput) -> None:
        if self._q is None:
            raise TeleopError("fingers moved before the first state")
        for name, posture in given.fingers.items():
            effector = self.robot.effector(name)
            if posture not in effector.postures:
                raise UnknownNameError(f"finger posture of {name}", posture, effector.postures)
            self._q[self.robot.joints.group(effector.fingers)] = effector.postures[posture]
