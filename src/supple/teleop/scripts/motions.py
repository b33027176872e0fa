# SPDX-License-Identifier: Apache-2.0
"""What the scripted operator's demonstrations are made of: waiting, walking, moving hands and fingers, marks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass

import pinocchio as pin

from supple.control.base_motion import WaypointController, WaypointStatus
from supple.control.path_following import FloorPath, PathFollower
from supple.errors import TeleopError
from supple.geometry import interpolate_pose, minimum_jerk, pose_from_xyyaw
from supple.robots import Robot
from supple.teleop.device import OperatorInput, OperatorView

__all__ = ["Motions", "Script"]

Script = Generator[OperatorInput, None, None]

_SQUAT_TIME = 15.0
_AT_HEIGHT = 0.012


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

    def walk(
        self,
        x: float,
        y: float,
        yaw: float,
        seconds: float = 40.0,
        tolerance: float = 0.03,
        yaw_tolerance: float = 0.035,
    ) -> Script:
        """Walk to a place in [m] and [rad], to within tolerances in [m] and [rad].

        Raises:
            TeleopError: It takes longer than the given time in [s].
        """
        controller = WaypointController(self.robot, tolerance, yaw_tolerance)
        controller.start(pose_from_xyyaw(x, y, yaw))
        for _ in range(round(seconds / self.interval)):
            velocity = controller.step(self.view().state, self.interval)
            if controller.status is WaypointStatus.ARRIVED:
                return
            yield OperatorInput(velocity=velocity)
        raise TeleopError(f"the scripted operator did not reach ({x:.2f}, {y:.2f}, {yaw:.2f}) in {seconds:.0f} s")

    def follow(self, path: FloorPath, seconds: float = 60.0) -> Script:
        """Walk along a path until it should be at its end, and stop where that is.

        Raises:
            TeleopError: It takes longer than the given time in [s].
        """
        follower = PathFollower(self.robot)
        follower.start(path)
        for _ in range(round(seconds / self.interval)):
            velocity = follower.step(self.view().state, self.interval)
            if follower.time >= path.times[-1]:
                return
            yield OperatorInput(velocity=velocity)
        raise TeleopError(
            f"the scripted operator did not get along a path of {path.times[-1]:.0f} s in {seconds:.0f} s"
        )

    def squat(self, height: float, seconds: float = 2.0) -> Script:
        """Bring the base to a height in [m], hands carried along, and rest there for some time in [s].

        Raises:
            TeleopError: It does not get there.
        """
        resting = 0
        for _ in range(round(_SQUAT_TIME / self.interval)):
            yield OperatorInput(height=height)
            off = abs(float(self.view().state.T_world_base.translation[2]) - height)
            resting = resting + 1 if off < _AT_HEIGHT else 0
            if resting * self.interval >= seconds:
                return
        raise TeleopError(f"the base did not get to {height:.2f} m: it is still {100 * off:.1f} cm off")

    def move(
        self,
        starts: Mapping[str, pin.SE3],
        goals: Mapping[str, pin.SE3],
        seconds: float,
        heights: tuple[float, float] | None = None,
    ) -> Script:
        """Move hands smoothly from poses to poses, and the base from one height in [m] to another if any are given."""
        steps = round(seconds / self.interval)
        for i in range(1, steps + 1):
            fraction = minimum_jerk(i / steps)
            poses = {name: interpolate_pose(starts[name], goals[name], fraction) for name in goals}
            height = None if heights is None else heights[0] + fraction * (heights[1] - heights[0])
            yield OperatorInput(poses=poses, clutch=True, height=height)

    def finger(self, fingers: Mapping[str, str], poses: Mapping[str, pin.SE3], seconds: float) -> Script:
        """Bring fingers into named postures while the hands are held at poses, and give them time."""
        for _ in range(round(seconds / self.interval)):
            yield OperatorInput(poses=poses, fingers=fingers, clutch=True)

    def finish(self, poses: Mapping[str, pin.SE3]) -> Script:
        """Stop recording and quit, hands held at poses."""
        yield from self.event("stop", poses)
        yield from self.event("quit", poses)
