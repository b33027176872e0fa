# SPDX-License-Identifier: Apache-2.0
"""What the scripted operator's demonstrations are made of: waiting, walking, moving hands and fingers, marks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass

import pinocchio as pin

from supple.control.base_motion import WaypointController, WaypointStatus
from supple.errors import TeleopError
from supple.geometry import interpolate_pose, minimum_jerk, pose_from_xyyaw
from supple.robots import Robot
from supple.teleop.device import OperatorInput, OperatorView

__all__ = ["Motions", "Script"]

Script = Generator[OperatorInput, None, None]


@dataclass(frozen=True)
class Motions:
    """Pieces of a script, each a generator of what the operator does tick by tick.

    Attributes:
        robot: The robot.
        interval: Time of a tick in [s].
        view: Returns what the operator sees now.
    """

    robot: Robot
    interval: float
    view: Callable[[], OperatorView]

    def wait(self, seconds: float) -> Script:
        """Do nothing; hands stay where they were sent."""
        for _ in range(round(seconds / self.interval)):
            yield OperatorInput()

    def event(self, name: str, poses: Mapping[str, pin.SE3] | None = None) -> Script:
        """Give an event, e.g. ``"mark:lift"``, while the hands are held at poses (or not steered at all)."""
        yield OperatorInput(poses=poses or {}, clutch=bool(poses), events=(name,))

    def walk(self, x: float, y: float, yaw: float, seconds: float = 40.0, tolerance: float = 0.03) -> Script:
        """Walk to a place in [m] and [rad], to within a tolerance in [m].

        Raises:
            TeleopError: It takes longer than the given time in [s].
        """
        controller = WaypointController(self.robot, tolerance)
        controller.start(pose_from_xyyaw(x, y, yaw))
        for _ in range(round(seconds / self.interval)):
            velocity = controller.step(self.view().state, self.interval)
            if controller.status is WaypointStatus.ARRIVED:
                return
            yield OperatorInput(velocity=velocity)
        raise TeleopError(f"the scripted operator did not reach ({x:.2f}, {y:.2f}, {yaw:.2f}) in {seconds:.0f} s")

    def move(self, starts: Mapping[str, pin.SE3], goals: Mapping[str, pin.SE3], seconds: float) -> Script:
        """Move hands smoothly from poses to poses."""
        steps = round(seconds / self.interval)
        for i in range(1, steps + 1):
            fraction = minimum_jerk(i / steps)
            poses = {name: interpolate_pose(starts[name], goals[name], fraction) for name in goals}
            yield OperatorInput(poses=poses, clutch=True)

    def finger(self, fingers: Mapping[str, str], poses: Mapping[str, pin.SE3], seconds: float) -> Script:
        """Bring fingers into named postures while the hands are held at poses, and give them time."""
        for _ in range(round(seconds / self.interval)):
            yield OperatorInput(poses=poses, fingers=fingers, clutch=True)

    def finish(self, poses: Mapping[str, pin.SE3]) -> Script:
        """Stop recording and quit, hands held at poses."""
        yield from self.event("stop", poses)
        yield from self.event("quit", poses)
