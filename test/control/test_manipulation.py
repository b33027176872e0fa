# SPDX-License-Identifier: Apache-2.0
"""Motions of the upper body: followed, judged by tolerances, planned for hands."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from supple.control.manipulation import Manipulation, MotionOutcome
from supple.control.reach import ReachPlanner, UnreachableError
from supple.control.trajectory import JointTrajectory, Tolerances
from supple.errors import StateError
from supple.geometry import pose_error, pose_from_xyyaw
from supple.robots import PerfectBody, g1
from supple.tasks import task_named

ROBOT = g1()
DT = 0.02
NAMES = ("left_elbow_joint", "right_elbow_joint")


def trajectory(goal: float, duration: float = 0.4) -> JointTrajectory:
    upper = [ROBOT.joints.names[i] for i in Manipulation(ROBOT).indices]
    return JointTrajectory.checked(ROBOT.joints, upper, NAMES, [duration], [[goal, goal]])


def free() -> Tolerances:
    return Tolerances.of(NAMES, {}, {})


def run(manipulation: Manipulation, body: PerfectBody, seconds: float) -> None:
    for _ in range(round(seconds / DT)):
        body.write(manipulation.step(body.read(), DT))


def test_it_holds_the_posture_it_finds():
    body, manipulation = PerfectBody(ROBOT.joints), Manipulation(ROBOT)
    before = body.read().q
    run(manipulation, body, 0.2)
    np.testing.assert_allclose(body.read().q, before)


def test_a_trajectory_is_followed_and_other_joints_hold():
    body, manipulation = PerfectBody(ROBOT.joints), Manipulation(ROBOT)
    before = body.read().q
    run(manipulation, body, 0.1)
    manipulation.follow(trajectory(0.9), free(), Tolerances.of(NAMES, {}, {}, 0.01), 0.5, body.read().stamp_ns)
    assert manipulation.outcome is MotionOutcome.WAITING
    run(manipulation, body, 0.2)
    assert manipulation.outcome is MotionOutcome.MOVING
    run(manipulation, body, 0.4)
    assert manipulation.outcome is MotionOutcome.REACHED
    after = body.read().q
    moved = ROBOT.joints.indices(NAMES)
    np.testing.assert_allclose(after[moved], 0.9)
    np.testing.assert_allclose(np.delete(after, moved), np.delete(before, moved))


def test_it_waits_for_its_start():
    body, manipulation = PerfectBody(ROBOT.joints), Manipulation(ROBOT)
    manipulation.follow(trajectory(0.9), free(), free(), 0.5, body.read().stamp_ns + 200_000_000)
    run(manipulation, body, 0.18)
    assert manipulation.outcome is MotionOutcome.WAITING
    run(manipulation, body, 0.04)
    assert manipulation.outcome is MotionOutcome.MOVING


class _Stuck(PerfectBody):
    """A body whose left elbow does not move."""

    def write(self, command):
        q = self.read().q
        applied = super().write(command)
        self._state.q[ROBOT.joints.index("left_elbow_joint")] = q[ROBOT.joints.index("left_elbow_joint")]
        return applied


def test_a_stuck_joint_violates_the_path_or_the_goal():
    for path, goal, outcome in (
        (Tolerances.of(NAMES, {NAMES[0]: 0.05}, {}), free(), MotionOutcome.PATH_VIOLATED),
        (free(), Tolerances.of(NAMES, {}, {}, 0.02), MotionOutcome.GOAL_VIOLATED),
    ):
        body, manipulation = _Stuck(ROBOT.joints), Manipulation(ROBOT)
        run(manipulation, body, 0.04)
        manipulation.follow(trajectory(0.9), path, goal, 0.1, body.read().stamp_ns)
        run(manipulation, body, 1.0)
        assert manipulation.outcome is outcome
        assert "left_elbow_joint off by" in manipulation.reason
        assert "right_elbow_joint" not in manipulation.reason
        assert not manipulation.moving


def test_stopping_holds_where_it_was():
    body, manipulation = PerfectBody(ROBOT.joints), Manipulation(ROBOT)
    run(manipulation, body, 0.04)
    manipulation.follow(trajectory(0.9), free(), free(), 0.5, body.read().stamp_ns)
    run(manipulation, body, 0.2)
    manipulation.stop()
    half = body.read().q
    run(manipulation, body, 0.4)
    np.testing.assert_allclose(body.read().q, half, atol=1e-9)
    assert 0.6 < half[ROBOT.joints.index("left_elbow_joint")] < 0.9


def test_tolerances_for_other_joints_are_refused():
    other = Tolerances.of(("waist_yaw_joint",), {}, {})
    with pytest.raises(StateError, match="tolerances must be for the joints"):
        Manipulation(ROBOT).follow(trajectory(0.9), other, free(), 0.5, 0)


# -- reaching --------------------------------------------------------------------------------------------------------

BASE = pose_from_xyyaw(0.3, -0.2, 0.4, ROBOT.standing_height)


@pytest.fixture(scope="module")
def planner() -> ReachPlanner:
    return ReachPlanner(ROBOT)


def poses_of(planner: ReachPlanner, q: np.ndarray) -> dict[str, pin.SE3]:
    frames = {name: effector.frame for name, effector in ROBOT.effectors.items()}
    found = planner.kinematics.frame_poses(planner.kinematics.configuration(BASE, q), *frames.values())
    return dict(zip(frames, found, strict=True))


def moved(pose: pin.SE3, *offset: float) -> pin.SE3:
    return pin.SE3(pose.rotation, pose.translation + BASE.rotation @ np.array(offset))


def test_hands_go_along_straight_lines_and_arrive_together(planner):
    q = task_named("box_lift").start_posture()
    start = poses_of(planner, q)
    targets = {name: moved(pose, 0.06, 0.0, 0.12) for name, pose in start.items()}
    plan = planner.plan(BASE, q, targets, duration=1.5)
    assert plan.duration == 1.5
    columns = ROBOT.joints.indices(plan.names)
    for time in np.linspace(0.0, 1.5, 31):
        posture = q.copy()
        posture[columns] = plan.sample(time)[0]
        for name, pose in poses_of(planner, posture).items():
            way = targets[name].translation - start[name].translation
            gone = pose.translation - start[name].translation
            aside = gone - way * (gone @ way) / (way @ way)
            assert np.linalg.norm(aside) < 0.01
    for name, pose in poses_of(planner, posture).items():
        distance, angle = pose_error(pose, targets[name])
        assert distance < 0.005
        assert angle < 0.05


def test_without_a_duration_it_is_as_fast_as_the_limit(planner):
    q = task_named("box_lift").start_posture()
    targets = {"left_hand": moved(poses_of(planner, q)["left_hand"], 0.0, 0.0, 0.15)}
    plan = planner.plan(BASE, q, targets, speed_limit=1.0)
    speeds = [np.abs(plan.sample(time)[1]).max() for time in np.linspace(0.0, plan.duration, 200)]
    assert 0.8 < max(speeds) < 1.1
    with pytest.raises(StateError, match=r"too short for 1\.0 rad/s; at least"):
        planner.plan(BASE, q, targets, duration=0.5 * plan.duration, speed_limit=1.0)


def test_what_is_out_of_reach_is_said_with_how_far(planner):
    q = task_named("box_lift").start_posture()
    targets = {"right_hand": moved(poses_of(planner, q)["right_hand"], 1.5, 0.0, 0.0)}
    with pytest.raises(
        UnreachableError,
        match=r"right_hand: no configuration \d+ % of the way: right_hand ends [0-9.]+ cm beyond its tolerance",
    ):
        planner.plan(BASE, q, targets)
