# SPDX-License-Identifier: Apache-2.0
"""The action reach: planned in a thread of its own, followed, corrected for the robot's lean, judged."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from rclpy.node import Node
from supple_interfaces.action import Reach

from supple.control.manipulation import Manipulation
from supple.control.reach import ReachPlanner, UnreachableError
from supple.control.trajectory import JointTrajectory, Tolerances
from supple.errors import StateError, SuppleError, UnknownNameError
from supple.geometry import pose_error
from supple.kinematics.transforms import WORLD_FRAME
from supple.nodes.conversion import pose_of
from supple.nodes.goals import Goal, SingleGoalServer
from supple.robots import RobotState
from supple.robots.description import BASE_FRAME

__all__ = ["ReachGoals", "ReachSettings"]

_FEEDBACK_EVERY = 5
# A standing robot leans when its arms go out: the hands are then led to where they should be from where it leans now.
_CORRECTIONS = 4
_SETTLING = 0.3


@dataclass(frozen=True)
class ReachSettings:
    """How hands reach.

    Attributes:
        speed_limit: Largest joint speed of a reach whose duration is given, in [rad/s].
        speed: Largest joint speed of one without, in [rad/s].
        tolerances: Accepted distance in [m] and angle in [rad] unless a goal says otherwise.
    """

    speed_limit: float
    speed: float
    tolerances: tuple[float, float]


@dataclass
class _Reach:
    """A reach being planned or executed.

    Attributes:
        targets: Target of each effector and the frame it is given in.
        tolerances: Accepted distance in [m] and angle in [rad].
        plan: The motion that is planned, or followed.
        end_ns: When it ends, in [ns]; None while it is planned.
        corrections: How often it may still be planned anew.
    """

    targets: dict[str, tuple[str, pin.SE3]]
    tolerances: tuple[float, float]
    plan: Future[JointTrajectory]
    end_ns: int | None = None
    corrections: int = _CORRECTIONS

    def in_world(self, base: pin.SE3) -> dict[str, pin.SE3]:
        """Return the targets in the world for a base pose."""
        return {name: base * pose if frame == BASE_FRAME else pose for name, (frame, pose) in self.targets.items()}


class ReachGoals:
    """Goals of ``reach``, one at a time.

    Args:
        node: Whose action it is.
        manipulation: What moves.
        planner: What plans the motions.
        settings: How hands reach.
        present: Returns the state now; raises StateError if nothing may be moved.
        on_begin: Called before a goal takes the upper body over.
    """

    def __init__(
        self,
        node: Node,
        manipulation: Manipulation,
        planner: ReachPlanner,
        settings: ReachSettings,
        present: Callable[[], RobotState],
        on_begin: Callable[[], None],
    ) -> None:
        self._manipulation, self._planner, self._settings = manipulation, planner, settings
        self._present, self._on_begin = present, on_begin
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reach")
        self._server = SingleGoalServer(node, Reach, "reach", self._on_goal, lambda _: self.replace())
        self._reaching: _Reach | None = None
        self._ticks = 0

    @property
    def goal(self) -> Goal | None:
        """The goal that is pursued, or None."""
        return self._server.goal

    def close(self) -> None:
        """Take the action away."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._server.close()

    def replace(self) -> None:
        """Finish the goal, if there is one, because a newer one moves the upper body."""
        self.end(Reach.Result.PREEMPTED, "replaced by a newer goal")

    def end(self, code: int, text: str) -> None:
        """Finish the goal, if there is one, with an error of ``Reach.Result``; a cancellation counts as wanted."""
        goal = self.goal
        if goal is not None:
            finish = goal.cancel if code == Reach.Result.PREEMPTED else goal.abort
            finish(Reach.Result(error_code=code, error_string=text))

    def _on_goal(self, goal: Goal) -> None:
        request = goal.request
        try:
            state = self._present()
            targets = self._targets(request)
            numbers = (request.duration, request.position_tolerance, request.orientation_tolerance)
            if not all(np.isfinite(number) and number >= 0.0 for number in numbers):
                raise StateError(f"duration and tolerances must be finite and not negative, got {numbers}")
        except SuppleError as error:
            goal.abort(Reach.Result(error_code=Reach.Result.INVALID_GOAL, error_string=str(error)))
            return
        self._on_begin()
        self._manipulation.stop()
        position, orientation = self._settings.tolerances
        tolerances = (request.position_tolerance or position, request.orientation_tolerance or orientation)
        reach = _Reach(targets, tolerances, Future())
        self._plan(reach, state, request.duration)
        self._reaching = reach

    def _plan(self, reach: _Reach, state: RobotState, duration: float = 0.0) -> None:
        start, targets = self._manipulation.posture(state), reach.in_world(state.T_world_base)
        speed = self._settings.speed_limit if duration else self._settings.speed
        # Half of what is accepted is left to the arms' own error.
        tolerances = (0.5 * reach.tolerances[0], 0.5 * reach.tolerances[1])
        reach.plan = self._thread.submit(
            self._planner.plan, state.T_world_base, start, targets, duration, speed, *tolerances
        )
        reach.end_ns = None

    def _targets(self, request: Reach.Goal) -> dict[str, tuple[str, pin.SE3]]:
        if not request.effector or len(request.effector) != len(request.target):
            raise StateError(
                f"{len(request.effector)} effectors and {len(request.target)} targets; expected one for each"
            )
        if len(set(request.effector)) != len(request.effector):
            raise StateError(f"effectors given twice: {', '.join(request.effector)}")
        targets = {}
        for name, message in zip(request.effector, request.target, strict=True):
            self._planner.kinematics.robot.effector(name)
            pose = pose_of(message.pose, f"target of {name}")
            frame, frames = message.header.frame_id, (WORLD_FRAME, BASE_FRAME)
            if frame not in frames:
                raise UnknownNameError("frame", frame, frames)
            targets[name] = (frame, pose)
        return targets

    def report(self, state: RobotState) -> None:
        """Carry the goal on, if there is one, at a control tick."""
        goal, reach = self.goal, self._reaching
        self._ticks += 1
        if goal is None or reach is None or not reach.plan.done():
            return
        if reach.end_ns is None:
            self._start(goal, reach, state)
            return
        if self._manipulation.moving:
            if self._ticks % _FEEDBACK_EVERY == 0:
                left = (reach.end_ns - state.stamp_ns) * 1e-9
                duration = max(reach.plan.result().duration, 1e-9)
                goal.feedback(Reach.Feedback(progress=float(np.clip(1.0 - left / duration, 0.0, 1.0))))
            return
        errors = self._errors(reach, state)
        inside = all(p <= reach.tolerances[0] and r <= reach.tolerances[1] for p, r in errors)
        if not inside and state.stamp_ns - reach.end_ns < _SETTLING * 1e9:
            return
        if not inside and reach.corrections > 0:
            reach.corrections -= 1
            self._plan(reach, state)
            return
        result = Reach.Result(position_error=[p for p, _ in errors], orientation_error=[r for _, r in errors])
        if inside:
            goal.succeed(result)
            return
        worst = max(range(len(errors)), key=lambda i: errors[i][0])
        result.error_code = Reach.Result.NOT_REACHED
        result.error_string = (
            f"{goal.request.effector[worst]} ended {1e3 * errors[worst][0]:.0f} mm, {errors[worst][1]:.2f} rad away; "
            f"tolerances {1e3 * reach.tolerances[0]:.0f} mm and {reach.tolerances[1]:.2f} rad"
        )
        goal.abort(result)

    def _start(self, goal: Goal, reach: _Reach, state: RobotState) -> None:
        try:
            trajectory = reach.plan.result()
        except UnreachableError as error:
            goal.abort(Reach.Result(error_code=Reach.Result.UNREACHABLE, error_string=str(error)))
            return
        except SuppleError as error:
            goal.abort(Reach.Result(error_code=Reach.Result.INVALID_GOAL, error_string=str(error)))
            return
        free = Tolerances.of(trajectory.names, {}, {})
        self._manipulation.follow(trajectory, free, free, 0.0, state.stamp_ns)
        reach.end_ns = state.stamp_ns + round(trajectory.duration * 1e9)

    def _errors(self, reach: _Reach, state: RobotState) -> list[tuple[float, float]]:
        kinematics = self._planner.kinematics
        frames = [kinematics.robot.effector(name).frame for name in reach.targets]
        poses = kinematics.frame_poses(kinematics.configuration(state.T_world_base, state.q), *frames)
        targets = reach.in_world(state.T_world_base)
        return [pose_error(pose, target) for pose, target in zip(poses, targets.values(), strict=True)]
