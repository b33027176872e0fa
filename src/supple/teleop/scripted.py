# SPDX-License-Identifier: Apache-2.0
"""A scripted operator: does by program, through the same device interface, what a person would do by hand."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from supple.control.base_motion import WaypointController, WaypointStatus
from supple.errors import TeleopError, UnknownNameError
from supple.geometry import interpolate_pose, minimum_jerk, pose_from_xyyaw, yaw_of
from supple.robots import Robot
from supple.teleop.device import OperatorInput, OperatorView

__all__ = ["ScriptedOperator", "scripted_tasks"]

Script = Generator[OperatorInput, None, None]
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Tools:
    """What scripts share: the robot, the tick and the newest view."""

    robot: Robot
    interval: float
    view: Callable[[], OperatorView]

    def wait(self, seconds: float, **given: object) -> Script:
        for _ in range(round(seconds / self.interval)):
            yield OperatorInput(**given)  # type: ignore[arg-type]

    def walk(self, x: float, y: float, yaw: float, seconds: float = 40.0) -> Script:
        controller = WaypointController(self.robot)
        controller.start(pose_from_xyyaw(x, y, yaw))
        for _ in range(round(seconds / self.interval)):
            velocity = controller.step(self.view().state, self.interval)
            if controller.status is WaypointStatus.ARRIVED:
                return
            yield OperatorInput(velocity=velocity)
        raise TeleopError(f"the scripted operator did not reach ({x:.2f}, {y:.2f}, {yaw:.2f}) in {seconds:.0f} s")

    def move(self, starts: dict[str, pin.SE3], goals: dict[str, pin.SE3], seconds: float) -> Script:
        steps = round(seconds / self.interval)
        for i in range(1, steps + 1):
            fraction = minimum_jerk(i / steps)
            poses = {name: interpolate_pose(starts[name], goals[name], fraction) for name in goals}
            yield OperatorInput(poses=poses, clutch=True)


def _box_lift(tools: _Tools) -> Script:
    """Walk up to the box, put the hands beside it, mark, press, lift, hold.

    The hands are turned inward until thumb knuckle and finger tips touch the side together; pressed by the knuckle
    alone, the box would swing about it.
    """
    inward, half_width, grip_height, pressed = 0.52, 0.086, 0.088, -0.03
    rise, pulled = 0.175, 0.02
    yield from tools.wait(0.5)
    yield OperatorInput(events=("start",))
    box = tools.view().objects["box"]
    # The box's frame is turned by a quarter to the left of the robot's heading in front of it.
    heading = yaw_of(box) - 0.5 * np.pi
    ahead = box.translation[:2] - 0.38 * np.array([np.cos(heading), np.sin(heading)])
    yield from tools.walk(ahead[0], ahead[1], heading)
    x, y, z = tools.view().objects["box"].translation
    frame = pose_from_xyyaw(x, y, heading, z)

    def hands(gap: float, lift: float) -> dict[str, pin.SE3]:
        poses = {}
        for name, sign in (("left_hand", 1.0), ("right_hand", -1.0)):
            # Drawn towards the body as it rises: at arm's length its weight would tip the robot forward.
            offset = np.array([0.01 - pulled * lift / rise, sign * (half_width + gap), grip_height + lift])
            poses[name] = frame * pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, -sign * inward), offset)
        return poses

    start = dict(tools.view().effectors)
    # Above and beside the box first, so that no finger touches it on the way.
    yield from tools.move(start, hands(0.12, 0.12), 1.5)
    yield from tools.move(hands(0.12, 0.12), hands(0.09, 0.0), 1.0)
    yield OperatorInput(poses=hands(0.09, 0.0), clutch=True, events=("mark:lift",))
    yield from tools.move(hands(0.09, 0.0), hands(0.02, 0.0), 0.8)
    yield from tools.move(hands(0.02, 0.0), hands(pressed, 0.0), 0.8)
    yield from tools.move(hands(pressed, 0.0), hands(pressed, 0.0), 0.3)
    yield from tools.move(hands(pressed, 0.0), hands(pressed, rise), 2.0)
    yield OperatorInput(poses=hands(pressed, rise), clutch=True, events=("mark:end",))
    yield from tools.move(hands(pressed, rise), hands(pressed, rise), 1.5)
    yield OperatorInput(poses=hands(pressed, rise), clutch=True, events=("stop",))
    yield OperatorInput(poses=hands(pressed, rise), clutch=True, events=("quit",))


_SCRIPTS: dict[str, Callable[[_Tools], Script]] = {"box_lift": _box_lift}


def scripted_tasks() -> tuple[str, ...]:
    """Return the names of the tasks that the scripted operator knows."""
    return tuple(sorted(_SCRIPTS))


class ScriptedOperator:
    """A device whose hand poses, velocities and marks come from a program that sees what an operator would see.

    Args:
        robot: The robot.
        task: Name of the task to demonstrate.
        say: Where messages to the operator go; nobody looks at a screen here, so they are logged if absent.

    Raises:
        UnknownNameError: No script for that task.
    """

    name = "scripted"
    tracked = False

    def __init__(self, robot: Robot, task: str, say: Callable[[str], object] = _LOG.info) -> None:
        if task not in _SCRIPTS:
            raise UnknownNameError("scripted task", task, _SCRIPTS)
        self._say = say
        self._view: OperatorView | None = None
        self._script = _SCRIPTS[task](_Tools(robot, robot.contract.control_interval, self._newest))
        self._last = OperatorInput()

    def _newest(self) -> OperatorView:
        if self._view is None:
            raise TeleopError("the scripted operator was asked before it saw anything")
        return self._view

    def read(self, view: OperatorView) -> OperatorInput:
        """Return the script's next input; after its end the last one without events."""
        self._view = view
        try:
            self._last = next(self._script)
        except StopIteration:
            return OperatorInput(self._last.poses, self._last.fingers, np.zeros(3), self._last.clutch)
        return self._last

    def tell(self, text: str) -> None:
        """Pass a message on."""
        self._say(text)

    def close(self) -> None:
        """End the script."""
        self._script.close()
