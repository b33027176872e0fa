# SPDX-License-Identifier: Apache-2.0
"""Case 16: a joint measured outside its limit must not stop the inverse kinematics; it comes back."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from supple.geometry import pose_error, pose_from_xyyaw
from supple.kinematics.whole_body_ik import WholeBodyIK
from supple.robots import g1
from supple.robots.g1 import ARM_GROUPS, STANDING_WAIST_RANGE

ROBOT = g1()
JOINTS = ROBOT.joints
STANDING = pose_from_xyyaw(0.0, 0.0, 0.0, ROBOT.standing_height)


@pytest.fixture(scope="module")
def ik():
    return WholeBodyIK(ROBOT)


def hand(ik, q, frame="l_gripper"):
    return ik.kinematics.frame_poses(ik.kinematics.configuration(STANDING, q), frame)[0]


@pytest.mark.parametrize("side", ["lower", "upper"])
@pytest.mark.parametrize("i", JOINTS.group("left_arm"), ids=lambda i: JOINTS.names[i])
def test_each_arm_joint_recovers_from_beyond_either_limit(ik, i, side):
    limit = getattr(JOINTS, side)[i]
    inward = 1.0 if side == "lower" else -1.0
    reachable = JOINTS.home.copy()
    reachable[i] = limit + inward * 0.15
    target = {"left_hand": hand(ik, reachable)}
    start = reachable.copy()
    start[i] = limit - inward * 0.05
    solution = ik.solve(STANDING, start, target, ("left_arm",))
    assert solution.converged
    assert JOINTS.lower[i] - 1e-9 <= solution.q[i] <= JOINTS.upper[i] + 1e-9
    q = start
    for _ in range(20):
        q = ik.track(STANDING, q, target, posture=reachable)
    assert JOINTS.lower[i] - 1e-9 <= q[i] <= JOINTS.upper[i] + 1e-9
    assert pose_error(hand(ik, q), target["left_hand"])[0] < 5e-3


def test_a_locked_joint_beyond_its_limit_does_not_stop_the_others(ik):
    start = JOINTS.home.copy()
    stuck = JOINTS.index("left_wrist_pitch_joint")
    start[stuck] = JOINTS.upper[stuck] + 0.05
    target = hand(ik, start, "r_gripper") * pin.SE3(np.eye(3), np.array([-0.05, 0.0, 0.02]))
    solution = ik.solve(STANDING, start, {"right_hand": target}, ("right_arm",))
    assert solution.converged
    assert solution.q[stuck] == start[stuck]


def test_all_joints_beyond_their_limits_at_once(ik):
    free = JOINTS.group("waist", *ARM_GROUPS)
    reachable, start = JOINTS.home.copy(), JOINTS.home.copy()
    reachable[free] = 0.5 * (JOINTS.home + JOINTS.upper)[free]
    start[free] = JOINTS.upper[free] + 0.05
    for name, (_, upper) in STANDING_WAIST_RANGE.items():
        reachable[JOINTS.index(name)] = 0.5 * upper
    targets = {"left_hand": hand(ik, reachable), "right_hand": hand(ik, reachable, "r_gripper")}
    solution = ik.solve(STANDING, start, targets, posture=reachable)
    assert solution.converged
    assert (solution.q[free] <= JOINTS.upper[free] + 1e-9).all()
