# SPDX-License-Identifier: Apache-2.0
"""Both executors against the simulator: walking, trajectories with every error code, reaching, cancelling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from builtin_interfaces.msg import Duration
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance
from geometry_msgs.msg import PoseStamped, Twist, TwistStamped, Vector3
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from node_graph import Graph, stamped
from supple_interfaces.action import Reach, WalkTo
from supple_interfaces.msg import JointCommand
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from supple.errors import StateError
from supple.geometry import pose_from_xyyaw, wrap_angle, xyyaw_of
from supple.kinematics.model import KinematicModel
from supple.nodes.conversion import header, nanoseconds
from supple.nodes.diagnostics import Diagnostics
from supple.nodes.qos import COMMAND
from supple.nodes.topic_body import TopicBody
from supple.robots import RobotCommand, g1

CODES = FollowJointTrajectory.Result
ELBOWS = ["right_elbow_joint", "left_elbow_joint"]


@pytest.fixture(autouse=True)
def fresh(stack):
    assert stack.reset(distribution="D0", seed=1).success
    stack.run_for(0.2)


def duration(seconds: float) -> Duration:
    return Duration(sec=int(seconds), nanosec=round((seconds % 1.0) * 1e9))


def point(time: float, *positions: float, velocities=()) -> JointTrajectoryPoint:
    return JointTrajectoryPoint(positions=list(positions), velocities=list(velocities), time_from_start=duration(time))


def goal(names=ELBOWS, points=(), stamp: int = 0, path=(), final=(), goal_time: float = 0.0):
    return FollowJointTrajectory.Goal(
        trajectory=JointTrajectory(header=header(stamp), joint_names=list(names), points=list(points)),
        path_tolerance=list(path),
        goal_tolerance=list(final),
        goal_time_tolerance=duration(goal_time),
    )


def follow(graph: Graph, request) -> CODES:
    return graph.act(FollowJointTrajectory, "follow_joint_trajectory", request)


# -- follow_joint_trajectory -------------------------------------------------------------------------------------------


def test_joints_are_mapped_by_name_and_reached(stack):
    other = stack.joint("left_wrist_roll_joint")
    result = follow(stack, goal(points=[point(0.8, 0.3, 0.6, velocities=(0.0, 0.0))]))
    assert (result.error_code, result.error_string) == (CODES.SUCCESSFUL, "")
    assert stack.joint("right_elbow_joint") == pytest.approx(0.3, abs=0.05)
    assert stack.joint("left_elbow_joint") == pytest.approx(0.6, abs=0.05)
    assert stack.joint("left_wrist_roll_joint") == pytest.approx(other, abs=0.05)


@pytest.mark.parametrize(
    ("request_", "code", "words"),
    [
        (goal(["left_elbow_joint", "left_knee_joint", "tail"], [point(1.0, 0, 0, 0)]), CODES.INVALID_JOINTS,
         "left_knee_joint (not commanded here), tail"),
        (goal([], [point(1.0)]), CODES.INVALID_JOINTS, "names no joint"),
        (goal(points=[]), CODES.INVALID_GOAL, "no points"),
        (goal(points=[point(1.0, 0.1)]), CODES.INVALID_GOAL, "1 positions for 2 joints"),
        (goal(points=[point(1.0, 0.1, float("nan"))]), CODES.INVALID_GOAL, "of left_elbow_joint are not finite"),
        (goal(points=[point(1.0, 0.1, 9.0)]), CODES.INVALID_GOAL, "left_elbow_joint at 9.000 rad is outside"),
        (goal(["waist_pitch_joint"], [point(1.0, 0.2), point(2.0, -0.25)]), CODES.INVALID_GOAL,
         "point 1: waist_pitch_joint at -0.250 rad is outside -0.100 to 0.380 rad"),
        (goal(points=[point(2.0, 0.1, 0.1), point(1.0, 0.1, 0.1)]), CODES.INVALID_GOAL, "must increase"),
        (goal(points=[point(1.0, 0.1, 0.1)], final=[JointTolerance(name="tail")]), CODES.INVALID_JOINTS, "tail"),
        (goal(points=[point(1.0, 0.1, 0.1)], stamp=5), CODES.OLD_HEADER_TIMESTAMP, "was to start at 0.000 s, now is"),
    ],
)  # fmt: skip
def test_a_trajectory_that_cannot_be_executed_is_answered_with_its_code(stack, request_, code, words):
    result = follow(stack, request_)
    assert result.error_code == code
    assert words in result.error_string


def test_a_path_that_cannot_be_followed_is_aborted(stack):
    tight = [JointTolerance(name=name, position=1e-4) for name in ELBOWS]
    result = follow(stack, goal(points=[point(0.5, 0.9, 0.9)], path=tight))
    assert result.error_code == CODES.PATH_TOLERANCE_VIOLATED
    assert "tolerance 0.0001 rad" in result.error_string


def test_a_goal_that_is_not_met_in_time_is_aborted(stack):
    tight = [JointTolerance(name=name, position=1e-6) for name in ELBOWS]
    result = follow(stack, goal(points=[point(0.5, 0.4, 0.4)], final=tight, goal_time=0.2))
    assert result.error_code == CODES.GOAL_TOLERANCE_VIOLATED
    assert "after the end" in result.error_string


def test_a_trajectory_may_start_later(stack):
    now = nanoseconds(stack.latest("joint_states").header.stamp)
    before = stack.joint("left_elbow_joint")
    later = now + 1_500_000_000
    handle = stack.send_goal(
        FollowJointTrajectory, "follow_joint_trajectory", goal(points=[point(0.5, 0.4, 0.4)], stamp=later)
    )
    result = stack.result(handle.get_result_async(), "the result").result
    assert result.error_code == CODES.SUCCESSFUL
    arrived = nanoseconds(stack.latest("joint_states").header.stamp)
    assert arrived >= later + 500_000_000
    index = list(stack.latest("joint_states").name).index("left_elbow_joint")
    waiting = [m.position[index] for m in stack.received["joint_states"] if now < nanoseconds(m.header.stamp) < later]
    assert np.ptp([before, *waiting]) < 0.05


def test_a_newer_goal_replaces_and_a_cancelled_one_holds(stack):
    first = stack.send_goal(FollowJointTrajectory, "follow_joint_trajectory", goal(points=[point(30.0, 1.2, 1.2)]))
    second = stack.send_goal(FollowJointTrajectory, "follow_joint_trajectory", goal(points=[point(30.0, 1.0, 1.0)]))
    replaced = stack.result(first.get_result_async(), "the first's result").result
    assert replaced.error_code == CODES.INVALID_GOAL
    assert replaced.error_string == "replaced by a newer goal"
    stack.result(second.cancel_goal_async(), "the cancellation")
    cancelled = stack.result(second.get_result_async(), "the second's result")
    assert cancelled.result.error_string == "cancelled"
    stack.run_for(0.3)
    held = stack.joint("left_elbow_joint")
    stack.run_for(0.5)
    assert stack.joint("left_elbow_joint") == pytest.approx(held, abs=0.02)


# -- reach -------------------------------------------------------------------------------------------------------------


def gripper_in_base(graph: Graph, side: str) -> pin.SE3:
    robot = g1()
    kinematics = KinematicModel(robot)
    message = graph.latest("joint_states")
    q = robot.joints.ordered(list(message.name), message.position)
    frame = robot.effector(f"{side}_hand").frame
    return kinematics.frame_poses(kinematics.configuration(pin.SE3.Identity(), q), frame)[0]


@pytest.mark.parametrize("frame", ["base_link", "odom"])
def test_hands_reach_poses_in_either_frame(stack, frame):
    """Leaning forward under its arms, the robot brings the hands to where they are wanted all the same."""
    stack.run_for(1.0)
    to_frame = stack.base() if frame == "odom" else pin.SE3.Identity()
    targets = {}
    for side in ("left", "right"):
        pose = gripper_in_base(stack, side)
        targets[side] = to_frame * pin.SE3(pose.rotation, pose.translation + np.array([0.04, 0.0, 0.1]))
    request = Reach.Goal(
        effector=["left_hand", "right_hand"], target=[stamped(pose, frame) for pose in targets.values()]
    )
    result = stack.act(Reach, "reach", request)
    assert (result.error_string, result.error_code) == ("", Reach.Result.SUCCESS)
    assert max(result.position_error) < 0.02
    for side, target in targets.items():
        to_frame = stack.base() if frame == "odom" else pin.SE3.Identity()
        assert np.linalg.norm((to_frame * gripper_in_base(stack, side)).translation - target.translation) < 0.03


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"effector": ["tentacle"]}, Reach.Result.INVALID_GOAL, "unknown effector 'tentacle'"),
        ({"effector": []}, Reach.Result.INVALID_GOAL, "0 effectors and 1 targets"),
        ({"frame": "moon"}, Reach.Result.INVALID_GOAL, "unknown frame 'moon'"),
        ({"shift": 2.0}, Reach.Result.UNREACHABLE, "left_hand: no configuration"),
        ({"shift": float("nan")}, Reach.Result.INVALID_GOAL, "position is not finite"),
        ({"duration": -1.0}, Reach.Result.INVALID_GOAL, "not negative"),
        ({"duration": 0.01}, Reach.Result.INVALID_GOAL, "too short"),
    ],
)
def test_a_reach_that_cannot_be_is_refused(stack, change, code, words):
    pose = gripper_in_base(stack, "left")
    pose.translation = pose.translation + np.array([0.0, 0.0, 0.1])
    message = stamped(pose, change.get("frame", "base_link"))
    message.pose.position.x += change.get("shift", 0.0)
    request = Reach.Goal(
        effector=change.get("effector", ["left_hand"]), target=[message], duration=change.get("duration", 0.0)
    )
    result = stack.act(Reach, "reach", request)
    assert result.error_code == code
    assert words in result.error_string


def test_a_quaternion_that_is_none_is_refused(stack):
    message = stamped(pin.SE3.Identity(), "base_link")
    message.pose.orientation.w = 0.0
    result = stack.act(Reach, "reach", Reach.Goal(effector=["left_hand"], target=[message]))
    assert result.error_code == Reach.Result.INVALID_GOAL
    assert "holds no rotation" in result.error_string


# -- walking -----------------------------------------------------------------------------------------------------------


def test_it_walks_to_a_pose_and_stands_within_tolerance(stack):
    target = pose_from_xyyaw(0.4, 0.2, 0.3)
    result = stack.act(WalkTo, "walk_to", WalkTo.Goal(target=stamped(target)), timeout=120.0)
    assert (result.error_code, result.error_string) == (WalkTo.Result.SUCCESS, "")
    stack.run_for(0.5)
    away = xyyaw_of(target) - xyyaw_of(stack.base())
    assert np.hypot(*away[:2]) < 0.03
    assert abs(wrap_angle(away[2])) < np.radians(2.0)
    assert result.position_error == pytest.approx(np.hypot(*away[:2]), abs=0.01)


def test_a_walk_is_replaced_cancelled_and_timed_out(stack):
    far = WalkTo.Goal(target=stamped(pose_from_xyyaw(-3.0, 0.0, 0.0)))
    first = stack.send_goal(WalkTo, "walk_to", far)
    second = stack.send_goal(WalkTo, "walk_to", far)
    replaced = stack.result(first.get_result_async(), "the first's result").result
    assert replaced.error_code == WalkTo.Result.PREEMPTED
    assert replaced.error_string == "replaced by a newer goal"
    stack.result(second.cancel_goal_async(), "the cancellation")
    cancelled = stack.result(second.get_result_async(), "the second's result").result
    assert (cancelled.error_code, cancelled.error_string) == (WalkTo.Result.PREEMPTED, "cancelled")
    far.timeout = 0.5
    late = stack.act(WalkTo, "walk_to", far)
    assert late.error_code == WalkTo.Result.TIMEOUT
    assert "m and" in late.error_string


@pytest.mark.parametrize(
    ("target", "fields", "words"),
    [
        (stamped(pose_from_xyyaw(0.0, 0.0, 0.0), "map"), {}, "unknown frame 'map' (available: odom, base_link"),
        (stamped(pose_from_xyyaw(float("nan"), 0.0, 0.0)), {}, "position is not finite"),
        (stamped(pose_from_xyyaw(0.0, 0.0, 0.0)), {"timeout": -1.0}, "not negative"),
        (stamped(pose_from_xyyaw(0.0, 0.0, 0.0)), {"yaw_tolerance": float("nan")}, "must be finite"),
    ],
)
def test_a_walk_that_cannot_be_is_refused(stack, target, fields, words):
    result = stack.act(WalkTo, "walk_to", WalkTo.Goal(target=target, **fields))
    assert result.error_code == WalkTo.Result.INVALID_GOAL
    assert words in result.error_string


def test_a_walk_ends_when_states_stop_even_though_the_clock_stands_still(stack):
    handle = stack.send_goal(WalkTo, "walk_to", WalkTo.Goal(target=stamped(pose_from_xyyaw(2.0, 2.0, 0.0))))
    stack.run_for(0.5)
    stack.pause(True)
    try:
        result = stack.result(handle.get_result_async(), "the result", 20.0).result
    finally:
        stack.pause(False)
    assert result.error_code == WalkTo.Result.STALE_STATE
    assert "no complete state" in result.error_string


def test_a_reset_ends_a_walk(stack):
    handle = stack.send_goal(WalkTo, "walk_to", WalkTo.Goal(target=stamped(pose_from_xyyaw(2.0, 2.0, 0.0))))
    stack.run_for(0.3)
    stack.reset()
    result = stack.result(handle.get_result_async(), "the result").result
    assert (result.error_code, result.error_string) == (WalkTo.Result.PREEMPTED, "the simulation was reset")


def test_a_pose_clicked_in_a_viewer_is_walked_to_and_an_unknown_frame_is_refused(stack):
    publisher = stack.publisher(PoseStamped, "goal_pose", COMMAND)
    stack.until(publisher.get_subscription_count, "a subscriber of goal_pose")
    publisher.publish(stamped(pose_from_xyyaw(0.0, 0.0, 0.0), "moon"))
    stack.until(
        lambda: "unknown frame 'moon'" in stack.diagnostics["locomotion_executor"][2].get("last refused goals", ""),
        "the refusal on diagnostics",
    )
    target = pose_from_xyyaw(*xyyaw_of(stack.base())) * pose_from_xyyaw(-0.3, 0.1, 0.4)
    publisher.publish(stamped(target))

    def arrived() -> bool:
        away, twist = xyyaw_of(target) - xyyaw_of(stack.base()), stack.latest("odom").twist.twist
        still = np.hypot(twist.linear.x, twist.linear.y) < 0.02
        return still and np.hypot(*away[:2]) < 0.04 and abs(wrap_angle(away[2])) < 0.05

    stack.until(arrived, "the robot to stand at the pose", 60.0)


def test_a_velocity_is_obeyed_until_it_is_stale(stack):
    publisher = stack.publisher(TwistStamped, "cmd_vel", COMMAND)
    stack.until(publisher.get_subscription_count, "a subscriber of cmd_vel")
    bad = TwistStamped(twist=Twist(linear=Vector3(x=float("nan"))))
    publisher.publish(bad)
    stack.until(
        lambda: (
            "three finite numbers" in stack.diagnostics["locomotion_executor"][2].get("last refused velocities", "")
        ),
        "the refusal on diagnostics",
    )
    start = xyyaw_of(stack.base())

    def turned() -> bool:
        publisher.publish(TwistStamped(twist=Twist(angular=Vector3(z=0.6))))
        return wrap_angle(xyyaw_of(stack.base())[2] - start[2]) > 0.5

    stack.until(turned, "the robot to turn by 0.5 rad", 60.0)

    def still() -> bool:
        twist = stack.latest("odom").twist.twist
        return abs(twist.angular.z) + np.hypot(twist.linear.x, twist.linear.y) < 0.02

    # Nothing is published any more.
    stack.until(still, "the robot to stand", 60.0)
    assert stack.base().translation[2] > 0.7


# -- who may command ---------------------------------------------------------------------------------------------------


def transition(graph: Graph, number: int) -> None:
    request = ChangeState.Request()
    request.transition.id = number
    assert graph.call(ChangeState, "manipulation_executor/change_state", request).success


def test_a_deactivated_executor_damps_and_gives_its_joints_free(stack):
    commands = stack.listen(JointCommand, "joint_commands", COMMAND)
    transition(stack, Transition.TRANSITION_DEACTIVATE)
    stack.until(
        lambda: any(m.source == "manipulation" and not np.any(m.kp) and np.all(m.kd) for m in list(commands)),
        "a damping command",
    )
    refused = stack.act(Reach, "reach", Reach.Goal(effector=["left_hand"], target=[stamped(pin.SE3.Identity())]))
    assert refused.error_string == "the manipulation executor is not active"
    stack.until(lambda: "left_arm" not in stack.owners(), "the arm to be free")
    assert stack.owners()["left_leg"] == "locomotion"
    # All the way down and up again.
    transition(stack, Transition.TRANSITION_CLEANUP)
    transition(stack, Transition.TRANSITION_CONFIGURE)
    transition(stack, Transition.TRANSITION_ACTIVATE)
    stack.until(lambda: stack.owners().get("left_arm") == "manipulation", "the arm to be held again")
    # Damped, the arm sank against the leg, which may keep it from moving: begin where it is free.
    assert stack.reset(distribution="D0", seed=1).success
    stack.run_for(0.2)
    assert follow(stack, goal(points=[point(0.5, 0.3, 0.3)])).error_code == CODES.SUCCESSFUL


def test_a_body_over_topics_is_refused_by_name_and_told_what_was_applied(stack):
    robot = g1()
    body = TopicBody(stack.node, robot, "tester", Diagnostics(stack.node, "test"))
    try:
        body.await_peers()
        command = RobotCommand.blank(robot.joints, "whoever", body.read().stamp_ns)
        command.active[robot.joints.group("right_leg")] = True
        with pytest.raises(StateError, match="command from 'tester' refused: right_leg owned by 'locomotion'"):
            body.write(command)
        assert body.applied == 0
        stack.until(lambda: body.others(1.0) == ["locomotion", "manipulation"], "both executors to be heard")
        bad = replace(command, q=np.full(len(robot.joints), np.nan))
        with pytest.raises(StateError, match="q is not finite for right_hip_pitch_joint"):
            body.write(bad)
    finally:
        body.close()
