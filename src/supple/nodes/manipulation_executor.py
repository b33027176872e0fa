# SPDX-License-Identifier: Apache-2.0
"""Node that drives waist, arms and hands: the actions follow_joint_trajectory and reach, held against gravity."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from control_msgs.action import FollowJointTrajectory
from supple_interfaces.action import Reach
from supple_interfaces.msg import JointCommand
from trajectory_msgs.msg import JointTrajectoryPoint

from supple.control.manipulation import Manipulation, MotionOutcome
from supple.control.reach import ReachPlanner
from supple.control.trajectory import JointTrajectory, Tolerances
from supple.errors import JointError, StateError, SuppleError
from supple.nodes.contact_guard import ContactGuard, HardTouch
from supple.nodes.conversion import header, joint_command, nanoseconds
from supple.nodes.diagnostics import steady_clock
from supple.nodes.goals import Goal, SingleGoalServer
from supple.nodes.lifecycle import ActuatorNode
from supple.nodes.qos import COMMAND, publisher, withdraw
from supple.nodes.reach_goals import ReachGoals, ReachSettings
from supple.nodes.runtime import run_node
from supple.nodes.scheduling import CONTROL_PRIORITY
from supple.nodes.state_input import StateInput
from supple.robots import RobotCommand, RobotState, robot_named
from supple.robots.g1 import STANDING_WAIST_RANGE

__all__ = ["ManipulationExecutor", "main"]

_Follow = FollowJointTrajectory.Result
_FEEDBACK_EVERY = 5
_FOLLOW_CODES = {
    MotionOutcome.PATH_VIOLATED: _Follow.PATH_TOLERANCE_VIOLATED,
    MotionOutcome.GOAL_VIOLATED: _Follow.GOAL_TOLERANCE_VIOLATED,
}


def _seconds(duration: object) -> float:
    return float(duration.sec) + 1e-9 * float(duration.nanosec)  # type: ignore[attr-defined]


class ManipulationExecutor(ActuatorNode):
    """Upper body of a robot. It holds the present posture as soon as it is active."""

    def __init__(self) -> None:
        super().__init__("manipulation_executor", realtime_priority=CONTROL_PRIORITY)
        self._robot = robot_named(self.parameter("robot", "g1", "name of the robot"))
        self._speed = self.parameter("speed_limit", 4.0, "largest speed of arm and waist joints in rad/s")
        reach_speed = self.parameter("reach_speed", 1.5, "largest joint speed of a reach in rad/s")
        self._goal_tolerance = self.parameter("goal_tolerance", 0.05, "default goal tolerance in rad")
        self._goal_time = self.parameter("goal_time", 1.0, "default time after the end to come within tolerance in s")
        reach_tolerances = (
            self.parameter("reach_position_tolerance", 0.02, "default position tolerance of a reach in m"),
            self.parameter("reach_orientation_tolerance", 0.1, "default orientation tolerance of a reach in rad"),
        )
        self._state_timeout = self.parameter(
            "state_timeout", 1.0, "goals are aborted without states for this time in s"
        )
        self._reach_settings = ReachSettings(self._speed, reach_speed, reach_tolerances)
        self._limit = self.parameter(
            "contact_guard", 0.0, "normal force on a sensor of a moving limb that stops the motion in N; 0: no guard"
        )
        self._interval = self._robot.contract.control_interval
        self._loop = self.diagnostics.loop("control", self._interval)
        self._manipulation = Manipulation(self._robot, self._speed)
        self._planner = ReachPlanner(self._robot)
        self._state: RobotState | None = None
        self._last_tick_ns: int | None = None
        self._ticks = 0
        self._because: tuple[str, int] | None = None
        self._guard: ContactGuard | None = None

    def configure(self) -> None:
        """Make publishers, subscriptions and action servers."""
        self._commands = publisher(self, JointCommand, "joint_commands", COMMAND)
        self._input = StateInput(self, self._robot.joints, self._interval, self._tick, self._reset, self.diagnostics)
        self._follow = SingleGoalServer(
            self, FollowJointTrajectory, "follow_joint_trajectory", self._on_follow, self._replaced_follow
        )
        self._reach = ReachGoals(
            self, self._manipulation, self._planner, self._reach_settings, self._present, self._begin_reach
        )
        if self._limit > 0.0:
            self._guard = ContactGuard(self, self._planner.kinematics, self._limit, self._on_touch, self.diagnostics)
        self._timer = self.create_timer(0.1, self._watch, clock=steady_clock())
        self.diagnostics.set("source", self._manipulation.source)

    def activate(self) -> None:
        """Begin anew, holding."""
        self._reset()

    def deactivate(self) -> None:
        """Damp waist, arms and hands."""
        self._end_goals("the manipulation executor was deactivated")
        joints, stamp = self._robot.joints, self._state.stamp_ns if self._state is not None else 0
        active = np.zeros(len(joints), dtype=bool)
        active[self._manipulation.indices] = True
        damping = replace(RobotCommand.damping(joints, self._manipulation.source, stamp), active=active)
        self._commands.publish(joint_command(joints, damping))

    def cleanup(self) -> None:
        """Destroy what configure made."""
        self._input.close()
        if self._guard is not None:
            self._guard.close()
            self._guard = None
        self.destroy_timer(self._timer)
        self._follow.close()
        self._reach.close()
        withdraw(self, self._commands)

    # -- the control loop --------------------------------------------------------------------------------------------

    def _reset(self) -> None:
        self._manipulation.reset()
        self._last_tick_ns = self._state = self._because = None
        self._end_goals("the simulation was reset")

    def _tick(self, state: RobotState) -> None:
        began = time.perf_counter()
        self._state = state
        if not self.active:
            return
        dt = self._interval if self._last_tick_ns is None else (state.stamp_ns - self._last_tick_ns) * 1e-9
        self._last_tick_ns = state.stamp_ns
        command = self._manipulation.step(state, dt)
        self._commands.publish(joint_command(self._robot.joints, command, self._because))
        self._loop.tick(time.perf_counter() - began)
        self._ticks += 1
        if self._follow.goal is not None:
            self._report_follow(self._follow.goal, state)
        self._reach.report(state)

    def _watch(self) -> None:
        """Serve what must not depend on states arriving; the clock here does not stop with the simulation."""
        stale = self._input.age > self._state_timeout
        text = f"no complete state (joint_states, odom, imu/data) for {self._input.age:.1f} s"
        follow, reach = self._follow.goal, self._reach.goal
        if follow is not None and (follow.cancel_requested or stale):
            self._manipulation.stop()
            code = _Follow.INVALID_GOAL if stale else _Follow.SUCCESSFUL
            result = _Follow(error_code=code, error_string=text if stale else "cancelled")
            (follow.cancel if follow.cancel_requested else follow.abort)(result)
        if reach is not None and (reach.cancel_requested or stale):
            self._manipulation.stop()
            if reach.cancel_requested:
                self._reach.end(Reach.Result.PREEMPTED, "cancelled")
            else:
                self._reach.end(Reach.Result.STALE_STATE, text)

    def _on_touch(self, touch: HardTouch) -> None:
        if not self.active or self._state is None or touch.limb.isdisjoint(self._manipulation.moved):
            return
        self._manipulation.yield_to(self._state)
        self._because = touch.sensor, touch.sequence
        text = f"stopped by the contact guard: {touch.text}"
        self.diagnostics.refuse("motions stopped by touch", text, touch.sensor)
        if self._follow.goal is not None:
            self._follow.goal.abort(_Follow(error_code=_Follow.PATH_TOLERANCE_VIOLATED, error_string=text))
        self._reach.end(Reach.Result.CONTACT, text)

    # -- goals in general --------------------------------------------------------------------------------------------

    def _replaced_follow(self, goal: Goal) -> None:
        goal.cancel(_Follow(error_code=_Follow.INVALID_GOAL, error_string="replaced by a newer goal"))

    def _begin_reach(self) -> None:
        self._because = None
        if self._follow.goal is not None:
            self._replaced_follow(self._follow.goal)

    def _end_goals(self, text: str) -> None:
        if not hasattr(self, "_reach"):
            return
        if self._follow.goal is not None:
            self._follow.goal.abort(_Follow(error_code=_Follow.INVALID_GOAL, error_string=text))
        self._reach.end(Reach.Result.PREEMPTED, text)

    def _present(self) -> RobotState:
        if not self.active:
            raise StateError("the manipulation executor is not active")
        if self._state is None or self._input.age > self._state_timeout:
            raise StateError("no state of the robot arrives on joint_states, odom and imu/data")
        return self._state

    # -- follow_joint_trajectory -------------------------------------------------------------------------------------

    def _on_follow(self, goal: Goal) -> None:
        try:
            start_ns = self._begin_follow(goal.request)
        except JointError as error:
            goal.abort(_Follow(error_code=_Follow.INVALID_JOINTS, error_string=str(error)))
        except SuppleError as error:
            goal.abort(_Follow(error_code=_Follow.INVALID_GOAL, error_string=str(error)))
        else:
            if start_ns is not None:
                now = self._state.stamp_ns if self._state is not None else 0
                late = f"the trajectory was to start at {start_ns * 1e-9:.3f} s, now is {now * 1e-9:.3f} s"
                goal.abort(_Follow(error_code=_Follow.OLD_HEADER_TIMESTAMP, error_string=late))

    def _begin_follow(self, request: FollowJointTrajectory.Goal) -> int | None:
        """Begin, or return the stamp in [ns] that is too old."""
        message, joints = request.trajectory, self._robot.joints
        if request.multi_dof_trajectory.points or request.multi_dof_trajectory.joint_names:
            raise JointError("multi-DOF joints are not commanded here; the robot has none")
        points = message.points
        if any(len(point.effort) for point in points):
            raise StateError("the trajectory gives efforts; positions are followed here")
        trajectory = JointTrajectory.checked(
            joints,
            self._manipulation.names,
            list(message.joint_names),
            [_seconds(point.time_from_start) for point in points],
            [point.positions for point in points],
            [point.velocities for point in points],
            [point.accelerations for point in points],
            self._speed_of(message.joint_names),
            STANDING_WAIST_RANGE,
        )
        path = self._tolerances(trajectory.names, request.path_tolerance, np.inf)
        final = self._tolerances(trajectory.names, request.goal_tolerance, self._goal_tolerance)
        goal_time = _seconds(request.goal_time_tolerance) or self._goal_time
        state = self._present()
        start_ns = nanoseconds(message.header.stamp) or state.stamp_ns
        if start_ns < state.stamp_ns - round(self._interval * 1e9):
            return start_ns
        self._reach.replace()
        self._because = None
        self._manipulation.follow(trajectory, path, final, goal_time, start_ns)
        return None

    def _speed_of(self, names: Sequence[str]) -> float:
        hands = [name for name in names if "_hand_" in name]
        return np.inf if len(hands) == len(names) else self._speed

    @staticmethod
    def _tolerances(names: Sequence[str], rows: Sequence[object], default: float) -> Tolerances:
        position = {row.name: row.position for row in rows}  # type: ignore[attr-defined]
        velocity = {row.name: row.velocity for row in rows}  # type: ignore[attr-defined]
        return Tolerances.of(names, position, velocity, default)

    def _report_follow(self, goal: Goal, state: RobotState) -> None:
        outcome = self._manipulation.outcome
        if outcome is MotionOutcome.REACHED:
            goal.succeed(_Follow(error_code=_Follow.SUCCESSFUL))
        elif outcome in _FOLLOW_CODES:
            goal.abort(_Follow(error_code=_FOLLOW_CODES[outcome], error_string=self._manipulation.reason))
        elif self._ticks % _FEEDBACK_EVERY == 0 and self._manipulation.desired is not None:
            goal.feedback(self._follow_feedback(state))

    def _follow_feedback(self, state: RobotState) -> FollowJointTrajectory.Feedback:
        trajectory = self._manipulation.trajectory
        if trajectory is None or self._manipulation.desired is None:
            return FollowJointTrajectory.Feedback()
        at = self._robot.joints.indices(trajectory.names)
        (q, v), actual = self._manipulation.desired, (state.q[at], state.v[at])

        def point(position: np.ndarray, velocity: np.ndarray) -> JointTrajectoryPoint:
            return JointTrajectoryPoint(positions=position.tolist(), velocities=velocity.tolist())

        return FollowJointTrajectory.Feedback(
            header=header(state.stamp_ns),
            joint_names=list(trajectory.names),
            desired=point(q, v),
            actual=point(*actual),
            error=point(q - actual[0], v - actual[1]),
        )


def main(args: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run_node(ManipulationExecutor, args)


if __name__ == "__main__":
    raise SystemExit(main())
