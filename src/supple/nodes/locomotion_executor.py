# SPDX-License-Identifier: Apache-2.0
"""Node that drives the legs: cmd_vel, goal_pose and the action walk_to, through the walking policy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pinocchio as pin
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped, TwistStamped
from supple_interfaces.action import WalkTo
from supple_interfaces.msg import JointCommand

from supple.control.locomotion import Locomotion, WalkLimits, WalkOutcome
from supple.errors import StateError
from supple.geometry import pose_from_xyyaw, wrap_angle, xyyaw_of
from supple.kinematics.transforms import FOOTPRINT_FRAME, WORLD_FRAME
from supple.nodes.conversion import header, joint_command, pose_message, pose_of
from supple.nodes.diagnostics import steady_clock
from supple.nodes.goals import Goal, SingleGoalServer
from supple.nodes.lifecycle import ActuatorNode
from supple.nodes.qos import COMMAND, publisher, subscription, withdraw
from supple.nodes.runtime import run_node
from supple.nodes.scheduling import CONTROL_PRIORITY
from supple.nodes.state_input import StateInput
from supple.robots import RobotCommand, RobotState, robot_named
from supple.robots.description import BASE_FRAME
from supple.robots.g1 import LEG_GROUPS

__all__ = ["LocomotionExecutor", "main"]

_CODES = {
    WalkOutcome.ARRIVED: WalkTo.Result.SUCCESS,
    WalkOutcome.TIMEOUT: WalkTo.Result.TIMEOUT,
    WalkOutcome.NOT_EXECUTED: WalkTo.Result.NOT_EXECUTED,
    WalkOutcome.FALLEN: WalkTo.Result.FALLEN,
}
_FEEDBACK_EVERY = 5


class LocomotionExecutor(ActuatorNode):
    """Legs of a walking robot. It stands as soon as it is active."""

    def __init__(self) -> None:
        super().__init__("locomotion_executor", realtime_priority=CONTROL_PRIORITY)
        self._robot = robot_named(self.parameter("robot", "g1", "name of the robot"))
        self._stale = self.parameter("cmd_vel_timeout", 0.5, "a velocity is obeyed for this time in s, then it stops")
        self._state_timeout = self.parameter(
            "state_timeout", 1.0, "a walk is aborted without states for this time in s"
        )
        self._default_timeout = self.parameter(
            "walk_timeout", 60.0, "a walk takes at most this time in s, unless it says so"
        )
        position = self.parameter("position_tolerance", 0.03, "accepted distance at the end of a walk in m")
        yaw = self.parameter("yaw_tolerance", 0.035, "accepted heading error at the end of a walk in rad")
        limits = WalkLimits(
            patience=self.parameter("patience", 3.0, "a walk that does not move for this time in s fails")
        )
        self._interval = self._robot.contract.control_interval
        self._loop = self.diagnostics.loop("control", self._interval)
        self._locomotion = Locomotion(self._robot, limits, position, yaw)
        self._state: RobotState | None = None
        self._last_tick_ns: int | None = None
        self._velocity_since = -np.inf

    def configure(self) -> None:
        """Make publishers, subscriptions and the action server."""
        self._commands = publisher(self, JointCommand, "joint_commands", COMMAND)
        self._input = StateInput(self, self._robot.joints, self._interval, self._tick, self._reset, self.diagnostics)
        self._cold = [
            subscription(self, TwistStamped, "cmd_vel", self._on_velocity, COMMAND),
            subscription(self, PoseStamped, "goal_pose", self._on_goal_pose, COMMAND),
        ]
        self._server = SingleGoalServer(self, WalkTo, "walk_to", self._on_goal, self._on_replaced)
        self._timer = self.create_timer(0.1, self._watch, clock=steady_clock())
        self.diagnostics.set("source", self._locomotion.source)

    def activate(self) -> None:
        """Begin anew, standing."""
        self._reset()

    def deactivate(self) -> None:
        """Damp the legs: without its policy a standing robot sinks; that is what deactivation means."""
        self._end_goal(WalkTo.Result.PREEMPTED, "the locomotion executor was deactivated")
        self._damp()

    def cleanup(self) -> None:
        """Destroy what configure made."""
        self._input.close()
        for entry in self._cold:
            self.destroy_subscription(entry)
        self.destroy_timer(self._timer)
        self._server.close()
        withdraw(self, self._commands)

    # -- the control loop --------------------------------------------------------------------------------------------

    def _reset(self) -> None:
        self._locomotion.reset()
        self._last_tick_ns = None
        self._state = None
        self._end_goal(WalkTo.Result.PREEMPTED, "the simulation was reset")

    def _tick(self, state: RobotState) -> None:
        began = time.perf_counter()
        self._state = state
        if not self.active:
            return
        dt = self._interval if self._last_tick_ns is None else (state.stamp_ns - self._last_tick_ns) * 1e-9
        self._last_tick_ns = state.stamp_ns
        if not self._locomotion.walking and time.monotonic() - self._velocity_since > self._stale:
            self._locomotion.stop()
        was_fallen = self._locomotion.fallen
        command = self._locomotion.step(state, dt)
        self._commands.publish(joint_command(self._robot.joints, command))
        self._loop.tick(time.perf_counter() - began)
        if self._locomotion.fallen and not was_fallen:
            self.get_logger().error("the robot has fallen: legs are damped until the next reset")
            self.diagnostics.state(DiagnosticStatus.ERROR, "fallen")
        elif was_fallen and not self._locomotion.fallen:
            self.diagnostics.state(DiagnosticStatus.OK, "running")
        self._report(state)

    def _damp(self) -> None:
        joints = self._robot.joints
        stamp = self._state.stamp_ns if self._state is not None else 0
        active = np.zeros(len(joints), dtype=bool)
        active[joints.group(*LEG_GROUPS)] = True
        damping = replace(RobotCommand.damping(joints, self._locomotion.source, stamp), active=active)
        self._commands.publish(joint_command(joints, damping))

    # -- velocities and goals ----------------------------------------------------------------------------------------

    def _on_velocity(self, message: TwistStamped) -> None:
        twist = message.twist
        velocity = [twist.linear.x, twist.linear.y, twist.angular.z]
        try:
            if message.header.frame_id not in ("", BASE_FRAME, FOOTPRINT_FRAME):
                raise StateError(f"cmd_vel: expected frame {FOOTPRINT_FRAME}, got {message.header.frame_id!r}")
            self._locomotion.command_velocity(velocity)
        except StateError as error:
            self.diagnostics.refuse("refused velocities", str(error))
            return
        if self._locomotion.walking and np.any(velocity):
            self._locomotion.stop()
            self._locomotion.command_velocity(velocity)
            self._end_goal(WalkTo.Result.PREEMPTED, "a velocity was commanded")
        self._velocity_since = time.monotonic()

    def _on_goal_pose(self, message: PoseStamped) -> None:
        try:
            target = self._target(message)
        except StateError as error:
            self.diagnostics.refuse("refused goals", str(error))
            return
        self._end_goal(WalkTo.Result.PREEMPTED, "a newer goal came on goal_pose")
        self._locomotion.walk_to(target, timeout=self._default_timeout)

    def _target(self, message: PoseStamped) -> pin.SE3:
        frame = message.header.frame_id
        pose = pose_of(message.pose, "target")
        if frame == WORLD_FRAME:
            return pose
        if frame not in (BASE_FRAME, FOOTPRINT_FRAME):
            raise StateError(
                f"target: unknown frame {frame!r} (available: {WORLD_FRAME}, {BASE_FRAME}, {FOOTPRINT_FRAME})"
            )
        if self._state is None:
            raise StateError(f"target is given in {frame}, but no state of the robot was received yet")
        return pose_from_xyyaw(*xyyaw_of(self._state.T_world_base)) * pose

    def _on_goal(self, goal: Goal) -> None:
        request = goal.request
        try:
            numbers = (request.position_tolerance, request.yaw_tolerance, request.timeout)
            if not all(np.isfinite(number) and number >= 0.0 for number in numbers):
                raise StateError(f"tolerances and timeout must be finite and not negative, got {numbers}")
            target = self._target(request.target)
        except StateError as error:
            goal.abort(WalkTo.Result(error_code=WalkTo.Result.INVALID_GOAL, error_string=str(error)))
            return
        if not self.active or self._locomotion.fallen:
            code = WalkTo.Result.FALLEN if self._locomotion.fallen else WalkTo.Result.INVALID_GOAL
            text = "the robot has fallen; reset first" if self._locomotion.fallen else "the executor is not active"
            goal.abort(WalkTo.Result(error_code=code, error_string=text))
            return
        timeout = request.timeout or self._default_timeout
        self._locomotion.walk_to(target, request.position_tolerance, request.yaw_tolerance, timeout)
        self._pursued, self._since_ns, self._ticks = target, self._last_tick_ns or 0, 0

    def _on_replaced(self, goal: Goal) -> None:
        goal.cancel(self._result(WalkTo.Result.PREEMPTED, "replaced by a newer goal"))

    def _end_goal(self, code: int, text: str) -> None:
        server = getattr(self, "_server", None)
        if server is not None and server.goal is not None:
            server.goal.abort(self._result(code, text))

    def _result(self, code: int, text: str) -> WalkTo.Result:
        result = WalkTo.Result(error_code=code, error_string=text)
        if self._state is not None and getattr(self, "_pursued", None) is not None:
            pose = self._state.T_world_base
            here, there = xyyaw_of(pose), xyyaw_of(self._pursued)
            result.pose = PoseStamped(header=header(self._state.stamp_ns, WORLD_FRAME), pose=pose_message(pose))
            result.position_error = float(np.hypot(*(there - here)[:2]))
            result.yaw_error = abs(wrap_angle(there[2] - here[2]))
        return result

    def _report(self, state: RobotState) -> None:
        goal = self._server.goal
        if goal is None:
            return
        if self._locomotion.outcome is not WalkOutcome.WALKING:
            result = self._result(_CODES[self._locomotion.outcome], self._locomotion.reason)
            (goal.succeed if self._locomotion.outcome is WalkOutcome.ARRIVED else goal.abort)(result)
            return
        self._ticks += 1
        if self._ticks % _FEEDBACK_EVERY == 0:
            distance, turn = self._locomotion.error(state)
            elapsed = (state.stamp_ns - self._since_ns) * 1e-9
            goal.feedback(WalkTo.Feedback(distance=distance, yaw_error=turn, elapsed=elapsed))

    def _watch(self) -> None:
        """Serve what must not depend on states arriving; the clock here does not stop with the simulation."""
        goal = self._server.goal
        if goal is not None and goal.cancel_requested:
            self._locomotion.stop()
            goal.cancel(self._result(WalkTo.Result.PREEMPTED, "cancelled"))
        elif goal is not None and self._input.age > self._state_timeout:
            self._locomotion.stop()
            text = f"no complete state (joint_states, odom, imu/data) for {self._input.age:.1f} s"
            goal.abort(self._result(WalkTo.Result.STALE_STATE, text))


def main(args: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run_node(LocomotionExecutor, args)


if __name__ == "__main__":
    raise SystemExit(main())
