# SPDX-License-Identifier: Apache-2.0
"""Case 16: a joint measured outside its limit must not stop the inverse kinematics; it comes back."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from supple.geometry import pose_error, pose_from_xyyaw
from supple.kinematics.hand_tracking import HandTracking
from supple.kinematics.ik_batch import IkBatchSolver
from supple.kinematics.model import KinematicModel
from supple.robots import g1
from supple.robots.g1 import ARM_GROUPS, STANDING_WAIST_RANGE

ROBOT = g1()
JOINTS = ROBOT.joints
KINEMATICS = KinematicModel(ROBOT)
STANDING = pose_from_xyyaw(0.0, 0.0, 0.0, ROBOT.standing_height)


@pytest.fixture(scope="module")
def solver():
    return IkBatchSolver(ROBOT)


def hand(q, frame="l_gripper"):
    return KINEMATICS.frame_poses(KINEMATICS.configuration(STANDING, q), frame)[0]


def found(solver, start, targets, **options):
    batch = solver.search(STANDING, start, targets, np.random.default_rng(0), **options)
    assert batch.candidates, str(batch.shortfall)
    return batch.candidates[0]


@pytest.mark.parametrize("side", ["lower", "upper"])
@pytest.mark.parametrize("i", JOINTS.group("left_arm"), ids=lambda i: JOINTS.names[i])
def test_each_arm_joint_recovers_from_beyond_either_limit(solver, i, side):
    limit = getattr(JOINTS, side)[i]
    inward = 1.0 if side == "lower" else -1.0
    reachable = JOINTS.home.copy()
    reachable[i] = limit + inward * 0.15
    target = {"left_hand": hand(reachable)}
    start = reachable.copy()
    start[i] = limit - inward * 0.05
    solution = found(solver, start, target)
    assert JOINTS.lower[i] - 1e-9 <= solution.q[i] <= JOINTS.upper[i] + 1e-9
    assert pose_error(hand(solution.q), target["left_hand"])[0] < 5e-3
    tracking, q = HandTracking(ROBOT), start
    for _ in range(20):
        q = tracking.step(STANDING, q, target, reachable)
    assert JOINTS.lower[i] - 1e-9 <= q[i] <= JOINTS.upper[i] + 1e-9
    assert pose_error(hand(q), target["left_hand"])[0] < 5e-3


def test_a_joint_beyond_its_limit_that_is_not_needed_does_not_stop_the_others(solver):
    start = JOINTS.home.copy()
    stuck = JOINTS.index("left_wrist_pitch_joint")
    start[stuck] = JOINTS.upper[stuck] + 0.05
    target = hand(start, "r_gripper") * pin.SE3(np.eye(3), np.array([-0.05, 0.0, 0.02]))
    solution = found(solver, start, {"right_hand": target})
    assert solution.q[stuck] == start[stuck]
    assert pose_error(hand(solution.q, "r_gripper"), target)[0] < 5e-3


def test_all_joints_beyond_their_limits_at_once(solver):
    free = JOINTS.group("waist", *ARM_GROUPS)
    reachable, start = JOINTS.home.copy(), JOINTS.home.copy()
    reachable[free] = 0.5 * (JOINTS.home + JOINTS.upper)[free]
    start[free] = JOINTS.upper[free] + 0.05
    for name, (_, upper) in STANDING_WAIST_RANGE.items():
        reachable[JOINTS.index(name)] = 0.5 * upper
    targets = {"left_hand": hand(reachable), "right_hand": hand(reachable, "r_gripper")}
    solution = found(solver, start, targets, posture=reachable)
    arms = JOINTS.group(*ARM_GROUPS)
    assert (solution.q[arms] <= JOINTS.upper[arms] + 1e-9).all()
    for name, frame in (("left_hand", "l_gripper"), ("right_hand", "r_gripper")):
        assert pose_error(hand(solution.q, frame), targets[name])[0] < 5e-3
